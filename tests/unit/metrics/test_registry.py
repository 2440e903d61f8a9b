"""The registry: names, misspellings, metrics of a program's own, and those of installed packages."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import pytest

import ragtrace
from ragtrace.errors import ConfigError
from ragtrace.metrics import EvalContext, MetricSpec, Output, evaluate, registry
from ragtrace.model import ERROR_REASONS, NA_REASONS, MetricResult, RagRecord
from ragtrace.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _fresh(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    return


def declared(name="own", outputs=("own",), aliases=()) -> MetricSpec:
    return MetricSpec(
        name=name,
        aliases=aliases,
        summary="A metric of the test.",
        needs=(),
        outputs=tuple(Output(name=output) for output in outputs),
        calls="none",
        source="the test",
    )


class Own:
    spec = declared()

    async def compute(self, case):
        return [MetricResult(name="own", state="ok", value=0.25)]


def test_every_metric_has_a_whole_spec() -> None:
    names: list[str] = []
    for name, metric in registry.all_metrics().items():
        spec = metric.spec
        assert spec.name == name
        assert spec.summary.endswith(".")
        assert spec.calls
        assert spec.source
        names += {name, *spec.aliases, *(output.name for output in spec.outputs)}
        for output in spec.outputs:
            assert output.low < output.high
            assert (output.threshold is None) or output.low <= output.threshold <= output.high
            assert registry.output(output.name) is output
    assert len(names) == len(set(names))


async def test_every_metric_gives_each_output_once_on_an_empty_record() -> None:
    for metric in registry.all_metrics().values():
        results = await evaluate([metric], EvalContext(RagRecord(id="1")))
        assert [result.name for result in results] == [output.name for output in metric.spec.outputs]
        for result in results:
            if result.state != "ok":
                assert result.reason.startswith("missing_input:") or result.reason in NA_REASONS | ERROR_REASONS


def test_the_metrics_of_the_settings_are_metrics_by_their_own_names() -> None:
    names = Settings().metrics
    assert [metric.spec.name for metric in registry.select(names)] == list(names)


def test_all_and_aliases_and_outputs() -> None:
    over_runs = registry.select(["bertscore_consistency", "rouge_consistency", "score_consistency"])
    assert [*registry.select(["all"]), *over_runs] == list(registry.all_metrics().values())
    chosen = registry.select(["answered", "context_utilization", "citation_f1", "ndcg_at_k@10", "citations"])
    assert [metric.spec.name for metric in chosen] == ["no_answer", "context_precision", "citations", "ndcg"]


@pytest.mark.parametrize(
    ("names", "hint"), [(["faithfullness"], "did you mean 'faithfulness'"), (["zzz"], "valid:"), ([], "no metric")]
)
def test_an_unknown_name_is_one_line_with_the_nearest(names, hint) -> None:
    with pytest.raises(ConfigError) as caught:
        registry.select(names)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_output_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'mrr'"):
        registry.output("mrrr")


async def test_a_metric_of_the_program_is_selected_and_run() -> None:
    assert registry.metric(Own) is Own
    results = await evaluate(registry.select(["own"]), EvalContext(RagRecord(id="1")))
    assert (results[0].value, results[0].passed) == (0.25, False)


def test_a_metric_may_be_registered_again_but_never_take_a_name() -> None:
    registry.metric(Own())
    again = Own()
    registry.metric(again)
    assert registry.all_metrics()["own"] is again
    for spec in (
        declared("mrr"),
        declared("other", ("p_at_k",)),
        declared("other", ("fine",), aliases=("own",)),
        declared("other", ("fine",), aliases=("all",)),
    ):
        taker = Own()
        taker.spec = spec
        with pytest.raises(ConfigError, match="is taken"):
            registry.metric(taker)


def test_something_else_is_no_metric() -> None:
    with pytest.raises(ConfigError, match="needs a spec"):
        registry.metric(object())


def test_an_installed_metric_is_found_by_name(tmp_path) -> None:
    (tmp_path / "third_party.py").write_text(
        textwrap.dedent("""
        from ragtrace.metrics.base import MetricSpec, Output
        from ragtrace.model import MetricResult

        class Metric:
            spec = MetricSpec(name="theirs", summary="Theirs.", needs=(), calls="none", source="x",
                                      outputs=(Output(name="theirs"),))
            async def compute(self, case):
                return [MetricResult(name="theirs", state="ok", value=1.0)]
        """)
    )
    info = tmp_path / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ragtrace.metrics]\ntheirs = third_party:Metric\nbroken = third_party:No\n"
    )
    script = """
    from ragtrace.errors import ConfigError
    from ragtrace.metrics import select
    print(select(["theirs"])[0].spec.name)
    try:
        select(["broken"])
    except ConfigError as error:
        print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(script)}"],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first == "theirs"
    assert second.startswith("metric 'broken' of third_party:No cannot be loaded")


