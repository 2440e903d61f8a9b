"""Text of prompts that nothing explains: the fixed flows, the rule's edges, what is kept, and what it costs."""

from __future__ import annotations

import gc
from itertools import chain

import pytest

from ragtrace.capture.residue import Explained, Memory, Prompted, Unread, held_in, unread
from ragtrace.capture.values import Doc, Prompt, Steer, Turn
from tests import cpu
from tests.public.texts import TEXTS
from tests.unit.capture.flows.kit import Flow, Run
from tests.unit.capture.flows.silent import RULES, SILENT
from tests.unit.capture.flows.topics import JAPANESE
from tests.unit.capture.flows.unread import UNREAD

PAGE = TEXTS["geese_count"]
OTHER_PAGE = TEXTS["essay_boats"]
TEMPLATE = "You answer for the bird station of the island, in one sentence, from what is known."


def told(run: Run, memory: Memory, *, with_reply: bool = False) -> list[Unread]:
    explained = Explained(run.explained)
    for prompt in run.prompts:
        explained.add_reply(prompt.reply)
    prompts = [
        Prompted(one.step, one.texts, replies, one.reply if with_reply else "")
        for replies, one in enumerate(run.prompts)
    ]
    return unread(prompts, explained, run.held, memory)


def reports(flow: Flow, *, with_reply: bool = False) -> dict[int, list[Unread]]:
    """Return what is reported of a flow's runs, by number from 1."""
    memory = Memory()
    found = {number: told(run, memory, with_reply=with_reply) for number, run in enumerate(flow.runs, 1)}
    return {number: some for number, some in found.items() if some}


def reported(flows: tuple[Flow, ...], *, with_reply: bool = False) -> list[str]:
    """Return the kinds of flows of which one of the runs 2 to 14 is reported."""
    return [flow.kind for flow in flows if {*reports(flow, with_reply=with_reply)} - {1}]


def test_the_flows_are_what_they_were() -> None:
    assert (len(SILENT), len(UNREAD)) == (21, 13)
    assert {len(flow.runs) for flow in (*SILENT, *UNREAD)} == {14}


def test_at_most_three_of_the_flows_without_unread_text_are_reported() -> None:
    assert reported(SILENT) == [
        "examples chosen for each question",
        "several templates of one step",
        "prompts in two languages",
    ]


def test_none_of_them_is_where_the_reply_must_use_the_text() -> None:
    assert reported(SILENT, with_reply=True) == []


@pytest.mark.parametrize("with_reply", [False, True])
def test_at_least_ten_of_the_flows_with_unread_text_are_seen(*, with_reply: bool) -> None:
    seen = reported(UNREAD, with_reply=with_reply)
    assert [flow.kind for flow in UNREAD if flow.kind not in seen] == [
        "texts in Japanese that a function wrote",  # nine words each
        "a few words that a function wrote",
        "one handbook for all questions",  # no other than a template
    ]


def test_text_that_is_held_is_seen_in_the_first_run_with_its_place() -> None:
    first = {flow.kind: reports(flow)[1][0].place for flow in UNREAD if 1 in reports(flow)}
    assert first == {
        "rows that stand in the state": "state.rows",
        "a document in the input of the run": "input.document",
        "a context in the state beside passages that were found": "state.archive",
        "a letter in the input of the run": "input.letter.body",
    }


def test_a_first_run_is_silent_but_for_instructions_in_its_input() -> None:
    assert [flow.kind for flow in SILENT if 1 in reports(flow)] == [
        "the same instructions in the input of each run"
    ]


# -- one prompt --


def judge(
    *texts: str, known: tuple[str, ...] = (), held: tuple[tuple[str, str], ...] = (), reply: str = ""
) -> list[Unread]:
    """Return what is unread of a prompt, whose step showed the template before."""
    memory = Memory()
    unread([Prompted("step", [TEMPLATE])], Explained(), [], memory)
    return unread([Prompted("step", [TEMPLATE, *texts], reply=reply)], Explained(known), held, memory)


def words(count: int, name: str = "w") -> str:
    return " ".join(f"{name}{number}" for number in range(count))


def test_its_first_words_are_told_as_they_stand_there() -> None:
    assert judge(f"Read:\n{PAGE}") == [
        Unread("", 35, "Read: Bird-watchers of Vester counted 6,400 brent geese on 12")
    ]


def test_less_than_twelve_words_together_are_nothing() -> None:
    assert judge(words(11)) == []
    assert judge(words(12)) == [Unread("", 12, words(12))]
    assert [one.words for one in judge(words(8, "a"), words(8, "b"))] == [16]
    assert judge(words(7, "a"), words(7, "b")) == []


