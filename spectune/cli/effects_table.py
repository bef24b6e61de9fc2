"""What the searched parameters do, in a few lines: the strongest effect of each, and what has none or is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.search.guided.effects import Effect

HOW = (
    "by the models fitted to all launches (the strongest of each parameter; predicted: no two launches differ in just "
    "that)"
)


def effect_lines(effects: Sequence[Effect]) -> Iterator[str]:
    """Yield the lines, by which candidates a value is changed in; none where nothing can be told yet."""
    by_context: dict[str, list[Effect]] = {}
    for effect in effects:
        by_context.setdefault(effect.among, []).append(effect)
    for among, told in by_context.items():
        yield f"what another value does to {among}, {HOW}:"
        yield from _lines(told)


def _lines(effects: Sequence[Effect]) -> Iterator[str]:
    by_parameter: dict[str, list[Effect]] = {}
    for effect in effects:
        by_parameter.setdefault(effect.parameter, []).append(effect)
    shown: list[list[Effect]] = []
    same: list[str] = []
    undecided: list[str] = []
    unknown: list[str] = []
    for parameter, of_it in by_parameter.items():
        decided = [one for one in of_it if _decided(one)]
        if decided:
            strongest = max(decided, key=lambda one: abs(one.change.est))
            shown.append([one for one in decided if one.value == strongest.value])
        elif all("no difference" in one.says for one in of_it):
            within = max(max(abs(one.change.lo), abs(one.change.hi)) for one in of_it)
            launched = any(one.basis == "launches" for one in of_it)
            same.append(f"{parameter} (within ±{within:.1%}{'' if launched else ', predicted'})")
        else:
            never_varied = all(one.basis == "nothing" for one in of_it)
            (unknown if never_varied else undecided).append(parameter)
    for alike in sorted(shown, key=lambda alike: -max(abs(one.change.est) for one in alike)):
        told = ", ".join(f"{one.objective}@{one.level} {one.says}" for one in alike)
        yield f"  {alike[0].parameter} {alike[0].instead}: {told}"
    for lead, names in (("makes no difference", same), ("not decided", undecided), ("unknown, never varied", unknown)):
        if names:
            yield f"  {lead}: {', '.join(names)}"


def _decided(one: Effect) -> bool:
    return one.basis != "nothing" and (one.change.lo > 0.0 or one.change.hi < 0.0) and "no difference" not in one.says
