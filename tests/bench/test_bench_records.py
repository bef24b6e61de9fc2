import json
from dataclasses import asdict

import orjson
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.records import CLIENT_ABORT, RequestRecord, dump_records

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
def test_a_level_file_has_a_line_for_each_record_with_all_that_is_known_of_it(records):
    lines = [orjson.loads(line) for line in dump_records(records).splitlines()]
    assert lines == [json.loads(json.dumps(asdict(record))) for record in records]


def test_closed_by_the_client_is_neither_completed_nor_failed():
    values = dict.fromkeys(RequestRecord.__slots__, 0) | {"chunks": (), "error": None, "finish_reason": CLIENT_ABORT}
    record = RequestRecord(**values)
    assert not record.completed
    assert not record.failed