def test_three_signs_of_an_unspaced_script_are_a_word() -> None:
    text = "".join(topic.passages[0] for topic in JAPANESE)
    signs = [sign for sign in text if sign.isalnum()]
    assert judge("".join(signs[:35])) == []
    assert [one.words for one in judge("".join(signs[:36]))] == [12]


def test_what_is_explained_is_known_as_it_is_in_part_and_wrapped() -> None:
    assert judge(PAGE, known=(PAGE,)) == []
    assert judge(PAGE[:90] + "...", known=(PAGE,)) == []
    assert judge("> " + PAGE.replace(". ", ".\n> "), known=(PAGE,)) == []
    assert judge(PAGE, PAGE, f"Again: {PAGE}", known=(PAGE,)) == []
    assert [one.words for one in judge(f"{PAGE} {words(12)}", known=(PAGE,))] == [12]


def test_whole_short_values_that_are_explained_break_a_stretch() -> None:
    text = "alpha beta gamma delta Oslo epsilon zeta eta theta Rome iota kappa lambda mu"
    assert [one.words for one in judge(text)] == [14]
    assert judge(text, known=("Oslo", "Rome")) == []


def test_a_reply_explains_later_prompts_and_not_its_own() -> None:
    explained = Explained()
    explained.add_reply(PAGE)
    memory = Memory()
    unread([Prompted("a", [TEMPLATE]), Prompted("b", [TEMPLATE])], Explained(), [], memory)
    later = Prompted("b", [TEMPLATE, PAGE], 1)
    own = Prompted("a", [TEMPLATE, PAGE], 0)
    assert unread([later], explained, [], memory) == []
    explained = Explained()
    explained.add_reply(PAGE)
    assert [one.words for one in unread([own], explained, [], memory)] == [34]


def test_the_order_in_which_prompts_are_given_is_no_matter() -> None:
    explained = Explained()
    explained.add_reply(PAGE)
    memory = Memory()
    unread([Prompted("a", [TEMPLATE]), Prompted("b", [TEMPLATE])], Explained(), [], memory)
    assert unread([Prompted("b", [PAGE], 1), Prompted("a", [TEMPLATE], 0)], explained, [], memory) == []


def test_a_step_is_compared_with_itself_alone() -> None:
    memory = Memory()
    unread([Prompted("one", [TEMPLATE])], Explained(), [], memory)
    assert unread([Prompted("two", [PAGE])], Explained(), [], memory) == []
    assert [one.words for one in unread([Prompted("two", [OTHER_PAGE])], Explained(), [], memory)] == [23]


def test_text_is_forgotten_behind_five_prompts() -> None:
    memory = Memory()
    for text in (PAGE, *[words(20, f"t{number}") for number in range(4)]):
        unread([Prompted("step", [text])], Explained(), [], memory)
    assert unread([Prompted("step", [PAGE])], Explained(), [], memory) == []
    for text in [words(20, f"u{number}") for number in range(5)]:
        unread([Prompted("step", [text])], Explained(), [], memory)
    assert [one.words for one in unread([Prompted("step", [PAGE])], Explained(), [], memory)] == [34]


def test_a_passage_that_was_found_before_and_is_not_told_now_is_unread() -> None:
    memory = Memory()
    for _ in range(2):
        assert unread([Prompted("step", [TEMPLATE, PAGE])], Explained([PAGE]), [], memory) == []
    assert [one.words for one in unread([Prompted("step", [TEMPLATE, PAGE])], Explained(), [], memory)] == [34]


def test_text_beside_other_evidence_counts_where_the_reply_uses_it() -> None:
    assert judge(PAGE, reply="They come in October, and there were 6,400 of them.") != []
    assert judge(PAGE, reply="The station does not know that.") == []


# -- values --


def test_text_of_a_value_has_its_place_and_the_rest_has_none() -> None:
    held = (("state.page", PAGE), ("state.other", OTHER_PAGE), ("state.copy", PAGE))
    found = judge(f"{words(12)} {OTHER_PAGE}", f"Page: {PAGE}", held=held)
    assert [(one.place, one.words) for one in found] == [("state.page", 34), ("state.other", 23), ("", 12)]


def test_a_rendered_prompt_is_no_value() -> None:
    text = f"Answer from this. {PAGE}"
    assert unread([Prompted("s", [text])], Explained(), [("state.prompt", text)], Memory()) == []
    both = [("state.prompt", f"{TEMPLATE}\n{text}")]
    assert unread([Prompted("s", [TEMPLATE, text])], Explained(), both, Memory()) == []


