"""What a model's reply says, and what it costs: thoughts, structured output, LangChain's cache, broken streams."""

from __future__ import annotations

import json

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, LLMResult
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from pydantic import BaseModel

from integrations.langchain.tests.parts import PROMPT, Faq, shown
from ragtrace.capture import Generation
from ragtrace_langchain.calls import said_of
from ragtrace_langchain.values import Values
from tests.kept import ANSWER, step

THOUGHT = "Did the lab move? Perhaps to Bergen, as passage d2 says."
JSON = json.dumps({"answer": ANSWER, "sources": ["d0"]})
COUNTS = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}


class Model(BaseChatModel):
    """Says its replies in turn, and streams them word by word; breaks at the word `breaks_at`."""

    replies: list = []  # noqa: RUF012 - a pydantic field
    size: int = 5
    breaks_at: int | None = None
    asked: list = []  # noqa: RUF012

    @property
    def _llm_type(self):
        return "replying"

    @property
    def _identifying_params(self):
        return {"replies": [getattr(reply, "content", reply) for reply in self.replies]}

    def _reply(self):
        self.asked.append(1)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        return reply if isinstance(reply, AIMessage) else AIMessage(reply, usage_metadata=COUNTS)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._reply())])

    def bind_tools(self, tools, **kwargs):
        return self.bind(**kwargs)


class Streaming(Model):
    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        text = self._reply().text
        for number, at in enumerate(range(0, len(text), self.size)):
            if number == self.breaks_at:
                raise ConnectionError("upstream closed")
            chunk = ChatGenerationChunk(message=AIMessageChunk(text[at : at + self.size]))
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def chain(model, *, parser=None):
    given = {"context": Faq(size=2) | shown, "question": RunnablePassthrough()}
    return given | PROMPT | model | (parser or StrOutputParser())


# -- thoughts --

FORMS = [
    f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    f"{THOUGHT}\n</think>\n\n{ANSWER}",
    f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
]


@pytest.mark.parametrize("text", FORMS)
def test_thoughts_are_no_part_of_an_answer(keeper, config, text):
    assert chain(Model(replies=[text])).invoke("Where?", config) == text
    assert keeper.only.record.answer == ANSWER
    assert step(keeper.only, Generation).outputs[0].content == text, "the span keeps what was said"


@pytest.mark.parametrize("text", FORMS)
async def test_in_streams(keeper, config, text):
    list(chain(Streaming(replies=[text])).stream("Where?", config))
    [piece async for piece in chain(Streaming(replies=[text])).astream("Where?", config)]
    await chain(Model(replies=[text])).ainvoke("Where?", config)
    chain(Model(replies=[text])).batch(["Where?"], config)
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 4


def test_of_a_model_alone_and_of_a_dict(keeper, config):
    Model(replies=FORMS).invoke("Where?", config)
    chain(Model(replies=FORMS), parser=RunnableLambda(lambda said: {"answer": said.content})).invoke(
        "Where?", config
    )
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 2


@pytest.mark.parametrize("pieces", [1, 3, 8])
def test_a_stream_that_is_left_among_thoughts_answers_nothing(keeper, config, pieces):
    stream = chain(Streaming(replies=FORMS[:1])).stream("Where?", config)
    assert [next(stream) for _ in range(pieces)]
    stream.close()
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "")


def test_a_stream_that_is_left_in_the_answer_has_said_so_much(keeper, config):
    stream = chain(Streaming(replies=["<think>hm</think>In Oslo, Norway."], size=4)).stream("Where?", config)
    assert "".join(next(stream) for _ in range(6)) == "<think>hm</think>In Oslo"
    stream.close()
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "In Oslo")


def test_a_reply_of_thoughts_alone_is_blank(keeper, config):
    chain(Model(replies=[f"<think>{THOUGHT}"])).invoke("Where?", config)
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", "")


