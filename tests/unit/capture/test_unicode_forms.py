"""The same text in another form of Unicode, or in another case, is the same text."""

from __future__ import annotations

import asyncio
import random
import unicodedata

import pytest

from ragtrace.capture import Recorder, cited_parts, found_in
from ragtrace.judges import OverlapJudge
from ragtrace.model import Message, Passage, Pool, RagRecord
from ragtrace.text import composed, folded, valid
from tests.kept import Keeper

WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
TEXTS = (
    "The office in Z\u00fcrich files each claim within thirty days of delivery.",
    "\u00c5ngstr\u00f6m caf\u00e9s offer a na\u00efve cr\u00e8me br\u00fbl\u00e9e to staff from Malm\u00f6.",
    "\u6d77\u8fba\u306e\u30db\u30c6\u30eb\u304c\u3042\u308a\u307e\u3059\u3002\u671d\u98df\u306f\u516b\u6642\u304b\u3089\u3067\u3059\u3002\u30ac\u30a4\u30c9\u3082\u3044\u307e\u3059\u3002",
    "\ud574\ubcc0\uc5d0 \ud638\ud154\uc774 \uc788\uc2b5\ub2c8\ub2e4. \uc544\uce68 \uc2dd\uc0ac\ub294 \uc5ec\ub35f \uc2dc\uc5d0 \uc2dc\uc791\ud569\ub2c8\ub2e4.",
    "\u039f \u03a3\u03cd\u03bb\u03bb\u03bf\u03b3\u03bf\u03c2 \u03c4\u03b7\u03c2 \u0391\u03b8\u03ae\u03bd\u03b1\u03c2 \u03b1\u03bd\u03bf\u03af\u03b3\u03b5\u03b9 \u03c3\u03c4\u03b9\u03c2 \u03b5\u03bd\u03bd\u03ad\u03b1.",
    "The plot has 5 m\u00b2 and \u00bd a tree; the lens is 5 \u00b5m thick \u2026 and that is all of it.",
    "Stra\u00dfenbahnen fahren in Gro\u00df-Gerau alle zw\u00f6lf Minuten bis Mitternacht.",
)
FORMS = {
    "NFC": lambda text: unicodedata.normalize("NFC", text),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "NFKD": lambda text: unicodedata.normalize("NFKD", text),
    "ligatures": lambda text: text.replace("ffi", "\ufb03").replace("ff", "\ufb00").replace("fi", "\ufb01"),
    "full width": lambda text: text.translate(WIDE),
    "soft hyphens": lambda text: "\u00ad".join(text[at : at + 5] for at in range(0, len(text), 5)),
    "joiners": lambda text: "\u200d".join(text[at : at + 7] for at in range(0, len(text), 7)),
    "a mark of the order of bytes": lambda text: "\ufeff" + text,
    "lower": str.lower,
    "upper": str.upper,
    "casefold": str.casefold,
    "NFKC, casefold": lambda text: unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()),
    "without accents": lambda text: "".join(
        one for one in unicodedata.normalize("NFD", text) if not "\u0300" <= one <= "\u036f"
    ),
}


def passages(texts=TEXTS):
    return [Passage(id=f"p{rank}", text=text, rank=rank) for rank, text in enumerate(texts, start=1)]


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("stored", FORMS)
def test_a_passage_is_found_in_any_form(stored, shown) -> None:
    pool = passages([FORMS[stored](text) for text in TEXTS])
    prompt = "Context:\n" + "\n\n".join(FORMS[shown](text) for text in TEXTS[4::-1]) + "\nQuestion: Where?"
    assert [one.id for one in found_in(prompt, pool)] == ["p5", "p4", "p3", "p2", "p1"]


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("stored", FORMS)
def test_a_cut_passage_keeps_the_store_s_text(stored, shown) -> None:
    text = FORMS[stored](" ".join(TEXTS[:2]))
    (found,) = found_in(f"Context: {FORMS[shown](TEXTS[0])} ...", passages([text]))
    assert found.truncated == len(text)
    assert text.startswith(found.text)
    assert folded(found.text).rstrip(" .\uff0e") == folded(FORMS[shown](TEXTS[0])).rstrip(" .\uff0e")


