"""Table of the fixtures: which instrumentation, in which version, over which application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

OTEL_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SPAN_ONLY = {OTEL_CONTENT: "SPAN_ONLY", "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
CONTENT_TRUE = {OTEL_CONTENT: "true"}
EXPORTER = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
LANGCHAIN = ("langchain", "langchain-openai", *EXPORTER)
LANGCHAIN_0 = ("langchain-core<1", "langchain-openai<1", "langchain<1", "langchain-community<1", *EXPORTER)
LLAMAINDEX = ("llama-index-core", "llama-index-llms-openai", *EXPORTER)
OPENAI = ("openai", *EXPORTER)
OPENAI_1 = ("openai<2", "httpx<0.28", *EXPORTER)
OPENAI_V2 = ("opentelemetry-util-genai==1.1b0", "openai<2", *EXPORTER)
OPENAI_V2_OLD = ("opentelemetry-api<1.36", "setuptools<80", *OPENAI_1)
# Of old instrumentations: they import pkg_resources, and name arguments that wrapt 2 renamed.
OLD = ("setuptools<80", "wrapt<2")
TRACELOOP = ("opentelemetry-instrumentation-openai==0.62.4", *LLAMAINDEX)
TRACELOOP_OLD = ("opentelemetry-instrumentation-openai==0.40.*", *LLAMAINDEX, *OLD)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One fixture.

    Attributes:
        name: of the file.
        dialect: folder of the file.
        framework: module `<framework>_app` of the application; node is LangChain.js.
        instrument: name in `application.instruments`, or of a script in `node`.
        package: the instrumentation with its version; "." is this repository.
        needs: further packages.
        environ: further variables; they switch content on.
    """

    name: str
    dialect: str
    framework: str
    instrument: str
    package: str
    needs: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> str:
        """Folder of the environment in build/fixtures."""
        return f"{self.instrument}-{self.package.partition('==')[2] or 'here'}"

    @property
    def content(self) -> str:
        """How content was set."""
        return " ".join(f"{name}={value}" for name, value in self.environ.items()) or "default, which is on"


def _ours(framework: str, content: str, needs: tuple[str, ...]) -> Recording:
    return Recording(
        name=f"ragtrace-{framework}-{content}",
        dialect="ragtrace",
        framework=framework,
        instrument=f"ragtrace-{framework}",
        package=".",
        needs=needs,
        environ={"RAGTRACE_CONTENT": content},
    )


def _theirs(
    instrument: str,
    package: str,
    needs: tuple[str, ...],
    environ: Mapping[str, str] | None = None,
    *,
    suffix: str = "",
) -> Recording:
    """Describe a foreign instrumentation, named as ``<dialect>-<framework>``; the suffix says what else differs."""
    dialect, _, framework = instrument.partition("-")
    return Recording(
        name=f"{instrument}-{package.partition('==')[2]}{suffix}",
        dialect=dialect,
        framework=framework.replace("-", "").removesuffix("v2"),
        instrument=instrument,
        package=package,
        needs=needs,
        environ=environ or {},
    )


RECORDINGS = (
    _ours("langchain", "full", LANGCHAIN),
    _ours("langchain", "none", LANGCHAIN),
    _ours("llamaindex", "full", LLAMAINDEX),
    _ours("llamaindex", "none", LLAMAINDEX),
    _theirs("openinference-langchain", "openinference-instrumentation-langchain==0.1.80", LANGCHAIN),
    _theirs("openinference-langchain", "openinference-instrumentation-langchain==0.1.0", (*LANGCHAIN_0, *OLD)),
    _theirs("openinference-llama-index", "openinference-instrumentation-llama-index==4.6.1", LLAMAINDEX),
    _theirs("openinference-llama-index", "openinference-instrumentation-llama-index==4.0.0", (*LLAMAINDEX, *OLD)),
    _theirs("openinference-openai", "openinference-instrumentation-openai==0.1.66", OPENAI),
    _theirs("openinference-openai", "openinference-instrumentation-openai==0.1.0", (*OPENAI_1, *OLD)),
    _theirs("genai-langchain", "opentelemetry-instrumentation-genai-langchain==1.3b0", LANGCHAIN, SPAN_ONLY),
    _theirs("genai-langchain", "opentelemetry-instrumentation-genai-langchain==1.0b0", LANGCHAIN, SPAN_ONLY),
    _theirs("genai-llama-index", "opentelemetry-instrumentation-genai-llama-index==1.3b0", LLAMAINDEX, SPAN_ONLY),
    _theirs("genai-openai", "opentelemetry-instrumentation-genai-openai==1.3b0", OPENAI, SPAN_ONLY),
    _theirs("genai-openai-v2", "opentelemetry-instrumentation-openai-v2==2.4b0", OPENAI_V2, SPAN_ONLY),
    _theirs("genai-openai-v2", "opentelemetry-instrumentation-openai-v2==2.0b0", OPENAI_V2_OLD, CONTENT_TRUE),
    _theirs("traceloop-langchain", "opentelemetry-instrumentation-langchain==0.62.4", LANGCHAIN),
    _theirs("traceloop-langchain", "opentelemetry-instrumentation-langchain==0.40.0", (*LANGCHAIN_0, *OLD)),
    _theirs("traceloop-llamaindex", "opentelemetry-instrumentation-llamaindex==0.62.4", TRACELOOP),
    _theirs("traceloop-llamaindex", "opentelemetry-instrumentation-llamaindex==0.40.0", TRACELOOP_OLD),
    _theirs("traceloop-openai", "opentelemetry-instrumentation-openai==0.62.4", OPENAI),
    _theirs("traceloop-openai", "opentelemetry-instrumentation-openai==0.20.0", (*OPENAI_1, *OLD)),
    _theirs("mlflow-langchain", "mlflow==3.17.2", LANGCHAIN),
    _theirs("mlflow-langchain", "mlflow==3.0.0", (*LANGCHAIN_0, "opentelemetry-sdk<1.33")),
    _theirs("mlflow-llama-index", "mlflow==3.17.2", LLAMAINDEX),
    _theirs("mlflow-openai", "mlflow==3.17.2", OPENAI),
    _theirs("langfuse-langchain", "langfuse==5.0.4", LANGCHAIN),
    _theirs("langfuse-langchain", "langfuse==3.0.0", LANGCHAIN_0),
    Recording(
        name="openinference-langchain-js-4.1.1",
        dialect="openinference",
        framework="node",
        instrument="openinference",
        package="@arizeai/openinference-instrumentation-langchain@4.1.1",  # pinned in node/package.json
        needs=(),
    ),
    # Content off, each by the setting of its instrumentation.
    _theirs(
        "openinference-langchain",
        "openinference-instrumentation-langchain==0.1.80",
        LANGCHAIN,
        {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
        suffix="-none",
    ),
    _theirs(
        "genai-langchain",
        "opentelemetry-instrumentation-genai-langchain==1.3b0",
        LANGCHAIN,
        {OTEL_CONTENT: "NO_CONTENT"},
        suffix="-none",
    ),
    _theirs(
        "traceloop-langchain",
        "opentelemetry-instrumentation-langchain==0.62.4",
        LANGCHAIN,
        {"TRACELOOP_TRACE_CONTENT": "false"},
        suffix="-none",
    ),
)
