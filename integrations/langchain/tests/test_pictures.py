"""A picture is found by its data: a passage that is a picture stands in the prompt that has it in a block."""

from __future__ import annotations

import base64

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from integrations.langchain.tests.parts import chat
from tests.kept import ids

LINK = "https://a.example/plans/room-4.png?size=2"


def picture(n, size=40):
    return base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes([n]) * size).decode()


def url(data):
    return f"data:image/png;base64,{data}"


BLOCKS = {
    "OpenAI": lambda data: {"type": "image_url", "image_url": {"url": url(data)}},
    "OpenAI, a text": lambda data: {"type": "image_url", "image_url": url(data)},
    "OpenAI responses": lambda data: {"type": "input_image", "image_url": url(data)},
    "LangChain": lambda data: {"type": "image", "base64": data, "mime_type": "image/png"},
    "LangChain 0.3": lambda data: {
        "type": "image",
        "source_type": "base64",
        "data": data,
        "mime_type": "image/png",
    },
    "Anthropic": lambda data: {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data},
    },
    "Gemini": lambda data: {"type": "media", "mime_type": "image/png", "data": data},
    "Bedrock": lambda data: {"image": {"format": "png", "source": {"bytes": base64.b64decode(data)}}},
}
LINKS = {
    "OpenAI": {"type": "image_url", "image_url": {"url": LINK}},
    "LangChain": {"type": "image", "url": LINK},
    "Anthropic": {"type": "image", "source": {"type": "url", "url": LINK}},
    "Gemini": {"type": "media", "mime_type": "image/png", "file_uri": LINK},
}
PASSAGES = {
    "base64": lambda data: Document(id="pic", page_content=data),
    "base64 in lines": lambda data: Document(id="pic", page_content=f"{data[:40]}\n{data[40:]}\n"),
    "data URL": lambda data: Document(id="pic", page_content=url(data)),
    "beside a text": lambda data: Document(
        id="pic", page_content="The plan of a room.", metadata={"image_base64": data}
    ),
    "beside no text": lambda data: Document(id="pic", page_content="", metadata={"image_url": url(data)}),
}


class Found(BaseRetriever):
    documents: list

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


def ask(config, documents, *blocks):
    def message(given):
        text = "\n".join(one.page_content for one in given["found"] if one.id.startswith("text"))
        return [HumanMessage([*blocks, {"type": "text", "text": f"{text}\n{given['question']}"}])]

    given = {"found": Found(documents=documents), "question": RunnablePassthrough()}
    (given | RunnableLambda(message) | chat() | StrOutputParser()).invoke("Where?", config)


def texts():
    return [Document(id=f"text-{n}", page_content=f"Room {n} holds {n} people, says the handbook.") for n in (1, 2)]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", PASSAGES)
def test_a_picture_in_a_block_is_its_passage(keeper, config, kind, block):
    first, second = texts()
    ask(config, [first, PASSAGES[kind](picture(1)), second], BLOCKS[block](picture(1)))
    assert sorted(keeper.only.prompt_ids) == ["pic", "text-1", "text-2"]
    assert keeper.only.record.selection_source != "prompt"


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", PASSAGES)
def test_another_picture_is_no_evidence(keeper, config, kind, block):
    ask(config, [PASSAGES[kind](picture(1)), *texts()], BLOCKS[block](picture(2)), BLOCKS[block](picture(1, 43)))
    assert keeper.only.prompt_ids == ("text-1", "text-2")


@pytest.mark.parametrize("block", LINKS)
def test_a_link_to_a_picture(keeper, config, block):
    pool = [Document(id="pic", page_content=LINK), Document(id="other", page_content=f"{LINK}0"), *texts()]
    ask(config, pool, LINKS[block])
    assert keeper.only.prompt_ids == ("pic", "text-1", "text-2")


@pytest.mark.parametrize("block", BLOCKS)
def test_pictures_stand_in_the_order_of_the_prompt(keeper, config, block):
    pool = [Document(id=f"pic-{n}", page_content=picture(n)) for n in range(4)]
    ask(config, pool, *(BLOCKS[block](picture(n)) for n in (2, 0, 3)))
    assert keeper.only.prompt_ids == ("pic-2", "pic-0", "pic-3")


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_the_prompt_holds_no_megabytes(keeper, config, extra):
    """A picture beyond what capture keeps of a passage is known by its beginning and its length."""
    large = [
        base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(900_000 + n + extra)).decode() for n in (0, 3)
    ]
    ask(
        config,
        [Document(id=f"pic-{n}", page_content=data) for n, data in enumerate(large)],
        BLOCKS["OpenAI"](large[1]),
    )
    run = keeper.only
    assert run.prompt_ids == ("pic-1",)
    (call,) = [step for step in run.steps if hasattr(step, "outputs")]
    assert len(call.inputs[0].content) < 100
    assert ids(run, "retrieved") == ["pic-0", "pic-1"]


@pytest.mark.parametrize("name", LINKS)
def test_a_question_about_a_picture_is_its_text(keeper, config, name):
    blocks = [{"type": "text", "text": "What is in this plan?"}, LINKS[name]]
    chat().invoke([HumanMessage(blocks)], config)
    assert keeper.only.record.query == "What is in this plan?"
