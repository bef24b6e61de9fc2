import re

from export_samples import SPECULATIVE
from hypothesis import given
from hypothesis import strategies as st

from spectune.export.file_names import LONGEST, candidate_names
from spectune.space import Candidate

EAGLE3 = Candidate.of(SPECULATIVE)


def test_a_name_tells_algorithm_drafter_and_shape():
    assert candidate_names([EAGLE3]) == ["eagle3-drafter-strong-s3-k1-n4"]


def test_a_hub_drafter_is_named_by_its_last_part():
    hub = Candidate.of({**SPECULATIVE, "speculative-draft-model-path": "org/Drafter_A"})
    assert candidate_names([hub]) == ["eagle3-drafter-a-s3-k1-n4"]


def test_an_algorithm_without_drafter_or_steps():
    ngram = Candidate.of({"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 8})
    assert candidate_names([ngram]) == ["ngram-n8"]


def test_baselines_say_that_they_do_not_speculate():
    assert candidate_names([Candidate.of({"speculative-algorithm": "none", "page-size": 1})]) == ["no-speculation"]


def test_candidates_that_differ_in_the_rest_get_their_ids():
    other = Candidate.of({**SPECULATIVE, "page-size": 16})
    names = candidate_names([EAGLE3, other])
    assert names == [f"eagle3-drafter-strong-s3-k1-n4-{candidate.candidate_id[:6]}" for candidate in (EAGLE3, other)]


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)  # no program takes NUL


@given(st.lists(st.tuples(texts, texts, st.integers(1, 9)), min_size=1, unique=True))
def test_names_are_safe_whatever_models_are_called(parts):
    candidates = {
        Candidate.of(
            {
                "speculative-algorithm": algorithm,
                "speculative-draft-model-path": drafter,
                "speculative-num-steps": steps,
            }
        )
        for algorithm, drafter, steps in parts
    }
    names = candidate_names(sorted(candidates, key=lambda candidate: candidate.candidate_id))
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name)
        assert len(name) <= LONGEST + 7
        assert ".." not in name.replace("...", "..") or "/" not in name