def test_a_chosen_metric_loads_no_other() -> None:
    script = (
        "import sys\nfrom ragtrace.metrics import select\nselect(['mrr'])\n"
        "print('ragtrace.metrics.answer.citations' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def length_of_answer(ctx) -> float:
    """Characters of the answer.

    At most 2000.
    """
    return float(len(ctx.record.answer))


async def later(ctx) -> float:
    return 0.5


ANSWERED = RagRecord(id="1", answer="In Oslo.")


async def value_of(function, record=ANSWERED, **options) -> MetricResult:
    registry.metric(**{"needs": ("answer",), "name": "own", **options})(function)
    return (await evaluate(registry.select(["own"]), EvalContext(record)))[0]


async def test_a_function_is_a_metric_of_its_name_and_stays_a_function() -> None:
    made = registry.metric(needs=("answer",), range=(0, 2000), threshold=5, version=3)(length_of_answer)
    assert made is length_of_answer
    spec = registry.select(["length_of_answer"])[0].spec
    assert (spec.summary, spec.code_version) == ("Characters of the answer.", 3)
    assert spec.source.endswith("test_registry.length_of_answer")
    result = (await evaluate(registry.select(["length_of_answer"]), EvalContext(ANSWERED)))[0]
    assert (result.name, result.value, result.passed) == ("length_of_answer", 8.0, True)
    assert (await value_of(later)).value == 0.5


async def test_a_function_is_not_called_where_an_input_is_missing() -> None:
    result = await value_of(lambda _: 1 / 0, RagRecord(id="1", answer=" "))
    assert (result.state, result.reason) == ("na", "no_answer")


@pytest.mark.parametrize(
    ("value", "state", "found"),
    [
        (True, "ok", 1.0),
        (np.float32(0.5), "ok", 0.5),
        (None, "na", "missing_input:value"),
        ("no_contexts", "na", "no_contexts"),
        ("judge_error", "error", "judge_error"),
        ("0.5", "error", "internal_error"),
        (float("nan"), "error", "internal_error"),
        (float("inf"), "error", "internal_error"),
        (1.01, "error", "internal_error"),
        ([0.5], "error", "internal_error"),
        (10**400, "error", "internal_error"),
    ],
)
async def test_only_a_number_in_the_range_becomes_a_value(value, state, found) -> None:
    result = await value_of(lambda _: value)
    assert (result.state, result.value if state == "ok" else result.reason) == (state, found)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda: 1.0, {}, "a function of one argument"),
        (lambda _a, _b: 1.0, {}, "a function of one argument"),
        (Own, {}, "a function of one argument"),
        (length_of_answer, {"needs": ("label",)}, "did you mean 'labels'"),
        (length_of_answer, {"needs": "answer"}, "a tuple of inputs"),
        (length_of_answer, {"needs": ("runs",)}, "got 'runs'"),
        (length_of_answer, {"range": (1, 0)}, "the lower one first"),
        (length_of_answer, {"range": (0, float("nan"))}, "the lower one first"),
        (length_of_answer, {"range": 5}, "the lower one first"),
        (length_of_answer, {"threshold": 2}, "outside the range"),
        (length_of_answer, {"direction": "left"}, "'up' or 'down'"),
        (length_of_answer, {"name": "all"}, "is taken"),
        (length_of_answer, {"name": "mrr"}, "is taken"),
        (length_of_answer, {"name": "own@5"}, "comma or @"),
    ],
)
def test_a_wrong_function_metric_is_refused_in_one_line(function, options, message) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        registry.metric(**{"needs": ("answer",), "name": "own", **options})(function)
    assert "\n" not in str(caught.value)


def test_a_function_without_needs_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs its inputs"):
        registry.metric(length_of_answer)


def test_each_file_of_a_room_with_a_metric_is_named_after_it() -> None:
    for name, metric in registry._built_in().items():
        assert registry._modules()[name].rpartition(".")[2] == metric.spec.name


def test_the_facade_exports_all_that_a_metric_takes() -> None:
    assert (ragtrace.MetricSpec, ragtrace.Output, ragtrace.EvalContext) == (MetricSpec, Output, EvalContext)
    assert (ragtrace.MetricResult, ragtrace.metric) == (MetricResult, registry.metric)
