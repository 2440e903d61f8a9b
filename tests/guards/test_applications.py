"""Every application of tests/apps and every scenario of the conformance suite leaves what its snapshot says.

Each runs live in all forms that it has. The file holds records, spans and offline scores: what the first form left,
and the places in which the others differ. ``RAGTRACE_WRITE_SNAPSHOTS=1 make guards ARGS="-k test_applications"``
writes the files anew; a snapshot changes only in a commit that says why.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import ragtrace_llamaindex
from ragtrace.testing.conformance import IntegrationConformance
from ragtrace.testing.recording import Recording
from ragtrace_langchain import TracedCompressor
from tests.apps.test_apps import applications
from tests.conformance.langchain import CompressionApplication, Compressor, LcelApplication
from tests.conformance.llamaindex import QueryEngineApplication
from tests.conformance.manual import ManualApplication
from tests.guards.snapshot import FOLDER, holds

pytestmark = pytest.mark.slow  # together more than a minute

# Applications that search or ask several times at once; here in one thread, so that their spans have one order.
AT_ONCE = {"Hybrid", "HybridGraph", "LlmReranker", "MapReduce", "MultiQuery", "RagFusion", "StepBack"}
VARIANTS = {}
for _param in applications():
    _kind, _form, _way = _param.values
    VARIANTS.setdefault(_kind, []).append((_form, _way))


def in_one_thread(kind):
    """Return a kind of LangChain application that does one thing after the other."""

    def begin():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))

    class InOneThread(kind):
        def run(self, form, config):
            return super().run(form, {**config, "max_concurrency": 1})

        async def aask(self, config):
            begin()
            return await super().aask(config)

        async def astream(self, config):
            begin()
            async for piece in super().astream(config):
                yield piece

    return InOneThread


def file_of(kind):
    return f"{kind.__module__.rpartition('.')[2]}/{kind.__name__}"


@pytest.mark.parametrize("kind", VARIANTS, ids=file_of)
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_an_application_leaves_what_it_left(kind):
    captured = {}
    for form, way in VARIANTS[kind]:
        kept = Recording()
        with kind().capturing(way, kept.recorder) as given:
            (in_one_thread(kind) if kind.__name__ in AT_ONCE else kind)().run(form, given)
        captured[f"{form}, {way}"] = [kept]
    holds(file_of(kind), captured)


class TracedApplication(CompressionApplication):
    """The compression retriever with a compressor that reports itself."""

    selection_source = "explicit"

    def compressor(self, plans):
        return TracedCompressor(base=Compressor(plans=plans))


# Texts that are hard to carry, and texts that the offline judge reads.
KINDS = {
    LcelApplication: "difficult",
    CompressionApplication: "difficult",
    QueryEngineApplication: "difficult",
    TracedApplication: "plain",
    ManualApplication: "plain",
}
FORMS = ("sync", "async", "stream")
LACKING = {  # forms in which the suite's own checks do not hold
    "test_two_turns": ("async", "stream"),  # LlamaIndex's application has a conversation in one form only
    "test_the_model_fails": ("stream",),  # pieces of an answer come before it fails
    "test_a_failure_inside_a_block_is_the_block_s": ("stream",),
}
SCENARIOS = [name for name in vars(IntegrationConformance) if name.startswith("test_")]


def asking(kind, form):
    """Return an application that is asked in one form, and keeps its recordings in `kept`."""

    class Asked(kind):
        texts = KINDS[kind]
        is_asked = False

        def __init__(self):
            self.kept = []

        @contextmanager
        def recording(self, **how):
            with super().recording(**how) as kept:
                self.kept.append(kept)
                yield kept

        def ask(self, plan, recorder):
            self.is_asked = True
            if form == "async":
                return asyncio.run(self.aask(plan, recorder))
            return "".join(self.stream(plan, recorder)) if form == "stream" else super().ask(plan, recorder)

    return Asked()


@pytest.fixture
def _llamaindex_is_let_go():
    yield
    ragtrace_llamaindex.uninstrument()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.usefixtures("_llamaindex_is_let_go")
def test_a_scenario_leaves_what_it_left(kind, scenario):
    captured = {}
    for form in (form for form in FORMS if form not in LACKING.get(scenario, ())):
        application = asking(kind, form)
        getattr(application, scenario)()
        captured[form] = application.kept
        if not application.is_asked:  # the scenario has one form, which it names
            break
    holds(f"{kind.__name__}/{scenario.removeprefix('test_')}", captured)


def test_every_snapshot_has_its_application():
    known = {file_of(kind) for kind in VARIANTS}
    known |= {f"{kind.__name__}/{scenario.removeprefix('test_')}" for kind in KINDS for scenario in SCENARIOS}
    found = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.json")}
    assert found <= known