def test_an_earlier_reply_is_not_taken_for_one_of_thoughts_alone(keeper, config):
    model = Model(replies=["Where is the lab today?", f"<think>{THOUGHT}"])
    rewritten = model | StrOutputParser()
    given = {"context": Faq(size=2) | shown, "question": RunnablePassthrough()}
    (rewritten | given | PROMPT | model | RunnableLambda(lambda said: {"docs": []})).invoke("Where?", config)
    assert keeper.only.record.answer == ""


def test_an_agent_that_thinks_before_its_calls(keeper, config):
    agents = pytest.importorskip("langchain.agents")
    call = {"name": "search", "args": {"query": "lab"}, "id": "0"}
    model = Model(replies=[AIMessage(f"<think>{THOUGHT}</think>", tool_calls=[call]), FORMS[0]])
    agent = agents.create_agent(model, [create_retriever_tool(Faq(), "search", "Searches.")])
    agent.invoke({"messages": [("user", "Where?")]}, config)
    assert keeper.only.record.answer == ANSWER


def test_in_a_block_of_the_applications_own(keeper, recorder, config):
    with recorder.start(query="Where?"):
        chain(Model(replies=FORMS)).invoke("Where?", config)
    assert keeper.only.record.answer == ANSWER


@pytest.mark.parametrize(
    "text", ["It ends with </think>.", "Use `<think>` and `</think>`.", "It says <think>x</think> there."]
)
def test_an_answer_may_quote_a_tag(keeper, config, text):
    chain(Model(replies=[text])).invoke("Where?", config)
    assert keeper.only.record.answer == text


# -- structured output --


class Said(BaseModel):
    """An answer."""

    answer: str
    sources: list[str] = []


MODES = [
    {"response_format": {"type": "json_object"}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "said"}}},
    {"format": "json"},
    {
        "ls_structured_output_format": {
            "kwargs": {"method": "json_mode"},
            "schema": {"title": "Said", "type": "object"},
        }
    },
]


@pytest.mark.parametrize("asked", MODES)
def test_json_that_was_asked_for_is_read_as_structured(keeper, config, asked):
    for text in (JSON, f"<think>{THOUGHT}</think>{JSON}"):
        chain(Model(replies=[text]).bind(**asked)).invoke("Where?", config)
        list(chain(Streaming(replies=[text]).bind(**asked)).stream("Where?", config))
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 4
    assert [part.citations for part in keeper.runs[0].record.answer_parts] == [("d0",)]


def test_json_in_a_plain_answer_stays(keeper, config):
    chain(Model(replies=[JSON])).invoke("Where?", config)
    chain(Model(replies=['{"city": "Oslo"}']).bind(**MODES[0])).invoke("Where?", config)
    chain(Model(replies=["In Oslo."]).bind(**MODES[0])).invoke("Where?", config)
    assert [run.record.answer for run in keeper.runs] == [JSON, '{"city": "Oslo"}', "In Oslo."]


@pytest.mark.parametrize(
    "fields", [("final_answer",), ("response",), ("text", "final_answer"), ("result", "answer")]
)
def test_the_names_of_the_field(keeper, config, fields):
    text = json.dumps({name: ANSWER if name == fields[-1] else "Let me see." for name in fields})
    chain(Model(replies=[text]).bind(**MODES[0])).invoke("Where?", config)
    chain(Model(replies=[text]), parser=JsonOutputParser()).invoke("Where?", config)
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 2


def test_an_object_whose_answer_stands_in_another(keeper, config):
    class Outer(BaseModel):
        result: Said
        confidence: float = 0.5

    said = RunnableLambda(lambda text: Outer(result=Said.model_validate_json(text.content)))
    chain(Model(replies=[JSON]), parser=said).invoke("Where?", config)
    assert keeper.only.record.answer == ANSWER


def test_a_node_that_hands_on_no_answer(keeper, config):
    state = RunnableLambda(lambda said: {"read": said.content})
    chain(Model(replies=[JSON]).bind(**MODES[0]), parser=state).invoke("Where?", config)
    assert keeper.only.record.answer == ANSWER


# -- replies from LangChain's cache --


def tokens(run):
    used = [one.usage for one in run.steps if isinstance(one, Generation)]
    return [None if one is None else (one.input_tokens, one.output_tokens) for one in used]