def test_a_value_that_is_a_message_is_compared_with_earlier_prompts() -> None:
    memory = Memory()
    places = []
    for page in (PAGE, OTHER_PAGE):
        held = [("input.style", RULES), ("input.page", page)]
        found = unread([Prompted("s", [RULES, page, "Sum it up."])], Explained(), held, memory)
        places.append([one.place for one in found])
    assert places == [["input.style", "input.page"], ["input.page"]]


def test_values_are_walked_with_their_places() -> None:
    value = {
        "page": PAGE,
        "short": "a few",
        "messages": [Turn("user", PAGE)],
        "documents": [Doc(PAGE)],
        "prompt": Prompt([Turn("user", PAGE)]),
        "rows": [
            {"town": "Storby", "hotel": "Haus Enzian", "rooms": 12, "open": True},
            {"town": "Tuna", "note": None},
        ],
        "next": Steer(update={"draft": {"text": OTHER_PAGE}}),
    }
    assert [*held_in(value, "state")] == [
        ("state.page", PAGE),
        ("state.rows", "Storby Haus Enzian 12 Tuna"),
        ("state.rows", "town Storby hotel Haus Enzian rooms 12 open town Tuna note"),
        ("state.next.draft.text", OTHER_PAGE),
    ]


def test_parts_of_a_long_list_stand_alone() -> None:
    found = [*held_in([words(9_000), {"text": words(9_000, "v")}], "input")]
    assert [(place, len(text.split())) for place, text in found] == [("input[*]", 9_000), ("input[*].text", 9_000)]


def test_nothing_deep_is_walked() -> None:
    value: object = PAGE
    for _ in range(50):
        value = {"a": [value]}
    assert [*held_in(value, "input")] == []


# -- bounds --


def test_blank_and_empty_input_is_nothing() -> None:
    assert unread([], Explained(), [], Memory()) == []
    assert unread([Prompted("", [])], Explained([""]), [("", "")], Memory()) == []
    assert judge("", " \n", "...") == []


def test_memory_is_bounded() -> None:
    memory = Memory()
    for number in range(200):
        memory.add(f"step {number}", {number})
    assert len(memory) == 64
    assert [bool(memory.before(f"step {number}")) for number in (135, 136, 199)] == [False, True, True]
    for number in range(9):
        memory.add("step 199", {number})
    assert [[*one] for one in memory.before("step 199")] == [[8], [7], [6], [5], [4]]
    memory.add("huge", set(range(8_193)))
    assert memory.before("huge") == ()
    for number in range(40):
        memory.add(f"big {number}", set(range(8_192)))
        assert len(memory) <= 131_072
    assert len(memory.before("big 39")) == 1


def test_a_prompt_too_long_to_remember_is_judged_by_its_values_alone() -> None:
    memory = Memory()
    held = [("state.page", PAGE)]
    for _ in range(3):
        found = unread([Prompted("s", [words(9_000), f"Read: {PAGE}"])], Explained(), held, memory)
        assert [one.place for one in found] == ["state.page"]
    assert len(memory) == 0


def test_no_text_is_kept() -> None:
    memory = Memory()
    for flow in (*SILENT[:6], *UNREAD[:6]):
        for run in flow.runs:
            told(run, memory)
    assert len(memory) > 100
    seen: set[int] = set()
    todo: list[object] = [memory]
    texts = set()
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, type):
            seen.add(id(one))
            texts |= {one} if isinstance(one, str) else set()
            todo.extend(gc.get_referents(one))
    steps = {prompt.step for flow in (*SILENT, *UNREAD) for run in flow.runs for prompt in run.prompts}
    assert texts - {"_steps", "_size"} <= steps


def test_a_long_prompt_costs_less_than_a_millisecond() -> None:
    """0.8 ms for a prompt of 13,000 characters, what is explained and a state with it included."""
    passages = [
        " ".join(part)
        for part in zip(*[iter([text for text in TEXTS.values() if text.isascii()])] * 8, strict=False)
    ]
    shown: list[str] = []
    while sum(map(len, shown)) < 9_000:
        shown.append(passages[len(shown)])
    prompt = [(RULES * 3)[:3_600], "\n".join(chain(shown, ["Which of them is the oldest?"]))]
    memory = Memory()

    def run() -> None:
        explained = Explained(["Which of them is the oldest?", *shown])
        assert unread([Prompted("s", prompt)], explained, [("state.context", "\n\n".join(shown))], memory) == []

    for _ in range(6):
        run()
    assert 12_000 < sum(map(len, prompt)) < 14_000
    assert cpu.seconds(run, rounds=20) < 0.0008 * cpu.slower()
