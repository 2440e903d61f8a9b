"""Passages are found in a prompt whatever notation the application shows them in."""

from __future__ import annotations

import asyncio
import html
import json
import textwrap
from xml.sax.saxutils import escape, quoteattr

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from msgspec.structs import replace
from pydantic import BaseModel

from ragtrace.capture import PassageFinder, Recorder, found_in
from ragtrace.judges import OverlapJudge
from ragtrace.model import Passage
from tests.kept import Keeper


class Chunk(BaseModel):
    text: str


def each(form):
    return lambda texts: "\n\n".join(map(form, texts))


def mapped(text):
    return {"id": 7, "text": text, "score": 0.93}


def table(texts):
    cells = [" ".join(text.replace("|", r"\|").split()) for text in texts]
    return "| n | text |\n|---|---|\n" + "\n".join(f"| {n} | {cell} |" for n, cell in enumerate(cells))


FORMATTERS = {
    "as it is": each(str),
    "repr": each(repr),
    "ascii": each(ascii),
    "str(list)": str,
    "str(dict)": each(lambda text: str(mapped(text))),
    "str(list of dicts)": lambda texts: str([mapped(text) for text in texts]),
    "str(Document)": each(lambda text: str(Document(page_content=text, metadata={"page": 3}))),
    "repr(Document)": lambda texts: repr([Document(page_content=text) for text in texts]),
    "json": each(json.dumps),
    "json without ensure_ascii": lambda texts: json.dumps([mapped(text) for text in texts], ensure_ascii=False),
    "json, indented": lambda texts: json.dumps([mapped(text) for text in texts], indent=2),
    "json in json": lambda texts: json.dumps({"content": json.dumps([mapped(text) for text in texts])}),
    "json in json in json": lambda texts: json.dumps(json.dumps(json.dumps(texts))),
    "repr of json": lambda texts: repr(json.dumps(texts)),
    "model_dump_json": each(lambda text: Chunk(text=text).model_dump_json()),
    "repr of a model": each(lambda text: repr(Chunk(text=text))),
    "json that is safe in HTML": each(lambda text: json.dumps(text).replace("&", "\\u0026").replace("<", "\\u003c")),
    "quoted": each(lambda text: textwrap.indent(text, "> ", lambda _: True)),
    "quoted twice": each(lambda text: textwrap.indent(text, "> > ", lambda _: True)),
    "commented": each(lambda text: textwrap.indent(text, "# ")),
    "indented": each(lambda text: textwrap.indent(text, " " * 8)),
    "wrapped": each(lambda text: textwrap.fill(text, 30, break_long_words=False, break_on_hyphens=False)),
    "newlines removed": each(lambda text: text.replace("\n", "")),
    "newlines as blanks": each(lambda text: text.replace("\n", " ")),
    "newlines escaped": each(lambda text: text.replace("\n", "\\n")),
    "newlines of Windows": each(lambda text: text.replace("\n", "\r\n")),
    "newlines as <br>": each(lambda text: text.replace("\n", "<br>")),
    "white space folded": each(lambda text: " ".join(text.split())),
    "html": each(lambda text: f"<p>{html.escape(text)}</p>"),
    "html, twice": each(lambda text: html.escape(html.escape(text))),
    "html with numbers": each(lambda text: text.encode("ascii", "xmlcharrefreplace").decode()),
    "xml": each(lambda text: f'<document index="1">{escape(text)}</document>'),
    "an attribute of xml": each(lambda text: f"<document text={quoteattr(text)}/>"),
    "json in xml": each(lambda text: f"<doc>{escape(json.dumps(text))}</doc>"),
    "a list of Markdown": each(lambda text: "- " + text.replace("\n", "\n  ")),
    "a numbered list": lambda texts: "\n".join(f"{n}. {text}" for n, text in enumerate(texts, start=1)),
    "a block of Markdown": each(lambda text: f"```\n{text}\n```"),
    "a table": table,
    "yaml": yaml.safe_dump,
    "yaml, with Unicode": lambda texts: yaml.safe_dump(texts, allow_unicode=True, width=40),
    "yaml, double quotes": lambda texts: yaml.safe_dump(texts, default_style='"', width=40),
    "yaml, a block": lambda texts: yaml.safe_dump(texts, default_style="|"),
    "csv": each(lambda text: '"' + text.replace('"', '""') + '"'),
    "quotes replaced": each(lambda text: text.replace(chr(34), "“").replace(chr(39), "\u2019")),
}  # fmt: skip
TEXTS = (
    'Title:\nThe "Aurora" lab\n\nis in Oslo, at Karl Johans gate 12,\nsince the spring of 2026.',
    "Pfad C:\\new\\table\\users\\x41: dort liegt die Datei \\u00e9 für Größen,\tWerte & Maße.\n\nZwei Spalten.",
    "Ada said: 'it\\'s \"fine\"'.\n\tThen she left the room <br> & closed the door; x < y and z > w.",
    "東京は日本の首都です。\n人口は約1400万人で、世界最大級の都市圏を形成しています。\n「江戸」と呼ばれた。",
    "Москва — столица России.\nНаселение: 13 миллионов человек;\tоснована в 1147 году. «Кремль» в центре.",
    '| a | b |\n|---|---|\n| Rückgabe | 30 Tage, "kostenlos" |\n| Umtausch | 14 Tage & länger |\n',
    "line one\r\nline two is here\r\nline three\r\n\r\nends — “so”\u00a0or\u2028not… 😀 with emoji",
    "def rate(x):\n    '''Return the \"rate\".'''\n    return re.sub(r'\\n+', '\\t', x) # &amp; &lt;b&gt;",
    "الرباط هي عاصمة المغرب.\nعدد السكان حوالي نصف مليون نسمة، وتقع على المحيط الأطلسي.",
    "$\\alpha + \\beta = \\frac{1}{2}$\nwhere \\textbf{n} is the number of samples\\\\ and so on to the end",
)  # fmt: skip
DECOYS = (
    'Title:\nThe "Borealis" lab\n\nis in Bergen, at Strandgaten 3,\nsince the autumn of 2025.',
    "東京タワーは港区にある。\n高さは333メートルで、1958年に完成しました。観光名所です。",
    "def total(x):\n    '''Return the \"total\".'''\n    return sum(x)",
)


