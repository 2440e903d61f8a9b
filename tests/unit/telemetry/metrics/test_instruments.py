"""Every metric: what is created, counted, summed, observed and absent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragtrace import semconv
from ragtrace.capture import Recorder, record_internal_error
from ragtrace.model import SIGNS, JudgeInfo, MetricResult, RagRecord, Reading, Scale, Sign, Source, Usage
from ragtrace.stats import clustered_interval
from ragtrace.telemetry.metrics import instruments as module
from tests.unit.telemetry.runs import MS, T0, Taken, score, support_run

UNIT = Scale(threshold=0.8)
SCALES = {"faithfulness": UNIT}
JUDGE = JudgeInfo(model="overlap", prompt_hash="abcd0123")
RECORD = RagRecord(id="1", trace_id="0" * 31 + "a", span_id="0" * 15 + "b", workflow="support", model="gpt-x")
SERIES = {
    "gen_ai.evaluation.name": "faithfulness",
    "gen_ai.workflow.name": "support",
    "gen_ai.request.model": "gpt-x",
    "ragtrace.evaluator": "ragtrace",
    "ragtrace.judge.model": "overlap",
    "ragtrace.judge.version": "0a1b2c3d",
    "ragtrace.stratum": "random",
}


def Instruments(meters, **options):  # noqa: N802 - as the service has it, once it is built
    made = module.Instruments(meters, **options)
    made.take_gauges()
    return made


class Metered:
    """A meter, and what it collects."""

    def __init__(self):
        self.reader = InMemoryMetricReader()
        self.meter = MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False).get_meter("ragtrace")

    def collect(self):
        data = self.reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                found |= {metric.name: metric for metric in scope.metrics}
        return found

    def points(self, name):
        found = self.collect().get(name)
        return [] if found is None else list(found.data.data_points)

    def values(self, name):
        return [(dict(p.attributes), p.value) for p in self.points(name)]


@pytest.fixture
def metered():
    return Metered()


@pytest.fixture
def instruments(metered):
    return Instruments([metered.meter])


def faith(value=0.75, **facts):
    passed = UNIT.passes(value) if facts.get("state", "ok") == "ok" else None
    return score(value=value, judge=JUDGE, **{"passed": passed, **facts})


def test_the_table_names_every_instrument_once_by_the_naming_rule():
    names = [it.name for it in semconv.METRICS]
    assert len(set(names)) == len(names)
    for it in semconv.METRICS:
        assert it.unit == "s" or it.unit.startswith("{") or (it.unit == "1" and it.name.endswith(".ratio"))
        assert bool(it.boundaries) == (it.kind == "histogram")
        assert it.description.endswith(".")
    assert len({it.prometheus for it in semconv.METRICS}) == len(names)


def test_kinds_units_and_boundaries_as_created(metered, instruments):
    _, captured = support_run()
    instruments.operations(captured)
    instruments.scored(RECORD, [faith()], SCALES, is_recorded=True)
    instruments.evaluated(RECORD, [faith()], duration_s=0.2, lag_s=1.5)
    found = metered.collect()
    table = {it.name: it for it in semconv.METRICS}
    for name, metric in found.items():
        assert metric.unit == table[name].unit
        assert metric.description == table[name].description
    assert tuple(found["ragtrace.evaluation.score"].data.data_points[0].explicit_bounds) == semconv.SCORE_BOUNDARIES
    assert semconv.SCORE_BOUNDARIES[:2] == (0.0, 0.05)
    assert semconv.SCORE_BOUNDARIES[-1] == 1.0


def test_the_weighted_sums(metered, instruments):
    for session, value, weight in (("a", 0.5, 20.0), ("b", 1.0, 10.0)):
        instruments.scored(
            replace(RECORD, session=session), [faith(value, weight=weight)], SCALES, is_recorded=True
        )
    expected = {"n": 2.0, "w": 30.0, "wx": 20.0, "w2": 500.0, "w2x": 300.0, "w2x2": 200.0, "low.w": 20.0}
    for name, value in expected.items():
        assert metered.values(f"ragtrace.score.{name}") == [(SERIES, value)]


@pytest.mark.parametrize("same", [{"session": "s"}, {"query": "How do I  cancel?"}])
def test_turns_of_a_session_and_a_repeated_question_are_one_cluster(metered, instruments, same):
    for number, (value, weight) in enumerate(((0.5, 20.0), (1.0, 10.0))):
        record = replace(RECORD, trace_id=f"{number:032x}", **same)
        instruments.scored(record, [faith(value, weight=weight)], SCALES, is_recorded=True)
    instruments.scored(replace(RECORD, session="other"), [faith(1.0, weight=2.0)], SCALES, is_recorded=True)
    expected = {"n": 3.0, "w": 32.0, "wx": 22.0, "w2": 904.0, "w2x": 604.0, "w2x2": 404.0, "low.w": 20.0}
    for name, value in expected.items():
        assert metered.values(f"ragtrace.score.{name}") == [(SERIES, value)]


def test_forced_scores_and_unknown_weights_enter_no_sum_and_no_window(metered, instruments):
    instruments.scored(RECORD, [faith(stratum="forced")], SCALES, is_recorded=True)
    instruments.scored(RECORD, [faith(weight=None)], SCALES, is_recorded=True)
    found = metered.collect()
    assert "ragtrace.score.n" not in found
    assert "ragtrace.evaluation.score.window.mean" not in found
    strata = {
        p.attributes["ragtrace.stratum"]: p.count for p in found["ragtrace.evaluation.score"].data.data_points
    }
    assert strata == {"forced": 1, "random": 1}


def test_a_metric_that_can_be_negative_has_the_window_alone(metered, instruments):
    instruments.scored(
        RECORD,
        [score("answer_similarity", -0.5)],
        {"answer_similarity": Scale(low=-1.0, threshold=0.8)},
        is_recorded=True,
    )
    found = metered.collect()
    assert "ragtrace.score.n" not in found
    assert "ragtrace.evaluation.score" not in found
    assert found["ragtrace.evaluation.score.window.mean"].data.data_points[0].value == -0.5


def test_a_metric_of_a_wide_range_has_sums_and_sane_intervals(metered):
    instruments, scales = Instruments([metered.meter]), {"answer_words": Scale(high=2_000.0)}
    for session, value in enumerate((2.0, 3.0, 3.0, 4.0)):
        record = replace(RECORD, session=str(session))
        instruments.scored(record, [score("answer_words", value, weight=1.0)], scales, is_recorded=True)
    found = metered.collect()
    assert "ragtrace.evaluation.score" not in found, "its buckets end at 1"
    assert metered.values("ragtrace.score.wx")[0][1] == 12.0
    bounds = [metered.values(f"ragtrace.evaluation.score.window.{name}")[0][1] for name in ("low", "high")]
    assert bounds == pytest.approx(clustered_interval([2.0, 3.0, 3.0, 4.0], ends=None)[1:])
    assert bounds[1] - bounds[0] < 8.0


def test_a_one_to_five_form_is_exported_between_0_and_1(metered, instruments):
    instruments.scored(
        RECORD, [score("grade", 4.0)], {"grade": Scale(low=1.0, high=5.0, threshold=0.5)}, is_recorded=True
    )
    assert metered.values("ragtrace.score.wx")[0][1] == 15.0


@pytest.mark.parametrize(
    ("facts", "outcome", "reason"),
    [
        ({}, "ok", None),
        ({"state": "na", "reason": "no_labels"}, "na", "no_labels"),
        ({"state": "error", "reason": "judge_timeout"}, "error", "judge_timeout"),
    ],
)
def test_outcomes(metered, instruments, facts, outcome, reason):
    instruments.scored(RECORD, [faith(**facts)], SCALES, is_recorded=True)
    ((attributes, value),) = metered.values("ragtrace.evaluations")
    assert (attributes["ragtrace.outcome"], attributes.get("ragtrace.reason"), value) == (outcome, reason, 1)
    assert ("ragtrace.score.n" in metered.collect()) == (outcome == "ok")


def test_an_exemplar_carries_the_evaluated_trace(metered, instruments):
    instruments.scored(RECORD, [faith()], SCALES, is_recorded=True)
    (exemplar,) = metered.points("ragtrace.evaluation.score")[0].exemplars
    assert (exemplar.trace_id, exemplar.span_id, exemplar.value) == (0xA, 0xB, 0.75)


def test_no_exemplar_for_a_trace_that_was_not_exported(metered, instruments, spans):
    with spans.tracer.start_as_current_span("the scorer's own"):
        instruments.scored(RECORD, [faith()], SCALES, is_recorded=False)
    assert not metered.points("ragtrace.evaluation.score")[0].exemplars


def test_label_sets_exist_at_zero_before_the_first_score(metered, instruments):
    instruments.precreate_metric(
        MetricResult(name="faithfulness", state="na", reason="no_answer", judge=JUDGE, version="0a1b2c3d"),
        UNIT,
    )
    instruments.precreate(RECORD.workflow, RECORD.model)
    for name in ("n", "w", "wx", "w2", "w2x", "w2x2", "low.w"):
        assert metered.values(f"ragtrace.score.{name}") == [(SERIES, 0.0)]
    assert [value for _, value in metered.values("ragtrace.evaluations")] == [0]
    instruments.scored(RECORD, [faith()], SCALES, is_recorded=True)
    assert metered.values("ragtrace.score.n") == [(SERIES, 1.0)], "the score lands in the series that was created"
    assert [value for _, value in metered.values("ragtrace.evaluations")] == [1]


def test_the_label_k_is_bounded(metered, instruments):
    """An application names its cut-off, and a retriever with a threshold delivers any number of contexts."""
    for k in (*range(1, 200), -1, 1_001, 10**9, 1 << 70):
        instruments.scored(RECORD, [faith(k=k)], SCALES, is_recorded=True)
    labels = {point["ragtrace.k"]: value for point, value in metered.values("ragtrace.score.n")}
    assert labels == {**dict.fromkeys(range(1, 101), 1.0), "other": 103.0}


def test_a_new_workflow_gets_the_series_that_others_have(metered, instruments):
    instruments.scored(RECORD, [faith()], SCALES, is_recorded=True)
    instruments.precreate("sales", "gpt-x")
    values = {attributes["gen_ai.workflow.name"]: value for attributes, value in metered.values("ragtrace.score.n")}
    assert values == {"support": 1.0, "sales": 0.0}


def test_at_most_a_hundred_workflows(metered, instruments):
    for number in range(150):
        instruments.scored(RagRecord(id="x", workflow=f"w{number}"), [faith()], SCALES, is_recorded=False)
    names = {attributes["gen_ai.workflow.name"]: value for attributes, value in metered.values("ragtrace.score.n")}
    assert len(names) == 101
    assert names["other"] == 50.0


# -- window --


def test_window_gauges_are_absent_when_empty_and_gone_after_the_window(metered):
    now = [1_000.0]
    instruments = Instruments([metered.meter], window_s=60.0, clock=lambda: now[0])
    gauges = [f"ragtrace.evaluation.score.window.{name}" for name in ("mean", "low", "high")]
    gauges.append("ragtrace.evaluation.pass.ratio")
    assert not set(gauges) & set(metered.collect())
    instruments.scored(RECORD, [faith(0.5, weight=1.0)], SCALES, is_recorded=True)
    instruments.scored(RECORD, [faith(1.0, weight=3.0)], SCALES, is_recorded=True)
    found = {name: metered.values(name) for name in gauges}
    assert found[gauges[0]] == [(SERIES, 0.875)]
    assert found[gauges[3]] == [(SERIES, 0.75)]
    assert found[gauges[1]][0][1] < 0.875 < found[gauges[2]][0][1] <= 1.0
    now[0] += 61.0
    assert not set(gauges) & set(metered.collect())


def test_a_metric_without_a_threshold_has_no_pass_ratio_and_no_low_sum(metered, instruments):
    instruments.scored(RECORD, [faith(passed=None)], {}, is_recorded=True)
    found = metered.collect()
    assert "ragtrace.evaluation.pass.ratio" not in found
    assert "ragtrace.score.low.w" not in found


# -- the rest --


def test_traces_are_counted_from_zero(metered, instruments):
    for count in (0, 1):
        assert metered.values("ragtrace.traces") == [({"ragtrace.decision": "sampled"}, count)]
        instruments.traces("sampled", None)
    instruments.traces("dropped", "queue_full")
    dropped = {"ragtrace.decision": "dropped", "ragtrace.reason": "queue_full"}
    assert (dropped, 1) in metered.values("ragtrace.traces")


def test_what_scoring_took(metered, instruments):
    scores = [
        faith(llm_calls=2, input_tokens=900, output_tokens=80),
        faith(state="error", reason="judge_timeout", llm_calls=1),
    ]
    instruments.evaluated(RECORD, scores, duration_s=0.2, lag_s=1.5, cost_usd=0.01)
    calls = {attributes["ragtrace.outcome"]: value for attributes, value in metered.values("ragtrace.judge.calls")}
    assert calls == {"ok": 2, "error": 1}
    tokens = {
        attributes["gen_ai.token.type"]: value for attributes, value in metered.values("ragtrace.judge.tokens")
    }
    assert tokens == {"input": 900, "output": 80}
    assert metered.values("ragtrace.evaluation.cost")[0][1] == 0.01
    assert metered.points("ragtrace.evaluation.duration")[0].sum == 0.2
    assert metered.points("ragtrace.evaluation.lag")[0].sum == 1.5


@pytest.mark.parametrize("tokens", [2**62, 2**63, 10**400, -5], ids=["2^62", "2^63", "10^400", "-5"])
def test_no_count_of_a_judge_ends_the_export(metered, instruments, tokens):
    """A sum of 2^62 and 2^62 ended the export of every metric of the process."""
    for _ in range(4):
        scores = [faith(llm_calls=1, input_tokens=tokens, output_tokens=tokens)]
        instruments.evaluated(RECORD, scores, duration_s=0.2, lag_s=1.5)
    encoded = encode_metrics(metered.reader.get_metrics_data()).SerializeToString()
    assert semconv.JUDGE_TOKENS.encode() in encoded


def test_last_time_is_absent_before_the_first_score(metered, instruments):
    assert not metered.points("ragtrace.evaluation.last.time")
    instruments.scored(RECORD, [faith()], SCALES, is_recorded=True)
    assert metered.values("ragtrace.evaluation.last.time") == [({}, 1_700_000_002.0)]


def test_the_conventions_own_metrics(metered):
    _, captured = support_run()
    Instruments([metered.meter]).operations(captured)
    call = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-1",
    }
    assert sums(metered, "gen_ai.client.operation.duration") == [
        ({"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "faq"}, 0.01),
        (call, 0.5),
    ]
    assert sums(metered, "gen_ai.client.inference.duration") == [(call, 0.5)]
    assert sums(metered, "ragtrace.rerank.duration") == [({"gen_ai.request.model": "cross"}, 0.01)]
    assert not metered.points("gen_ai.client.embeddings.duration")
    counted = call | {"gen_ai.token.modality": "unknown"}
    assert metered.values("gen_ai.client.inference.usage.input_tokens") == [(counted, 900)]
    assert metered.values("gen_ai.client.inference.usage.output_tokens") == [(counted, 12)]
    assert {p.attributes["gen_ai.token.type"]: p.sum for p in metered.points("gen_ai.client.token.usage")} == {
        "input": 900,
        "output": 12,
    }
    assert metered.points("gen_ai.invoke_workflow.duration")[0].sum == pytest.approx(0.53)


def sums(metered, name):
    return [(dict(point.attributes), pytest.approx(point.sum)) for point in metered.points(name)]


def operated(metered, report):
    taken = Taken()
    with Recorder(taken).start(query="Q?", started_ns=T0) as run:
        report(run)
    ((_, captured),) = taken.runs
    Instruments([metered.meter]).operations(captured)


WHOLE_USAGE = Usage(
    input_tokens=100, output_tokens=20, cache_read_tokens=60, cache_write_tokens=30, reasoning_tokens=12
)


@pytest.mark.parametrize(
    ("call", "tokens"),
    [
        ({"usage": WHOLE_USAGE}, [100, 20, 60, 30, 12]),
        ({"error": TimeoutError()}, [0, 0, None, None, None]),
    ],
)
def test_tokens_of_a_call(metered, call, tokens):
    operated(metered, lambda run: run.generated(**call))
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "unknown",
        "gen_ai.token.modality": "unknown",
    }
    kinds = ("input", "output", "cache_read.input", "cache_write.input", "reasoning.output")
    for kind, count in zip(kinds, tokens, strict=True):
        expected = [] if count is None else [(about, count)]
        assert metered.values(f"gen_ai.client.inference.usage.{kind}_tokens") == expected
    (duration,) = metered.points("gen_ai.client.inference.duration")
    assert duration.attributes.get("error.type") == ("TimeoutError" if "error" in call else None)


def test_embeddings_have_a_duration_of_their_own_and_no_inference_tokens(metered):
    def report(run):
        usage = Usage(input_tokens=7)
        run.generated(
            operation="embeddings", model="e", provider="openai", usage=usage, started_ns=T0, ended_ns=T0 + 5 * MS
        )

    operated(metered, report)
    about = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "e",
    }
    assert sums(metered, "gen_ai.client.embeddings.duration") == [(about, 0.005)]
    assert not metered.points("gen_ai.client.inference.duration")
    assert not metered.points("gen_ai.client.inference.usage.input_tokens")


def test_a_search_that_fails_has_its_error_and_one_without_times_no_duration(metered):
    def report(run):
        run.retrieved(None, source="faq", started_ns=T0, ended_ns=T0 + 2 * MS, error=ConnectionError("down"))
        run.retrieved(["Oslo."], source="wiki")
        run.reranked(["Oslo."], model="cross")

    operated(metered, report)
    about = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "faq",
        "error.type": "ConnectionError",
    }
    assert sums(metered, "gen_ai.client.operation.duration") == [(about, 0.002)]
    assert not metered.points("ragtrace.rerank.duration")


def test_the_number_of_data_sources_is_bounded(metered):
    def report(run):
        for number in range(150):
            run.retrieved([], source=f"tenant-{number}", started_ns=T0, ended_ns=T0 + MS)

    operated(metered, report)
    sources = {p.attributes["gen_ai.data_source.id"] for p in metered.points("gen_ai.client.operation.duration")}
    assert (len(sources), "other" in sources) == (101, True)


def test_empty_retrievals(metered, instruments):
    for pool in ([], [{"id": "a", "text": "x"}]):
        instruments.operations(support_run(pool=pool, chosen=[])[1])
    assert metered.values("ragtrace.retrieval.empty") == [({"gen_ai.workflow.name": "support"}, 1)]


def test_runs_are_counted_once_under_each_of_their_signs(metered, instruments):
    unread, guessed = Sign("evidence_unread", "prompt"), Sign("tool_text_guessed", "search")
    found = Source("faq", "search", 3)
    for reading in (
        None,
        Reading(),
        Reading(signs=(unread, replace(unread, about="state.rows"), guessed)),
        Reading(signs=(guessed,), sources=(found,)),  # a guess beside evidence that was found: not signed
    ):
        instruments.run(replace(RECORD, reading=reading))
    about = {"gen_ai.workflow.name": RECORD.workflow}
    assert metered.values("ragtrace.runs") == [(about, 4)]
    points = metered.values("ragtrace.runs.signed")
    assert all(point.items() >= about.items() for point, _ in points)
    counted = {point["ragtrace.sign"]: value for point, value in points}
    assert counted == dict.fromkeys(SIGNS, 0) | {"evidence_unread": 1, "tool_text_guessed": 2, "any": 1}


def test_losses_are_exported_by_place(metered):
    Instruments([metered.meter])
    record_internal_error("tests.somewhere")
    assert ({"ragtrace.site": "tests.somewhere"}, 1) in metered.values("ragtrace.internal.losses")


def test_a_reader_that_raises_spoils_its_own_gauge_alone(metered, instruments):
    instruments.observe({semconv.CANARY_GAP: lambda: 1 / 0, semconv.BREAKER_STATE: lambda: [(2, {})]})
    found = metered.collect()
    assert "ragtrace.canary.gap" not in found
    assert found["ragtrace.judge.breaker.state"].data.data_points[0].value == 2


def test_a_second_configure_on_the_same_meter_takes_the_gauges_over(metered, caplog):
    old = Instruments([metered.meter])
    old.scored(RECORD, [faith(0.2)], SCALES, is_recorded=True)
    new = Instruments([metered.meter])
    new.scored(RECORD, [faith(0.9)], SCALES, is_recorded=True)
    assert [value for _, value in metered.values("ragtrace.evaluation.score.window.mean")] == [0.9]
    assert metered.values("ragtrace.score.n")[0][1] == 2.0
    old.close()
    assert metered.points("ragtrace.evaluation.score.window.mean")
    new.close()
    assert not metered.points("ragtrace.evaluation.score.window.mean")
    assert not caplog.records


def test_several_meters_get_the_same(metered):
    other = Metered()
    Instruments([metered.meter, other.meter]).scored(RECORD, [faith()], SCALES, is_recorded=True)
    for each in (metered, other):
        assert each.values("ragtrace.score.n") == [(SERIES, 1.0)]
        assert each.points("ragtrace.evaluation.score.window.mean")


def test_the_chunks_of_a_streamed_call_and_the_tokens_of_each_call(metered, instruments):
    run = Recorder(taken := Taken()).start(query="q")
    usage = Usage(input_tokens=900, output_tokens=12)
    run.generated(
        model="m", provider="p", first_chunk_s=0.25, chunks=6, usage=usage, started_ns=T0, ended_ns=T0 + 500 * MS
    )
    run.generated(model="m", provider="p", started_ns=T0, ended_ns=T0 + MS, error=TimeoutError())
    run.generated(model="m", provider="p", first_chunk_s=0.5, chunks=1, started_ns=T0, ended_ns=T0 + 500 * MS)
    run.finish()
    instruments.operations(taken.runs[0][1])
    call = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "p", "gen_ai.request.model": "m"}
    found = metered.collect()
    first, rest = found["gen_ai.client.inference.time_to_first_chunk"], found[semconv.CLIENT_OUTPUT_CHUNK]
    assert [(dict(p.attributes), p.count, p.sum) for p in first.data.data_points] == [(call, 2, 0.75)]
    assert [(dict(p.attributes), p.count) for p in rest.data.data_points] == [(call, 1)]
    assert rest.data.data_points[0].sum == pytest.approx(0.05)
    for name, sum_of in (("input_tokens", 900), ("output_tokens", 12)):
        points = found[f"gen_ai.client.inference.operation.{name}"].data.data_points
        counts = {point.attributes.get("error.type"): (point.count, point.sum) for point in points}
        assert counts == {None: (2, sum_of), "TimeoutError": (1, 0)}
        assert list(points[0].explicit_bounds)[:3] == [1.0, 4.0, 16.0]


def test_scores_are_told_apart_by_prompt(metered, instruments):
    of = [replace(RECORD, prompt_name="support", prompt_version=version) for version in ("3", "4")]
    for record in of:
        instruments.scored(record, [faith()], SCALES, is_recorded=False)
    named = {"gen_ai.prompt.name": "support"}
    expected = [SERIES | named | {"gen_ai.prompt.version": version} for version in ("3", "4")]
    assert [about for about, _ in metered.values("ragtrace.score.n")] == expected
    means = [about for about, _ in metered.values("ragtrace.evaluation.score.window.mean")]
    assert sorted(means, key=lambda about: about["gen_ai.prompt.version"]) == expected
