from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.sse import EventParser

payloads = st.lists(st.binary(min_size=1).filter(lambda b: not set(b) & set(b"\r\n") and b[:1] != b" "), max_size=8)


def cut(stream, places):
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


@given(payloads=payloads, ending=st.sampled_from([b"\n", b"\r\n"]), places=st.lists(st.integers(0, 10**6), max_size=30))
def test_events_come_out_the_same_wherever_the_stream_is_cut(payloads, ending, places):
    stream = b"".join(b"data: " + data + ending * 2 for data in payloads)
    parser = EventParser()
    assert [event for piece in cut(stream, places) for event in parser.feed(piece)] == payloads
    assert not parser.unfinished


@given(noise=st.lists(st.binary(), max_size=20))
def test_no_bytes_upset_the_parser(noise):
    one, other = EventParser(), EventParser()
    pieces = [event for piece in noise for event in one.feed(piece)]
    assert pieces == other.feed(b"".join(noise))
    assert one.unfinished == other.unfinished


def test_comments_other_fields_and_joined_lines():
    parser = EventParser()
    assert parser.feed(b": ping\n\nevent: x\nid: 3\ndata: one\ndata:two\n\n\n\ndata: half") == [b"one\ntwo"]
    assert parser.unfinished
    assert parser.feed(b"\n\n") == [b"half"]
