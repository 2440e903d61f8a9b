"""When traces close, what late spans do, and that every token comes back as often as it was taken."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest import AssembledTrace, Assembler, AssemblyLimits, RawSpan

RESOURCE = Resource()
ROOT = b"root-id."


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def span(trace: int, name: str, *, is_root: bool = False, text: str = "", flags: int = 0) -> RawSpan:
    span_id = ROOT if is_root else name.encode().ljust(8, b".")
    parent = b"" if is_root else ROOT
    made = Span(trace_id=trace.to_bytes(16, "big"), span_id=span_id, parent_span_id=parent, name=name, flags=flags)
    made.status.message = text
    return RawSpan(made, RESOURCE, "lib")


def assembler(**limits: float) -> tuple[Assembler, Clock]:
    clock = Clock()
    return Assembler(AssemblyLimits(**limits), clock=clock), clock  # type: ignore[arg-type] # numbers of both kinds


def names(trace: AssembledTrace) -> list[str]:
    return [raw.span.name for raw in trace.spans]


def test_a_trace_with_its_root_closes_once_it_was_quiet_for_the_settle_time() -> None:
    made, clock = assembler()
    made.put([span(1, "child"), span(1, "root", is_root=True)])
    clock.now = 8.0
    made.put([span(1, "slow")])
    assert made.due(17.9) == []
    (trace,) = made.due(18.0)
    assert (trace.end, trace.revision, names(trace)) == ("complete", 0, ["child", "root", "slow"])
    assert made.due(1_000.0) == []


def test_a_trace_without_a_root_closes_after_the_longest_wait_and_is_counted() -> None:
    made, clock = assembler()
    made.put([span(1, "a")])
    clock.now = 299.0
    made.put([span(1, "b")])
    assert made.due(299.9) == []
    (trace,) = made.due(300.0)
    assert (trace.end, names(trace)) == ("no_root", ["a", "b"])
    assert made.take_counts()["no_root"] == 1


def test_a_trace_that_never_rests_closes_after_the_longest_wait() -> None:
    made, clock = assembler()
    made.put([span(1, "root", is_root=True)])
    for second in range(0, 300, 5):
        clock.now = float(second)
        made.put([span(1, f"s{second}")])
        assert made.due() == []
    assert [trace.end for trace in made.due(300.0)] == ["complete"]


def test_a_span_of_a_remote_parent_counts_as_root() -> None:
    made, _ = assembler()
    made.put([span(1, "server", flags=0x300)])
    assert [trace.end for trace in made.due(10.0)] == ["complete"]
    made.put([span(2, "child", flags=0x100)])
    assert made.due(10.0) == []


def test_a_late_span_makes_one_revision_with_the_spans_of_before() -> None:
    made, clock = assembler()
    made.put([span(1, "root", is_root=True), span(1, "a", text="x" * 500)])
    (first,) = made.due(10.0)
    made.keep(first, {"root": "digest"})
    clock.now = 100.0
    made.put([span(1, "a")])
    assert made.take_counts()["duplicate"] == 1
    made.put([span(1, "late")], token="offset")
    assert made.due(109.0) == []
    (second,) = made.due(110.0)
    assert (second.revision, second.digests, second.tokens) == (1, {"root": "digest"}, ("offset",))
    assert names(second) == ["root", "a", "late"]
    assert second.spans[1].span.status.message == "x" * 500
    made.keep(second, {})
    clock.now = 120.0
    made.put([span(1, "later")])
    assert made.due(1_000.0) == []
    assert made.take_counts()["late"] == 1


def test_late_spans_of_a_trace_that_is_not_kept_are_counted_and_open_nothing() -> None:
    made, clock = assembler()
    made.put([span(1, "root", is_root=True)])
    assert len(made.due(10.0)) == 1
    clock.now = 20.0
    made.put([span(1, "late")])
    assert (made.open_traces, made.take_counts()["late"]) == (0, 1)
    made.due(910.0)  # the time for late spans is over, so that this one begins another trace
    made.put([span(1, "other")])
    assert made.open_traces == 1


def test_a_missing_root_that_comes_late_makes_the_revision_complete() -> None:
    made, clock = assembler()
    made.put([span(1, "child")])
    (first,) = made.due(300.0)
    made.keep(first, {})
    clock.now = 400.0
    made.put([span(1, "root", is_root=True)])
    assert [(trace.end, trace.revision) for trace in made.due(410.0)] == [("complete", 1)]


def test_the_same_span_twice_is_one() -> None:
    made, _ = assembler()
    made.put([span(1, "root", is_root=True), span(1, "root", is_root=True)])
    assert [names(trace) for trace in made.due(10.0)] == [["root"]]
    assert made.take_counts()["duplicate"] == 1


def test_spans_without_valid_ids_are_rejected() -> None:
    made, _ = assembler()
    bad = RawSpan(Span(trace_id=b"short", span_id=b"12345678"), RESOURCE)
    zero = RawSpan(Span(trace_id=bytes(16), span_id=b"12345678"), RESOURCE)
    assert made.put([bad, zero, span(1, "a")]).rejected == 2


def test_beyond_its_bounds_the_oldest_trace_is_given_up_and_says_so() -> None:
    made, _ = assembler(traces=2)
    for trace in (1, 2, 3):
        made.put([span(trace, "root", is_root=True)], token=trace)
    assert made.fill == 1.0
    (given_up,) = made.due(0.0)
    assert (given_up.end, given_up.tokens, given_up.spans) == ("evicted", (1,), [])
    assert made.take_counts()["evicted"] == 1
    assert [trace.trace_id[-1] for trace in made.due(10.0)] == [2, 3]
    assert made.fill == 0.0


def test_bytes_are_bounded_for_all_traces_and_for_one() -> None:
    made, _ = assembler(size_bytes=100_000, trace_bytes=20_000)
    for trace in range(1, 30):
        made.put([span(trace, f"s{i}", text="x" * 1_000) for i in range(40)])
        assert made.fill <= 1.0
    counts = made.take_counts()
    assert counts["oversized"] > 0
    assert counts["evicted"] > 0


def test_a_resource_counts_once_for_all_the_traces_that_share_it() -> None:
    made, clock = assembler(size_bytes=1_000_000)
    shared = Resource(attributes=[KeyValue(key="big", value=AnyValue(string_value="x" * 200_000))])
    for trace in range(1, 21):
        made.put([span(trace, "root", is_root=True)._replace(resource=shared)])
    assert 0.2 < made.fill < 0.3
    assert made.take_counts()["evicted"] == 0
    for trace in range(21, 31):
        own = Resource(attributes=[KeyValue(key="big", value=AnyValue(string_value=f"{trace}" + "x" * 200_000))])
        made.put([span(trace, "root", is_root=True)._replace(resource=own)])
    assert made.fill <= 1.0
    assert made.take_counts()["evicted"] >= 25
    clock.now = 10.0
    made.due()
    assert made.fill == 0.0


def test_the_name_of_a_scope_counts() -> None:
    made, _ = assembler(size_bytes=1_000_000)
    for trace in range(1, 31):
        made.put([span(trace, "root", is_root=True)._replace(scope=f"{trace}" + "s" * 200_000)])
    assert (made.fill <= 1.0, made.open_traces) == (True, 4)


def test_resources_of_tiny_attributes_count_as_they_will_be_parsed() -> None:
    made, _ = assembler(trace_bytes=2_000_000)
    for number in range(1, 20):
        tiny = Resource(attributes=[KeyValue()] * (5_000 + number))
        made.put([span(1, f"s{number}")._replace(resource=tiny)])
    assert made.take_counts()["oversized"] == 15


def test_a_million_tiny_traces_are_counted_by_what_their_objects_take() -> None:
    made, _ = assembler(size_bytes=10_000_000)
    for start in range(1, 30_000, 1_000):
        made.put(
            [
                RawSpan(Span(trace_id=n.to_bytes(16, "big"), span_id=ROOT), RESOURCE)
                for n in range(start, start + 1_000)
            ]
        )
    assert made.open_traces < 10_000
    assert made.fill <= 1.0


def test_closed_traces_make_room_for_open_ones() -> None:
    made, _ = assembler(size_bytes=1_000_000, kept_bytes=900_000)
    rng = random.Random(1)
    for trace in range(1, 31):
        made.put([span(trace, "root", is_root=True, text=rng.randbytes(12_000).hex())])
    for trace in made.due(10.0):
        made.keep(trace, {})
    made.take_counts()
    for trace in range(101, 131):
        made.put([span(trace, "root", is_root=True, text="x" * 25_000)])
    assert made.take_counts()["evicted"] == 0
    made.put([span(trace, "late") for trace in range(1, 31)])
    assert 0 < made.take_counts()["late"] < 30


def test_late_spans_of_many_closed_traces_unpack_none_of_them() -> None:
    """A closed trace of 1 MB takes 5 kB; all at once they would take 100 MB."""
    made, clock = assembler(size_bytes=2_500_000)
    for trace in range(1, 101):
        made.put([span(trace, "root", is_root=True, text="x" * 1_000_000)])
        (closed,) = made.due(clock.now + 10.0)
        made.keep(closed, {})
    clock.now = 20.0
    made.put([span(trace, "late") for trace in range(1, 101)])
    assert (made.open_traces, made.fill < 0.5) == (100, True)
    assert {(trace.revision, len(trace.spans)) for trace in made.due(40.0)} == {(1, 2)}


def test_spans_with_more_nested_messages_than_a_trace_may_have_are_not_read() -> None:
    made, _ = assembler()
    for number in range(40):
        large = span(1, f"s{number}", is_root=not number)
        large.span.events.extend([Span.Event()] * 30_000)
        made.put([large])
    (trace,) = made.due(10.0)
    assert (trace.size, len(trace.spans), len(list(trace.spans))) == (40, 16, 16)


def test_a_batch_of_large_traces_is_small() -> None:
    made, _ = assembler(trace_bytes=100_000)
    for trace in range(1, 21):
        made.put([span(trace, "root", is_root=True, text="x" * 40_000)])
    assert [len(made.due(10.0, most=128)) for _ in range(3)] == [2, 2, 2]
    assert len(made.due(10.0)) == 14


def test_kept_traces_are_bounded() -> None:
    made, _ = assembler(kept_bytes=20_000)
    for trace in range(1, 30):
        made.put([span(trace, "root", is_root=True, text=str(trace) * 100)])
    for trace in made.due(10.0):
        made.keep(trace, {})
    for number in range(1, 30):
        made.put([span(number, "late")])
    assert 0 < made.open_traces < 20
    assert made.take_counts()["late"] == 29 - made.open_traces


def test_at_the_end_traces_with_a_root_are_complete_and_others_given_up() -> None:
    made, _ = assembler()
    made.put([span(1, "root", is_root=True), span(2, "child")])
    assert {trace.trace_id[-1]: trace.end for trace in made.due(is_ending=True)} == {1: "complete", 2: "shutdown"}


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from("abcr"), st.sampled_from((0.0, 1.0, 9.0, 40.0, 400.0))),
        max_size=60,
    ),
    st.integers(1, 3),
)
def test_every_token_comes_back_as_often_as_it_was_taken(
    steps: list[tuple[int, str, float]], most_traces: int
) -> None:
    made, clock = assembler(traces=most_traces)
    taken: Counter[object] = Counter()
    returned: Counter[object] = Counter()

    def take_back(found: list[AssembledTrace]) -> None:
        for trace in found:
            returned.update(trace.tokens)
            made.keep(trace, {})

    for token, (number, name, wait) in enumerate(steps):
        clock.now += wait
        holders = made.put([span(number, name, is_root=name == "r"), span(5, name)], token=token).holders
        taken.update({token: holders} if holders else {})
        take_back(made.due())
    take_back(made.due(is_ending=True))
    assert taken == returned
    assert (made.fill, made.open_traces) == (0.0, 0)


def test_a_batch_of_complete_traces_leaves_the_others_within_the_bounds() -> None:
    made, _ = assembler(traces=10)
    for trace in range(1, 6):
        made.put([span(trace, "root", is_root=True)])
    assert [len(made.due(10.0, most=2)) for _ in range(4)] == [2, 2, 1, 0]
    assert made.fill == 0.0