@pytest.mark.parametrize("form", FORMS)
def test_another_text_is_not_found(form) -> None:
    prompt = FORMS[form]("The office in Z\u00fcrich files no claim at all, and is closed on each day of the week.")
    assert not found_in(prompt, passages())


@pytest.mark.parametrize(
    ("text", "prompt", "is_there"),
    [
        ("Cafe\u0301 P\u00e4rlan", "Where? Caf\u00e9 Pa\u0308rlan.", True),
        ("Cafe\u0301", "- Caf\u00e9\n- Bar", True),
        ("\ufb01sh", "- fish", True),
        ("Room 4 holds 8.", "room 4 holds 8. question: where?", True),
        ("No, thanks", "say 'no thanks' to it", False),
        ("Yes", "answer yes or no", False),
    ],
)
def test_a_short_passage(text, prompt, is_there) -> None:
    assert bool(found_in(prompt, passages([text]))) is is_there


def run_of(*calls, answer, texts=TEXTS):
    keeper = Keeper()
    with Recorder(keeper).start(query="What must I do?") as run:
        run.retrieved([{"id": f"p{n}", "text": text} for n, text in enumerate(texts)])
        for prompt, reply in calls:
            run.add_prompt(prompt)
            outputs = [Message(role="assistant", content=reply)]
            run.generated(inputs=[Message(role="user", content=prompt)], outputs=outputs)
        run.answered(answer)
    return keeper.runs[0]


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_leads_back_to_its_prompt_in_any_form(form) -> None:
    say, note = "Z\u00fcrich files it within thirty days.", "The \ufb01les of Zu\u0308rich take thirty days."
    calls = [(TEXTS[0], note), (f"Write: {FORMS[form](note)}", say), (f"Title of {TEXTS[1]}", "Claims")]
    assert run_of(*calls, answer=FORMS[form](say)).prompt_ids == ("p0",)


# Capitals are names to the judge, and a name without its accents is another spelling.
@pytest.mark.parametrize("answered", [form for form in FORMS if form not in {"upper", "without accents"}])
@pytest.mark.parametrize("stored", ["NFC", "NFD", "NFKC", "NFKD", "ligatures", "soft hyphens"])
def test_the_offline_judge_reads_any_form(stored, answered) -> None:
    text, answer = FORMS[stored](TEXTS[0]), FORMS[answered](TEXTS[0])
    pool = Pool(stage="used", passages=tuple(passages([text, FORMS[stored](TEXTS[5])])))
    audit = asyncio.run(OverlapJudge().audit(RagRecord(id="1", query="When?", answer=answer, pools=(pool,))))
    assert [claim.verdict for claim in audit.claims] == ["supported"]
    assert not audit.invented


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_a_file_is_cited_by_its_name_in_any_form(form) -> None:
    (text,) = TEXTS[:1]
    name = unicodedata.normalize("NFD", "B\u00fcro-Z\u00fcrich.pdf")
    pool = [Passage(id="a", text=text, rank=1, metadata={"source": f"docs/{name}"}), passages()[1]]
    (part,) = cited_parts(f"Thirty days [{FORMS[form](name)}].", pool)
    assert part.citations == ("a",)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD", "ligatures"])
def test_a_quote_cites_its_passage_in_any_form(form) -> None:
    said = FORMS[form]("Z\u00fcrich files each claim")
    (part,) = cited_parts(f'{{"answer": "Thirty days.", "citations": [{{"quote": "{said}"}}]}}', passages())
    assert part.citations == ("p1",)


def test_what_a_reader_sees_is_left_as_it_is() -> None:
    assert (
        composed("5 m\u00b2, \u00bd a day \u2026 \u201cNo\u201d") == "5 m\u00b2, \u00bd a day \u2026 \u201cNo\u201d"
    )


@pytest.mark.parametrize("length", [1, 8_191, 8_192, 8_193, 16_385, 40_000])
def test_halves_of_pairs_at_every_place_of_a_long_text(length):
    draw = random.Random(length)
    for _ in range(20):
        text = "".join(draw.choices("a\ud800\udbff\udc00\udfff\u00e9\U0001f600", k=length))
        assert valid(text) == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
