"""A picture is found by its data: an image node stands in the prompt that has it in an image block."""

from __future__ import annotations

import base64

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.query_engine import SimpleMultiModalQueryEngine
from llama_index.core.schema import ImageDocument, ImageNode, MediaResource, Node, NodeWithScore, TextNode

from integrations.llamaindex.tests.parts import Given, Llm
from tests.kept import ANSWER, ids

LINK = "https://a.example/plans/room-4.png"


def raw(n):
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes([n]) * 40


def encoded(n):
    return base64.b64encode(raw(n)).decode()


def scored(*nodes):
    return [NodeWithScore(node=node, score=0.5) for node in nodes]


TEXT = TextNode(id_="text", text="Room 1 holds four people, says the handbook.")
NODES = {
    "an image node": lambda n: ImageNode(id_="pic", image=encoded(n)),
    "with a caption": lambda n: ImageNode(
        id_="pic", image=encoded(n), text="The plan of a room on the first floor."
    ),
    "an image document": lambda n: ImageDocument(id_="pic", image=encoded(n)),
    "a node of media": lambda n: Node(id_="pic", image_resource=MediaResource(data=raw(n))),
    "a text node": lambda n: TextNode(id_="pic", text=encoded(n)),
    "a data URL": lambda n: TextNode(id_="pic", text=f"data:image/png;base64,{encoded(n)}"),
}


def asked(nodes, *blocks):
    found = Given(scored(*nodes)).retrieve("Where?")
    text = "\n".join(one.node.text for one in found if one.node.node_id == "text")
    Llm().chat([ChatMessage(role="user", blocks=[*blocks, TextBlock(text=f"{text}\nWhere?")])])


@pytest.mark.parametrize("kind", NODES)
def test_a_picture_in_a_block_is_its_node(keeper, recorder, kind):
    with recorder.start(query="Where?"):
        asked([TEXT, NODES[kind](1)], ImageBlock(image=raw(1)))
    assert ids(keeper.only, "retrieved") == ["text", "pic"]
    assert sorted(keeper.only.prompt_ids) == ["pic", "text"]


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_picture_stands_where_its_block_does(keeper, recorder, is_behind):
    with recorder.start(query="Where?"):
        Given(scored(TEXT, NODES["an image node"](1))).retrieve("Where?")
        blocks = [ImageBlock(image=raw(1)), TextBlock(text=f"{TEXT.text}\nWhere?")]
        Llm().chat([ChatMessage(role="user", blocks=reversed(blocks) if is_behind else blocks)])
    assert keeper.only.prompt_ids == (("text", "pic") if is_behind else ("pic", "text"))


@pytest.mark.parametrize("kind", NODES)
def test_another_picture_is_no_evidence(keeper, recorder, kind):
    with recorder.start(query="Where?"):
        asked([TEXT, NODES[kind](1)], ImageBlock(image=raw(2)))
    assert keeper.only.prompt_ids == ("text",)


def test_a_link_to_a_picture(keeper, recorder):
    with recorder.start(query="Where?"):
        asked([TEXT, ImageNode(id_="pic", image_url=LINK)], ImageBlock(url=LINK))
    assert sorted(keeper.only.prompt_ids) == ["pic", "text"]


def test_a_file(keeper, recorder, tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(raw(1))
    nodes = [ImageNode(id_=name, image_path=str(tmp_path / f"{name}.png")) for name in "ab"]
    with recorder.start(query="Where?"):
        asked([TEXT, *nodes], ImageBlock(path=tmp_path / "b.png"))
    assert sorted(keeper.only.prompt_ids) == ["b", "text"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_multi_modal_engine(keeper):
    nodes = scored(TEXT, ImageNode(id_="pic-1", image=encoded(1)), ImageNode(id_="pic-2", image=encoded(2)))
    SimpleMultiModalQueryEngine(Given(nodes), multi_modal_llm=Llm()).query("Where?")
    assert ids(keeper.only, "retrieved") == ["text", "pic-1", "pic-2"]
    assert sorted(keeper.only.prompt_ids) == ["pic-1", "pic-2", "text"]


def test_a_question_about_a_picture_is_its_text(keeper):
    blocks = [ImageBlock(image=b"\x89PNG\r\n"), TextBlock(text="What is in this picture?")]
    Llm(says=ANSWER).chat([ChatMessage(role="user", blocks=blocks)])
    assert (keeper.only.record.query, keeper.only.record.answer) == ("What is in this picture?", ANSWER)
