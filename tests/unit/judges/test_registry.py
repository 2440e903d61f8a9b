from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from ragtrace.errors import ConfigError
from ragtrace.judges import JudgeParameters, LLMJudge, OpenAIEmbedder, ScriptedChat, registry


def factory(model: str | None, **settings: Any) -> LLMJudge:
    return LLMJudge(ScriptedChat(name=f"{model} {sorted(settings)}"))


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint("mine", f"{__name__}:factory", "ragtrace.judges"),
            EntryPoint("sick", "ragtrace_no_such_module:factory", "ragtrace.judges"),
        ]
    )
    monkeypatch.setitem(sys.modules, __name__, sys.modules[factory.__module__])
    monkeypatch.setattr(registry, "entry_points", lambda group: points.select(group=group))


def test_openai_judge() -> None:
    assert registry.make_judge("openai:gpt-4o-mini", JudgeParameters(api_key="k")).name == "openai:gpt-4o-mini"
    assert (
        registry.make_judge("openai:llama3:8b", JudgeParameters(base_url="http://localhost:1/v1")).name
        == "openai:llama3:8b"
    )
    assert isinstance(registry.make_embedder("openai:e", JudgeParameters(api_key="k")), OpenAIEmbedder)


@pytest.mark.parametrize("make", [registry.make_judge, registry.make_embedder])
@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ("openai:m", {}, "set OPENAI_API_KEY"),
        ("openai:m", {"api_key": " "}, "set OPENAI_API_KEY"),
        ("openai", {"api_key": "k"}, "needs a model"),
        ("openai:", {"api_key": "k"}, "needs a model"),
        ("overlap:x", {}, "has no models"),
        ("opnai:m", {}, "did you mean 'openai'"),
        ("", {}, "openai, overlap"),
    ],
)
def test_what_a_person_may_get_wrong(make: Any, spec: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make(spec, JudgeParameters(**settings))
    assert "\n" not in str(caught.value)


def test_forms_of_judging() -> None:
    made = registry.make_judge("openai:m", JudgeParameters(api_key="k", grading="umbrela"))
    plain = registry.make_judge("openai:m", JudgeParameters(api_key="k"))
    assert made.version("grades") != plain.version("grades")
    assert made.version("audit") == plain.version("audit")
    alone = registry.make_judge("openai:m", JudgeParameters(api_key="k", grade_batch=1))
    assert alone.version("grades") != plain.version("grades")


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize("name", ["overlap", "mine:m1"])
def test_a_scale_that_only_one_judge_has(name: str) -> None:
    with pytest.raises(ConfigError, match="grades on direct5 alone"):
        registry.make_judge(name, JudgeParameters(grading="umbrela"))


@pytest.mark.usefixtures("third_party")
def test_a_judge_of_a_third_party() -> None:
    judge = registry.make_judge("mine:m1", JudgeParameters(api_key="k"))
    assert judge.name == "openai:m1 ['api_key', 'base_url', 'timeout_s']"
    with pytest.raises(ConfigError, match="did you mean 'mine'"):
        registry.make_judge("mien")
    with pytest.raises(ConfigError, match=r"'sick' .* cannot be loaded: ModuleNotFoundError"):
        registry.make_judge("sick")


def test_no_entry_point_is_read_for_a_known_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", pytest.fail)
    registry.make_judge("openai:m", JudgeParameters(api_key="k"))


def test_making_an_openai_judge_does_not_import_openai() -> None:
    code = (
        "import sys; from ragtrace.judges import JudgeParameters, make_judge;"
        "make_judge('openai:m', JudgeParameters(api_key='k'));"
        "sys.exit('openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
