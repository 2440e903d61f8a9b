"""Citation markers in an answer become answer parts, whatever form they have."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.capture import Recorder, cited_parts, internal_errors, parts_of_run
from ragtrace.model import AnswerPart, Message, Passage
from tests.kept import Keeper

TEXTS = (
    "The lab is in Oslo, at Karl Johans gate 12, since the spring of the year 2026.",
    "It has forty people, who work on the ice of the Arctic Ocean and its history.",
    "Its head is Ada Nilsen. Visitors come on Fridays, between nine and eleven.",
)
CONTEXTS = tuple(
    Passage(id=f"doc-{n}", text=text, rank=n, metadata={"source": f"docs/{name}", "url": f"https://x.example/{n}"})
    for n, (text, name) in enumerate(zip(TEXTS, ("place.md", "staff.md", "visits.pdf"), strict=True), start=1)
)


def read(answer, **more):
    return [(part.text, part.citations) for part in parts_of_run(answer, CONTEXTS, **more)]


OSLO = "The lab is in Oslo."
ONE = [(OSLO, ("doc-1",))]
TWO = [(OSLO, ("doc-1", "doc-3"))]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The lab is in Oslo [1].", ONE),
        ("The lab is in Oslo. [1]", ONE),
        ("The lab is in Oslo.[1]", ONE),
        ("The lab is in Oslo [1][3].", TWO),
        ("The lab is in Oslo [1, 3].", TWO),
        ("The lab is in Oslo [1; 3].", TWO),
        ("The lab is in Oslo [1,3].", TWO),
        ("The lab is in Oslo [1 and 3].", TWO),
        ("The lab is in Oslo [1-3].", [(OSLO, ("doc-1", "doc-2", "doc-3"))]),
        ("The lab is in Oslo [1\u20132].", [(OSLO, ("doc-1", "doc-2"))]),
        ("The lab is in Oslo [[1]].", ONE),
        ("The lab is in Oslo [^1].", ONE),
        ("The lab is in Oslo [^1].\n\n[^1]: docs/visits.pdf", [(OSLO, ("doc-3",))]),
        ("The lab is in Oslo [doc-1].", ONE),
        ("The lab is in Oslo [doc-1, doc-3].", TWO),
        ("The lab is in Oslo [doc-1][doc-3].", TWO),
        ("The lab is in Oslo [docs/place.md].", ONE),
        ("The lab is in Oslo [source: place.md].", ONE),
        ("The lab is in Oslo (place.md).", ONE),
        ("The lab is in Oslo (doc-1).", ONE),
        ("The lab is in Oslo (Source 1).", ONE),
        ("The lab is in Oslo (source: 1).", ONE),
        ("The lab is in Oslo (Sources 1, 3).", TWO),
        ("The lab is in Oslo (Source 1, Source 3).", TWO),
        ("The lab is in Oslo (see Document 1).", ONE),
        ("The lab is in Oslo [Source 1].", ONE),
        ("The lab is in Oslo [Document 1].", ONE),
        ("The lab is in Oslo [citation:1].", ONE),
        ("The lab is in Oslo [citation:1][citation:3].", TWO),
        ("The lab is in Oslo [ref_1].", ONE),
        ("The lab is in Oslo [id: doc-1].", ONE),
        ("The lab is in Oslo [@doc-1].", ONE),
        ("The lab is in Oslo [#1].", ONE),
        ("The lab is in Oslo【1】.", ONE),
        ("The lab is in Oslo【1†source】.", ONE),
        ("The lab is in Oslo【4:0†place.md】.", ONE),
        ("The lab is in Oslo【4:2†source】.", [(OSLO, ("doc-3",))]),
        ("The lab is in Oslo [1](https://x.example/elsewhere).", ONE),
        ("The lab is in Oslo [here](https://x.example/1).", ONE),
        ("The lab is in Oslo<sup>1</sup>.", ONE),
        ("The lab is in Oslo.<sup>[1, 3]</sup>", TWO),
        ("The lab is in Oslo.¹", ONE),
        ("The lab is in Oslo <cite>1</cite>.", ONE),
        ('The lab is in Oslo <ref id="doc-1"/>.', ONE),
        ("The lab is in Oslo <source 1>.", ONE),
        ("The lab is in Oslo [1] (doc-3).", TWO),
        ("Source 1 says that the lab is in Oslo.", [("Source 1 says that the lab is in Oslo.", ("doc-1",))]),
        ("According to document 2, it is.", [("According to document 2, it is.", ("doc-2",))]),
        ("Documents 1 and 3 say so.", [("Documents 1 and 3 say so.", ("doc-1", "doc-3"))]),
        ("The lab is in Oslo.\n\nSources: 1, 3", TWO),
        ("The lab is in Oslo.\n\nSources: [1], [3]", TWO),
        ("The lab is in Oslo.\nSOURCES: doc-1, doc-3", TWO),
        ("The lab is in Oslo.\n\n**Sources:**\n- place.md\n- docs/visits.pdf", TWO),
        ("The lab is in Oslo.\n\n## References\n[1] docs/place.md\n[2] docs/visits.pdf", TWO),
        ("The lab is in Oslo.\n\nSource: place.md", ONE),
        ("The lab is in Oslo [2].\n\nReferences:\n[1] visits.pdf\n[2] place.md", ONE),
        ("The lab is in Oslo [2].\n\nReferences:\n1. visits.pdf\n2. place.md", ONE),
    ],
)
def test_a_marker_is_read(answer, expected):
    assert read(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "The lab is in Oslo.",
        "The lab (in Oslo) has forty people (2026).",
        "See [the handbook](https://elsewhere.example/).",
        "Choose [x] or [ ] and go on [...].",
        "In [2026] it moved [sic].",
        "Use `rows[1]` here.",
        "```python\nrows[1] = rows[2]\n```",
        "It covers 12 m² of 40 km².",
        "It has two parts: (1) the lab and (2) the shop.",
        "1. Oslo\n2. Bergen",
        "Article 5 of the GDPR says so.",
        '{"city": "Oslo"}',
        "{not json",
        "",
        " \n",
    ],
)
def test_what_is_no_marker_makes_no_parts(answer):
    assert read(answer) == []


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("The lab is in Oslo [9].", ("9",)),
        ("The lab is in Oslo [1][9].", ("doc-1", "9")),
        ("The lab is in Oslo [doc-9].", ("doc-9",)),
        ("The lab is in Oslo (Source 7).", ("7",)),
        ("The lab is in Oslo [2-5].", ("doc-2", "doc-3", "4", "5")),
    ],
)
def test_a_marker_of_no_passage_stays_a_citation(answer, cited):
    assert read(answer)[0][1] == cited


def test_a_passage_that_was_found_and_not_shown_is_cited_by_its_own_id():
    other = Passage(id="doc-8", text="Bergen.", rank=4)
    assert read("The lab is in Oslo [doc-8].", others=[*CONTEXTS, other]) == [(OSLO, ("doc-8",))]


def test_sentences_have_their_own_markers():
    answer = (
        "# The lab\n\nThe lab, e.g. its office, is in Oslo [1]. It has forty people. [2] Dr. Nilsen leads it. [1] and "
        "[3] agree.\n\n- Visitors come on Fridays [3]\n- They bring cake!\n[2]\nWelcome."
    )
    assert read(answer) == [
        ("The lab, e.g. its office, is in Oslo.", ("doc-1",)),
        ("It has forty people.", ("doc-2",)),
        ("Dr. Nilsen leads it.", ()),
        ("and agree.", ("doc-1", "doc-3")),
        ("Visitors come on Fridays", ("doc-3",)),
        ("They bring cake!", ("doc-2",)),
        ("Welcome.", ()),
    ]


def test_chinese_sentences():
    assert read("实验室在奥斯陆。[1]它有四十人【2】。") == [
        ("实验室在奥斯陆。", ("doc-1",)),
        ("它有四十人。", ("doc-2",)),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"answer": OSLO, "citations": [1, 3]},
        {"answer": OSLO, "citations": ["doc-1", "doc-3"]},
        {"answer": OSLO, "sources": ["place.md", "docs/visits.pdf"]},
        {
            "answer": OSLO,
            "citations": [{"source_id": 1, "quote": "in Oslo"}, {"source_id": 3, "quote": "on Fridays"}],
        },
        {"answer": OSLO, "quotes": ["at Karl Johans gate 12", "Its head is Ada Nilsen."]},
        {"result": {"statements": [{"text": OSLO, "citations": [1, 3]}]}},
        {"answer": "The lab is in Oslo [1][3].", "citations": [2]},
        {"reasoning": "none", "final": {"response": OSLO, "source_ids": "1, 3"}},
    ],
)
@pytest.mark.parametrize("form", [json.dumps, str, lambda it: f"```json\n{json.dumps(it, indent=1)}\n```"])
def test_structured_answers(answer, form):
    assert read(form(answer)) == TWO


def test_an_invented_quote_is_a_wrong_citation():
    ((_, cited),) = read(json.dumps({"answer": OSLO, "quotes": ["at Storgata 99"]}))
    assert cited == ("at Storgata 99",)


def test_structured_output_of_which_only_the_answer_is_returned():
    reply = json.dumps({"answer": OSLO, "citations": [1, 3]})
    assert read(OSLO, replies=["no", reply, '{"grade": "yes"}']) == TWO
    assert read(OSLO, replies=[f"Answer({reply})"]) == TWO
    assert read(OSLO, replies=[json.dumps({"answer": "Another.", "citations": [1]})]) == []


SHOWN = {
    "brackets": lambda n, text: f"[{n}] {text}",
    "brackets on a line": lambda n, text: f"[{n}]\n{text}",
    "brackets and a title": lambda n, text: f"[{n}] Title: The handbook\n{text}",
    "a source": lambda n, text: f"Source {n}:\n{text}",
    "a document": lambda n, text: f"### Document {n}: {text}",
    "a document with facts": lambda n, text: f"Document {n} (score 0.3{n})\nContent: {text}",
    "xml": lambda n, text: f'<doc id="{n}">{text}</doc>',
    "xml with a title": lambda n, text: f"<document index='{n}'><title>Handbook</title><text>{text}</text></document>",
    "json": lambda n, text: json.dumps({"id": n, "text": text}),
    "json behind": lambda n, text: str({"source_id": n, "page": 4, "content": text}),
    "a numbered list": lambda n, text: f"{n}. {text}",
    "parentheses": lambda n, text: f"({n}) {text}",
    "wide brackets": lambda n, text: f"【{n}】{text}",
}  # fmt: skip


@pytest.mark.parametrize("form", SHOWN)
def test_the_label_in_the_prompt_comes_first(form):
    labels = (7, 3, 5)
    shown = "\n\n".join(SHOWN[form](n, text) for n, text in zip(labels, TEXTS, strict=True))
    prompt = f"Answer and cite, like [1] or [2].\n\n{shown}\n\nQuestion: where is the lab, and who leads it?"
    assert read("The lab is in Oslo [7]. Ada leads it [5][1].", prompts=["Where?", prompt]) == [
        (OSLO, ("doc-1",)),
        ("Ada leads it.", ("doc-3", "1")),
    ]


def test_labels_from_zero():
    prompt = "\n".join(f"[{n}] {text}" for n, text in enumerate(TEXTS))
    assert read("The lab is in Oslo [0][2].", prompts=[prompt]) == TWO
    assert read("The lab is in Oslo [0][2].") == TWO


def test_parts_of_a_passage_in_a_citation_engine_s_prompt():
    long = Passage(id="long", text=" ".join(TEXTS[:2]), rank=1)
    short = Passage(id="short", text=TEXTS[2], rank=2)
    example = "Source 1:\nThe sky is red in the evening.\nSource 2:\nWater is wet when the sky is red.\n"
    prompt = example + "".join(f"Source {n}:\n{text}\n\n" for n, text in enumerate(TEXTS, start=1))
    parts = parts_of_run("In Oslo [1]. Forty people [2]. Ada leads it [3].", [long, short], prompts=[prompt])
    assert [part.citations for part in parts] == [("long",), ("long",), ("short",)]


def test_of_the_chunks_of_one_file_the_closest_is_cited():
    chunks = [
        Passage(id=f"c{n}", text=text, rank=n, metadata={"source": "guide.md"})
        for n, text in enumerate(TEXTS, start=1)
    ]
    parts = cited_parts("Visitors come on Fridays [guide.md]. Forty people work there (guide.md).", chunks)
    assert [part.citations for part in parts] == [("c3",), ("c2",)]


def test_numbers_that_are_ids_where_they_are_no_places():
    contexts = [Passage(id=name, text=name, rank=n) for n, name in enumerate(("17", "42"), start=1)]
    assert [part.citations for part in cited_parts("Oslo [42][2].", contexts)] == [("42",)]


def recorded(answer, prompt, **more):
    keeper = Keeper()
    with Recorder(keeper).start(query="Where is the lab?") as run:
        run.retrieved([{"id": p.id, "text": p.text, "metadata": p.metadata} for p in CONTEXTS])
        run.add_prompt(prompt)
        run.answered(answer, **more)
    return keeper.runs[0].record


def test_a_run_has_the_parts_in_the_order_of_its_prompt():
    record = recorded("Ada leads it [1]. It is in Oslo [2].", f"{TEXTS[2]}\n{TEXTS[0]}")
    assert [p.id for p in record.contexts] == ["doc-3", "doc-1"]
    assert record.answer_parts == (
        AnswerPart(text="Ada leads it.", citations=("doc-3",)),
        AnswerPart(text="It is in Oslo.", citations=("doc-1",)),
    )


def test_parts_that_the_application_gives_are_kept():
    given = [{"text": "It is in Oslo.", "citations": ["doc-2"]}]
    assert [p.citations for p in recorded("It is in Oslo [1].", TEXTS[0], parts=given).answer_parts] == [("doc-2",)]


def test_a_run_with_structured_output():
    keeper = Keeper()
    prompt = "\n".join(f"Source {n}: {text}" for n, text in zip((4, 8, 6), TEXTS, strict=True))
    with Recorder(keeper).start(query="Where?") as run:
        run.retrieved([{"id": p.id, "text": p.text} for p in CONTEXTS])
        run.add_prompt(prompt)
        reply = Message(role="assistant", content=json.dumps({"answer": OSLO, "citations": [4, 8]}))
        run.generated(inputs=[Message(role="user", content=prompt)], outputs=[reply])
        run.answered(OSLO)
    assert keeper.runs[0].record.answer_parts == (AnswerPart(text=OSLO, citations=("doc-1", "doc-2")),)


pieces = st.sampled_from(
    ["[", "]", "(", ")", "【", "】", "†", "<cite>", "</cite>", "<sup>", "1", "3", "-", ", ", "9", "Source ", "doc-", "{",
     "}", '"', ":", "\n", "Sources:", ". ", " ", "Oslo", "\\", "`", "citations", "#", "¹", "[^1]: ", "\ue000"]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(answer=st.lists(pieces, max_size=40).map("".join), prompt=st.lists(pieces, max_size=40).map("".join))
def test_any_answer_is_read(answer, prompt):
    before = internal_errors()
    parts = parts_of_run(answer, CONTEXTS, prompts=[prompt, prompt + TEXTS[0]], replies=[prompt])
    assert internal_errors() == before
    assert parts == () or any(part.citations for part in parts)
    assert not [part for part in parts if "\ue000" in part.text]


@pytest.mark.parametrize(
    "piece", ["[", "(a ", "[1", "<cite ", "\\", "&amp;", "Source 1, ", "[1] ", ". ", "{", "-", "1-1-"]
)
def test_long_answers_and_prompts_end(piece):
    before = internal_errors()
    parts_of_run(f"In Oslo [1]. {piece * 10_000}", CONTEXTS, prompts=[piece * 40_000])
    assert internal_errors() == before
