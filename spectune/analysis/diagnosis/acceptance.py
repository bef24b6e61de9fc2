"""Causes that lie in what the drafter gets accepted."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.acceptance import NOTHING_ACCEPTED
from spectune.analysis.break_even import break_even_arithmetic, more_needed
from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost
from spectune.analysis.diagnosis.steps import steps_of

WASTEFUL_TREE = 4
"""Verified tokens per emitted one from which a tree is called too large."""

_PLAIN_EAGLE = frozenset({"EAGLE", "NEXTN"})
_NO_SPECULATION = Action(
    "launch without the --speculative-* arguments: that is faster with this drafter and traffic", Cost.FLAG
)
_USE_EAGLE3 = Action("launch with --speculative-algorithm EAGLE3", Cost.FLAG)
_CHECK_CONFIG = Action(
    "read `architectures` in the drafter's config.json: with Eagle3 in it, launch with --speculative-algorithm EAGLE3",
    Cost.FLAG,
)
_CHECK_WEIGHTS = Action("check the norms of the drafter's weights, the fusion weight fc first", Cost.MEASUREMENT)
_LOAD_AGAIN = Action("restart from a complete checkpoint", Cost.RESTART)
_RIGHT_DRAFTER = Action("take a drafter made for exactly this base model and its chat template", Cost.DRAFTER)


def nothing_accepted(case: Case) -> Iterator[Cause]:
    """An accept length of 1.0: the drafter runs, and nothing of it is ever accepted; causes in order of likelihood."""
    running, length = case.running, case.accept_length
    if length is not None and length > NOTHING_ACCEPTED:
        return
    eagle3 = "eagle3" in (running.draft_architecture or "").lower()
    if eagle3 and running.algorithm in _PLAIN_EAGLE:
        evidence = (
            f"the drafter is a {running.draft_architecture}, the algorithm {running.algorithm}: only EAGLE3 gives it "
            "the hidden states it was trained on" + ("" if length is None else f"; accept length {length:.2f}")
        )
        yield Cause("wrong_algorithm", case.behind, evidence, (_USE_EAGLE3,))
        return
    if length is None:
        return
    seen = f"accept length {length:.2f}: nothing the drafter proposes is accepted"
    if running.algorithm == "NGRAM":
        yield Cause("nothing_to_copy", case.behind, f"{seen}; this traffic repeats nothing", _without(case))
        return
    if running.algorithm in _PLAIN_EAGLE and running.draft_architecture is None:
        evidence = f"{seen}; an EAGLE-3 drafter under {running.algorithm} does exactly this, without an error"
        yield Cause("wrong_algorithm", case.behind, evidence, (_CHECK_CONFIG,))
    evidence = f"{seen}; a drafter whose weights are zero or were not all loaded does this"
    yield Cause("zero_drafter", case.behind, evidence, (_CHECK_WEIGHTS, _LOAD_AGAIN))
    evidence = f"{seen}; a drafter made for another base model or vocabulary does this"
    yield Cause("foreign_drafter", case.behind, evidence, (_RIGHT_DRAFTER,))


def below_break_even(case: Case) -> Iterator[Cause]:
    """Something is accepted, and less than speculation costs."""
    length, needed, load = case.accept_length, case.break_even, case.load
    if length is None or needed is None or load is None or length <= NOTHING_ACCEPTED or length >= needed:
        return
    if case.shown_slower is False:
        return
    assert case.baseline_tok_s is not None, "a break-even follows from a baseline"
    assert load.cycle_ms is not None, "and from a cycle"
    bound = case.running.bound
    evidence = (
        f"accept length {length:.2f}, but break-even is "
        f"{break_even_arithmetic(case.baseline_tok_s, load.cycle_ms)} = {needed:.2f}"
    )
    steps, actions = steps_of(case), [*_without(case)]
    if steps is not None and steps.better > steps.now:
        evidence += f"; {steps.assumed}{steps.better} steps would give {steps.would_give:.2f}"
        actions.append(steps.action(case))
    if bound is not None and needed >= bound:
        evidence += f"; this launch reaches {bound} at most: no drafter makes it pay at this cycle"
        actions.append(_shorter_cycle(case, bound))
    else:
        most = "" if bound is None else f" of {bound} possible"
        actions += [
            Action(f"try a drafter that reaches more than {needed:.2f}{most} on this traffic", Cost.DRAFTER),
            Action(
                f"train the drafter further: {more_needed(needed, length):.2f} more per verify are needed; "
                f"{training_cost(case.study)}",
                Cost.TRAINING,
            ),
        ]
    yield Cause("weak_drafter", case.behind, evidence, tuple(actions))


def _without(case: Case) -> tuple[Action, ...]:
    """Advise to do without speculation, unless a study says which of its launches is faster."""
    return (_NO_SPECULATION,) if case.shown_slower is None else ()


def _shorter_cycle(case: Case, bound: int) -> Action:
    """Say how short a cycle has to be for a perfect drafter, and what makes cycles shorter."""
    below_ms = 1000.0 * bound / (case.baseline_tok_s or 1.0)
    words = f"shorten the cycle to less than {below_ms:.1f} ms, for it to pay at all"
    if case.load is not None and case.load.in_graph == 1.0:
        return Action(f"{words}: with a drafter whose step takes less", Cost.DRAFTER)
    flags = f"--attention-backend and {case.running.graph_flag}"
    return Action(f"{words}: {flags} decide whether a verify runs in CUDA graphs", Cost.FLAG)


def training_cost(study: str) -> str:
    """Return who says what more training costs."""
    return f"`spectune breakeven {study}` with --drafter-points and --tokens-per-sample says what that costs"


def tree_too_large(case: Case) -> Iterator[Cause]:
    """A draft tree verifies many tokens for each it emits, times the batch."""
    running, length, load = case.running, case.accept_length, case.load
    tokens, batch = running.num_draft_tokens, None if load is None else load.running
    if not running.tree or tokens is None or length is None or length <= NOTHING_ACCEPTED or case.foreseen:
        return
    if batch is not None and batch > 1:
        evidence = (
            f"a tree of {tokens} draft tokens × {batch} requests verifies {tokens * batch} tokens a cycle and keeps "
            f"{length * batch:.0f}; trees pay at one request, not in a batch"
        )
        action = Action("launch with --speculative-eagle-topk 1 and 2 or 3 steps for this load", Cost.FLAG)
        yield Cause("tree_in_a_batch", None, evidence, (action,))
    elif tokens > WASTEFUL_TREE * length:
        evidence = f"{tokens} draft tokens are verified for {length:.2f} that are kept"
        action = Action(f"launch with fewer --speculative-num-draft-tokens than {tokens}", Cost.FLAG)
        yield Cause("tree_too_large", None, evidence, (action,))
