import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spectune.bench.arrivals import ClosedLoop, Poisson, Trace
from spectune.bench.prompt_sources import open_workload
from spectune.errors import InputProblems, SpectuneError
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.traffic import level_plan, open_prompts, summary
from spectune.space import SearchSpace, parse_space

SPACE = """\
schema: 1
engine: {args: {model-path: org/model}}
search: {speculative-algorithm: [none, EAGLE3], speculative-num-steps: 3}
workload:
  prompts: %s
  levels: [%s]
  output_tokens: 64
"""


@dataclass
class Words:
    """A tokenizer with a token for every word."""

    rendered: list[object] = field(default_factory=list)

    def render(self, prompts: object, *, classes: object, chat_template: bool) -> list[list[int]]:
        assert isinstance(prompts, list)
        self.rendered += prompts
        texts = [p if isinstance(p, str) else " ".join(m["content"] for m in p) for p in prompts]
        return [[len(word) for word in text.split()] for text in texts]

    def close(self) -> None:
        pass


def space(folder: Path, prompts: str = "builtin:tiny", levels: str = "{concurrency: 4}") -> SearchSpace:
    return parse_space(SPACE % (prompts, levels), folder / "space.yaml")


def asked(folder: Path, *entries: object) -> str:
    (folder / "asked.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return "asked.jsonl"


def feed(folder: Path, *entries: object, start: int = 0) -> PromptFeed:
    workload = open_workload(asked(folder, *entries), folder)
    return PromptFeed(workload, Words(), chat_template=False, output_tokens=10, start=start)


def test_prompts_that_exceed_the_context_with_their_answers_are_passed_over(tmp_path: Path) -> None:
    entries = [
        {"prompt": " ".join(["word"] * words), "output_tokens": 5 if words == 15 else None} for words in range(1, 21)
    ]
    dealt = feed(tmp_path, *entries)
    dealt.prepare(3)
    dealt.fit(20)
    lengths = sorted(len(next(dealt).input_ids) for _ in range(11))
    assert lengths == [*range(1, 11), 15]
    next(dealt)
    assert dealt.too_long == 9


def test_a_study_goes_on_after_the_prompt_that_was_used_last_whatever_was_passed_over(tmp_path: Path) -> None:
    entries = [{"prompt": " ".join(["word"] * words)} for words in range(1, 21)]
    whole = feed(tmp_path, *entries)
    whole.fit(20)
    before = [next(whole) for _ in range(4)]
    resumed = feed(tmp_path, *entries, start=whole.position)
    resumed.fit(20)
    after = [next(resumed) for _ in range(6)]
    assert len({prompt.prompt.text for prompt in before + after}) == 10


def test_no_prompt_that_fits_is_an_error_in_numbers(tmp_path: Path) -> None:
    dealt = feed(tmp_path, {"prompt": "a b c"}, {"prompt": "d e f"})
    dealt.fit(12)
    with pytest.raises(SpectuneError, match="has 3 tokens and may be answered with 10, but the engine's context is 12"):
        next(dealt)


def test_levels_become_arrivals(tmp_path: Path) -> None:
    name = asked(tmp_path, {"prompt": "a", "timestamp": 3}, {"prompt": "b", "timestamp": 5})
    given = space(tmp_path, name, "{concurrency: 4}, {rate: 2.5}, {trace: 10}")
    workload = open_prompts(given)
    plans = [level_plan(given, level, workload, hang_s=9.0) for level in given.workload.levels]
    assert [plan.arrivals for plan in plans] == [ClosedLoop(4), Poisson(2.5), Trace((3.0, 5.0), 10.0)]
    assert plans[0].sampling.output_tokens == 64
    assert given.workload.level_names == ("c4", "r2.5", "t10")
    assert [level.file_name for level in given.workload.levels] == [
        "level-c004.jsonl", "level-r2.5.jsonl", "level-t10.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize("entries", [[{"prompt": "a"}, {"prompt": "b"}], [{"prompt": x, "timestamp": 1} for x in "ab"]])
def test_a_trace_needs_timestamps(tmp_path: Path, entries: list[object]) -> None:
    with pytest.raises(InputProblems, match=r"space\.yaml:6: a trace level needs one file of prompts"):
        open_prompts(space(tmp_path, asked(tmp_path, *entries), "{trace: 1}"))


def test_what_is_asked_is_said_before_the_study(tmp_path: Path) -> None:
    entries = [{"prompt": "word " * (i + 1), "class": "b" if i < 2 else "a"} for i in range(20)]
    given = space(tmp_path, asked(tmp_path, *entries, entries[0]), "{concurrency: 30}")
    said = summary(given, open_prompts(given), Words())
    assert said.lines() == [
        "prompts: b 10% (2), a 90% (18); duplicates removed: 1",
        "length: median 10 tokens (90 % between 2 and 19, longest seen 20)",
        "note: b has only 2 prompts: the same one is in flight several times at once",
        "note: a has only 18 prompts: the same one is in flight several times at once",
    ]
    data = summary(given, open_prompts(given)).to_json()
    assert data["classes"]["a"] == {"share": 0.9, "distinct": 18}
    assert data["length_characters"]["longest"] == 100


def test_a_shared_prefix_is_said_and_sent(tmp_path: Path) -> None:
    given = space(tmp_path, "builtin:tiny\n  shared_prefix: {characters: 500, share: 0.5}")
    said = summary(given, open_prompts(given))
    assert said.lines()[-1] == "50% of the requests begin with the shared prefix: cached tokens are expected"
    assert said.lengths.longest > 500
    assert given.workload.shares_text


def test_where_a_percentile_counts_the_whole_time_is_measured(tmp_path: Path) -> None:
    levels = "{concurrency: 1}, {concurrency: 4}, {rate: 2}"
    goals = (
        "objectives: [{maximize: decode_speed, level: c1}, {minimize: ttft_p95_ms, level: r2}]\n"
        "constraints: [{itl_p95_ms: {max: 50}, level: c4}]\n"
    )
    given = parse_space(SPACE % ("builtin:tiny", levels) + goals, tmp_path / "space.yaml")
    workload = open_prompts(given)
    plans = [level_plan(given, level, workload, hang_s=9.0) for level in given.workload.levels]
    assert [plan.precision for plan in plans] == [given.workload.precision, 0.0, 0.0]
