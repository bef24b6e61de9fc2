from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.records import CLIENT_ABORT, RequestRecord, dump_records, load_records
from spectune.errors import InputProblems

times = st.floats(0, 1e5)
counts = st.integers(0, 10**6)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
made = st.builds(
    RequestRecord,
    prompt_id=texts,
    prompt_class=texts,
    prompt_tokens=counts,
    output_tokens=counts,
    cached_tokens=counts,
    sent_s=times,
    first_token_s=st.none() | times,
    end_s=times,
    chunks=st.lists(st.tuples(times, counts), max_size=5).map(tuple),
    spec_verify_ct=counts,
    spec_num_correct_drafts=counts,
    spec_correct_drafts_histogram=st.lists(counts, max_size=6).map(tuple),
    finish_reason=st.none() | texts,
    error=st.none() | texts,
)


@given(records=st.lists(made, max_size=5))
def test_a_level_file_gives_back_what_was_written(records):
    assert load_records(dump_records(records)) == records


@given(records=st.lists(made, min_size=1, max_size=4), data=st.data())
def test_a_file_cut_anywhere_loses_its_last_line_only(records, data):
    content = dump_records(records)
    cut = content[: data.draw(st.integers(0, len(content)))]
    assert load_records(cut) == records[: cut.count(b"\n")]


def test_all_broken_lines_are_named_with_their_numbers():
    content = b'{"prompt_id": "a"}\n\nnot json\n'
    with pytest.raises(InputProblems) as caught:
        load_records(content, Path("level-c001.jsonl"))
    assert [problem.line for problem in caught.value.problems] == [1, 3]
    assert "level-c001.jsonl:3:" in str(caught.value)


def test_closed_by_the_client_is_neither_completed_nor_failed():
    values = dict.fromkeys(RequestRecord.__slots__, 0) | {"chunks": (), "error": None, "finish_reason": CLIENT_ABORT}
    record = RequestRecord(**values)
    assert not record.completed
    assert not record.failed