def passages(texts):
    return [Passage(id=f"p{n}", text=text, rank=n + 1) for n, text in enumerate(texts)]


def prompt_of(form, texts):
    return f"Answer from these documents only.\n\n{FORMATTERS[form](list(texts))}\n\nQuestion: where is it?"


@pytest.mark.parametrize("form", FORMATTERS)
def test_each_passage_is_found_whole(form):
    pool = passages([*TEXTS, *DECOYS])
    shown = [pool[n] for n in (4, 0, 9, 2, 7, 1, 8, 3, 6, 5)]
    found = found_in(prompt_of(form, [p.text for p in shown]), pool)
    assert [p.id for p in found] == [p.id for p in shown]
    assert all(p is pool[int(p.id[1:])] for p in found)


@pytest.mark.parametrize("form", FORMATTERS)
def test_one_alone_is_found_and_no_other(form):
    pool = passages([*TEXTS, *DECOYS])
    for passage in pool:
        assert found_in(prompt_of(form, [passage.text]), pool) == (passage,)


@pytest.mark.parametrize("form", [form for form in FORMATTERS if form != "wrapped"])
def test_a_cut_passage_comes_back_with_its_beginning(form):
    text = " ".join(f'Line {n} is said by "{name}"\nhere.' for n, name in enumerate(["Ada", "Bob", "Eve"] * 4))
    (found,) = found_in(prompt_of(form, [text[:150]]), passages([text, DECOYS[0]]))
    assert (found.truncated, found.text[:145]) == (len(text), text[:145])
    assert len(found.text) <= 155


def answered(*prompts, used=None):
    keeper = Keeper()
    with Recorder(keeper).start(query="Where is the lab?") as run:
        run.retrieved([{"id": f"d{n}", "text": text} for n, text in enumerate([*DECOYS, *TEXTS])])
        for prompt in prompts:
            run.add_prompt(prompt)
        if used is not None:
            run.used(used)
        run.answered("The Aurora lab is in Oslo since the spring of 2026.")
    return keeper.runs[0]


def support_of(record):
    (claim,) = asyncio.run(OverlapJudge().audit(record)).claims
    return claim.support


@pytest.mark.parametrize("form", FORMATTERS)
def test_the_score_does_not_depend_on_the_formatter(form):
    kept = answered(prompt_of(form, [TEXTS[2], TEXTS[0]]))
    assert (kept.prompt_ids, kept.record.selection_source) == (("d5", "d3"), "prompt")
    assert [p.text for p in kept.record.contexts] == [TEXTS[2], TEXTS[0]]
    assert support_of(kept.record) == support_of(answered(used=[TEXTS[2], TEXTS[0]]).record) > 0.8


@pytest.mark.parametrize(
    ("text", "prompt", "is_there"),
    [
        ("Yes.\n", 'Answer "Yes" or "No".', False),
        ("Yes.\n", 'Documents: ["Yes.", "No."]', True),
        ("42\n", "Answer in 42 words.", False),
        ("42\n", "In 1942 it was.", False),
        ("42\n", "Documents:\n- 42\n- 43", True),
        ("42\n", '{"text": "42"}', True),
        ("No,\nthanks", "Say 'no thanks' to it", False),
        ('He said "no".', r'{"text": "He said \"no\"."}', True),
        ('He said "no".', "She said nothing. He said nobody knows.", False),
        ("Oslo\nBergen", "> Oslo\n> Bergen", True),
        ("Oslo\nBergen", "The Oslo Bergensen line", False),
        ("→\n★", "Documents: → ★", True),
        ("???\n", "What???", False),
        ("\n \t", "anything", False),
    ],
)
def test_short_passages_are_whole_words_or_values(text, prompt, is_there):
    assert bool(found_in(prompt, passages([text]))) is is_there