@pytest.mark.parametrize("kind", [Model, Streaming])
async def test_a_reply_from_the_cache_counts_no_tokens(keeper, config, kind):
    model = kind(
        replies=[AIMessage(ANSWER, usage_metadata=COUNTS)],
        cache=InMemoryCache(),
        disable_streaming=kind is Streaming,
    )
    made = chain(model)
    made.invoke("Where?", config)
    made.invoke("Where?", config)
    await made.ainvoke("Where?", config)
    made.batch(["Where?", "Where?"], config)
    await made.abatch(["Where?"], config)
    list(made.stream("Where?", config))
    [piece async for piece in made.astream("Where?", config)]
    assert [tokens(run) for run in keeper.runs] == [[(7, 5)], *[[(0, 0)]] * 7]
    assert [run.record.usage.input_tokens for run in keeper.runs] == [7, *[0] * 7]
    assert {run.record.answer for run in keeper.runs} == {ANSWER}
    assert len(model.asked) == 1


def test_only_the_cached_call_of_a_run_counts_none(keeper, config):
    cached = Model(replies=["Where is the lab?"], cache=InMemoryCache())
    asked, model = cached | StrOutputParser(), Model(replies=[ANSWER])
    for _ in range(2):
        (asked | chain(model)).invoke("lab?", config)
    assert [tokens(run) for run in keeper.runs] == [[(7, 5), (7, 5)], [(0, 0), (7, 5)]]
    assert [run.record.usage.input_tokens for run in keeper.runs] == [14, 7]


def test_a_model_that_says_itself_that_it_costs_nothing_used_its_tokens():
    free = {**COUNTS, "input_cost": 0.0, "output_cost": 0.0, "total_cost": 0.0}
    kept = {**free, "input_cost": 0.1, "output_cost": 0.2}
    whole = [({**COUNTS, "total_cost": 0.1}, 7), ({**COUNTS, "total_cost": 0}, 0)]
    for counts, expected in ((free, 7), (kept, 0), *whole):
        choice = ChatGeneration(message=AIMessage("a", usage_metadata=counts))
        usage = said_of(LLMResult(generations=[[choice]]), Values()).usage
        assert (usage and usage.input_tokens) == expected


# -- streams that break --


def test_a_stream_that_breaks_keeps_what_was_read(keeper, config):
    with pytest.raises(ConnectionError):
        list(chain(Streaming(replies=[ANSWER], breaks_at=2)).stream("Where?", config))
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", ANSWER[:10])
    assert keeper.only.failure.kind == "ConnectionError"


def test_of_a_model_alone_that_breaks(keeper, config):
    with pytest.raises(ConnectionError):
        list(Streaming(replies=[ANSWER], breaks_at=2).stream("Where?", config))
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", ANSWER[:10])


async def test_asynchronous(keeper, config):
    with pytest.raises(ConnectionError):
        [piece async for piece in chain(Streaming(replies=[ANSWER], breaks_at=2)).astream("Where?", config)]
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", ANSWER[:10])


@pytest.mark.parametrize("breaks_at", [0, 2])
def test_what_breaks_before_it_says_anything_has_no_answer(keeper, config, breaks_at):
    with pytest.raises(ConnectionError):
        list(chain(Streaming(replies=FORMS[:1], breaks_at=breaks_at)).stream("Where?", config))
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", "")


def test_a_whole_reply_before_a_failure_is_no_answer(keeper, config):
    def fail(_text):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        (chain(Model(replies=[ANSWER])) | RunnableLambda(fail)).invoke("Where?", config)
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", "")


def test_another_model_takes_the_place_of_one_that_broke(keeper, config):
    broken, model = Streaming(replies=["It moved to"], breaks_at=1), Model(replies=[ANSWER])

    def ask(prompt):
        try:
            return "".join(piece.text for piece in broken.stream(prompt))
        except ConnectionError:
            return model.invoke(prompt).text

    chain(RunnableLambda(ask)).invoke("Where?", config)
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", ANSWER)