CHUNKS = (
    "The lab is in Oslo, at Karl Johans gate 12, since the spring of the year 2026.",
    "It has forty people, who work on the ice of the Arctic Ocean and its history.",
    "Its head is Ada Nilsen. Visitors come on Fridays, between nine and eleven.",
)


@pytest.mark.parametrize(
    ("shown", "text", "truncated"),
    [
        pytest.param((0, 1, 2), " ".join(CHUNKS), 0, id="all"),
        pytest.param((0, 1), " ".join(CHUNKS[:2]), 231, id="the first two"),
        pytest.param((0, 2), CHUNKS[0], 231, id="without the middle"),
    ],
)
def test_chunks_of_a_passage_are_its_parts(shown, text, truncated):
    pool = passages([DECOYS[0], " ".join(CHUNKS)])
    prompt = "".join(f"Source {n}:\n{CHUNKS[chunk]}\n\n" for n, chunk in enumerate(shown, start=1))
    (found,) = found_in(prompt, pool)
    assert (found.id, found.truncated) == ("p1", truncated)
    assert found.text.rstrip(".") == text.rstrip(".")


def test_chunks_that_overlap_are_parts_too():
    text = " ".join(CHUNKS)
    (found,) = found_in(f"Source 1:\n{text[:120]}\n\nSource 2:\n{text[90:]}\n", passages([text]))
    assert found.text == text


def test_the_middle_of_sliding_windows_is_not_shown_by_its_neighbours():
    text = " ".join(CHUNKS)
    pool = passages([text[:100], text[50:150], text[100:200]])
    assert [p.id for p in found_in(f"Source 1:\n{pool[0].text}\n\nSource 2:\n{pool[2].text}", pool)] == ["p0", "p2"]


def test_the_order_is_that_of_the_prompt():
    kept = answered(f"{TEXTS[3]}\n{json.dumps(TEXTS[0])}\n{TEXTS[1]}")
    assert kept.prompt_ids == ("d6", "d3", "d4")
    assert [(p.id, p.rank) for p in kept.record.pool("used")] == [("d6", 1), ("d3", 2), ("d4", 3)]


def test_of_several_prompts_the_order_is_that_of_delivery():
    assert answered(f"{TEXTS[1]}", f"{TEXTS[0]}").prompt_ids == ("d3", "d4")


def test_long_prompts_of_many_passages_end():
    pool = passages([f"Passage {n}:\n" + f"word{n} and more\n" * 40 for n in range(1_000)])
    prompt = json.dumps('filler text "here"\n' * 10_000)
    finder = PassageFinder(pool)
    for _ in range(20):
        assert finder.places_in(prompt) == []
    assert finder.places_in(json.dumps(pool[7].text)) == []  # the search has ended for good


words = st.sampled_from(
    ["Oslo", "lab", "naïve", "Größe", "東京都", "Москва", "x1", "n", "t", "u00e9", "42", "rate", "amp", "br", "the"]
)
gaps = st.sampled_from(
    [" ", "\n", "\n\n", "\t", ' "', '" ', "\\", " \\n", "'", ", ", " — ", " & ", " > ", ": ", "|"]
)


@st.composite
def written(draw):
    made = "".join(draw(words) + draw(gaps) for _ in range(draw(st.integers(1, 40))))
    return made + draw(words)


@settings(max_examples=200, deadline=None)
@given(text=written(), form=st.sampled_from(sorted(FORMATTERS)), n=st.integers(0, 3))
@example(text="the rate of the lab in Oslo is given in the file C:\\x1\n42 of", form="newlines removed", n=0)
def test_any_passage_is_found_among_decoys(text, form, n):
    text = f"{text} end of {len(text)}."
    assume(len(text) >= 60)
    pool = passages([*DECOYS[:n], text, *DECOYS[n:]])
    assert pool[n] in found_in(prompt_of(form, [TEXTS[0], text]), pool)


@settings(max_examples=200, deadline=None)
@given(shown=st.lists(written(), max_size=3), text=written(), form=st.sampled_from(sorted(FORMATTERS)))
def test_nothing_is_found_of_which_nothing_is_there(shown, text, form):
    text = text.translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩϏϘ"))
    text = f"Κένο {text}"
    assert found_in(prompt_of(form, shown), passages([text])) == ()


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(written(), min_size=1, max_size=4), prompt=st.text(max_size=200))
def test_what_comes_back_is_a_beginning_of_what_was_given(texts, prompt):
    pool = passages(texts)
    for found in found_in(prompt + texts[0][:70], pool):
        whole = next(p for p in pool if p.id == found.id)
        assert whole.text.startswith(found.text)
        assert found == (
            whole if not found.truncated else replace(whole, text=found.text, truncated=len(whole.text))
        )
