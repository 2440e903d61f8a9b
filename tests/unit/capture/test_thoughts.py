"""What a reasoning model thinks in its text is no part of what it answers; a tag that an answer quotes is."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core.base.response.schema import Response
from openai.types.chat import ChatCompletion

from ragtrace.capture import Recorder, answer_text, without_thoughts
from ragtrace.model import Message
from tests import cpu
from tests.kept import Keeper

ANSWER = "The return window is thirty days from delivery."
THOUGHT = "The user asks about returns. Perhaps 45 days, as in Sweden?"
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
CALL = (
    '<|end|><|start|>assistant<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"q": 1}<|call|>'
)

THOUGHTFUL = {
    "tags": f"<think>{THOUGHT}</think>\n{ANSWER}",
    "tags on lines": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    "tags in one line": f"<think>{THOUGHT}</think>{ANSWER}",
    "behind blanks": f"\n\n  <think>{THOUGHT}</think>{ANSWER}",
    "capitals": f"<THINK>{THOUGHT}</Think>{ANSWER}",
    "an attribute": f'<think type="slow">{THOUGHT}</think >{ANSWER}',
    "no thought": f"<think>\n\n</think>\n\n{ANSWER}",
    "the opening tag is in the template": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "the opening tag is in the template, one line": f"{THOUGHT}</think>{ANSWER}",
    "the opening tag is in the template, with blanks": f"{THOUGHT} </think> {ANSWER}",
    "the opening tag is in the template, no sentence": f"hm</think>{ANSWER}",
    "the opening tag is in the template, no thought": f"</think>\n\n{ANSWER}",
    "thinking": f"<thinking>{THOUGHT}</thinking>{ANSWER}",
    "thought": f"<thought>{THOUGHT}</thought>{ANSWER}",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>\n{ANSWER}",
    "Seed-OSS": f"<seed:think>{THOUGHT}</seed:think>{ANSWER}",
    "Magistral": f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    "Magistral, opened by the template": f"{THOUGHT}[/THINK]{ANSWER}",
    "Kimi": f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    "MedGemma": f"<unused94>thought\n{THOUGHT}<unused95>{ANSWER}",
    "Gemma": f"<|channel>thought\n{THOUGHT}<channel|>{ANSWER}",
    "Command R": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
    "OpenThinker": f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|>\n"
    f"<|begin_of_solution|>{ANSWER}<|end_of_solution|>",
    "Apertus": f"<|inner_prefix|>{THOUGHT}<|inner_suffix|>{ANSWER}",
    "gpt-oss": f"<|channel|>analysis<|message|>{THOUGHT}{FINAL}{ANSWER}<|return|>",
    "gpt-oss, opened by the template": f"{THOUGHT}{FINAL}{ANSWER}",
    "gpt-oss with a call": f"<|channel|>analysis<|message|>{THOUGHT}{CALL}{FINAL.removeprefix('<|end|>')}{ANSWER}",
    "gpt-oss, final alone": f"<|channel|>final<|message|>{ANSWER}<|end|>",
    "gpt-oss without special tokens": f"analysis{THOUGHT}assistantfinal{ANSWER}",
    "an answer in a tag": f"<think>{THOUGHT}</think>\n<answer>\n{ANSWER}\n</answer>",
    "two thoughts": f"<think>a</think>\n<think>b</think>\n{ANSWER}",
    "thoughts in thoughts": f"<think>a<think>b</think>c</think>{ANSWER}",
    "opened twice": f"<think>\n<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    "thoughts quote the closing tag": f'<think>It says "</think>" there.</think>{ANSWER}',
    "thoughts have the closing tag in code": f"<think>It says `</think>` there.</think>{ANSWER}",
    "thoughts name the opening tag": f"<think>I use <think> tags.</think>{ANSWER}",
    "thoughts name both tags": f"<think>I close with </think> at the end.\n</think>\n\n{ANSWER}",
    "thoughts of the template name the tag": f"I was told to use <think> tags. So I do.\n</think>\n\n{ANSWER}",
    "thoughts with a fence that stays open": f"<think>```json\n{{}}\n</think>\n{ANSWER}",
    "thoughts with a fence": f"<think>\n```\nx\n```\n</think>\n{ANSWER}",
    "thoughts end with a quote": f"<think>hm 'quoted'</think>{ANSWER}",
    "thoughts behind it": f"{ANSWER}\n<think>done</think>",
    "thoughts behind it, not closed": f"{ANSWER}\n<think>\ndo",
}
QUOTING = [
    "The answer ends with </think>.", "It closes its thoughts with `</think>`.", "It says <think>thirty</think> days.",
    "Use `<think>` and `</think>`.", "```\n<think>\nhm\n</think>\n28 days\n```\nis a reply", 'It says "</think>" in quotes.',
    "It begins with <think> and goes on.", "Two ends: </think> and </think>", "(</think>) closes them",
    "The tags are two. <think> opens thoughts, and </think> closes them.", "- opening: <think>\n- closing: </think>\n\nBoth.",
    "Take [THINK] and [/THINK] as tags.", "`<|channel|>analysis` is a channel.", "Write <think> before </think>",
    "```\n<|channel|>analysis<|message|>2+2" + FINAL + "4<|return|>\n```", "analysis of the assistantfinal",
    '{"answer": "It ends with </think>."}', "It wraps them in <think>…</think> before the answer.",
]  # fmt: skip
OTHERS = [
    "", " ", ANSWER, f" {ANSWER}\n", "a < b and b > a", "See [1] and [2].", "See [Tutorial] and [/Topics].", "<b>bold</t",
    "<table><tr><th>a</th", "x <", "List[", "<p>thirty</p>", "<answer>x</answer>", "Analysis: thirty days.",
    "<thinker>x</thinker>", "<think/>", "Think! Then ask.",
]  # fmt: skip
NOTHING = [
    "<think>", f"<think>{THOUGHT}", f"<think>{THOUGHT}</", f"<think>{THOUGHT}</thi", f"{THOUGHT}\n</think>",
    f"{THOUGHT}\n</thi", f"{THOUGHT}</think", "<", "<thi", "[", "[TH", "◁thi", "<|START_THI", "<|chan", "<|channel|>analysis",
    f"<|channel|>analysis<|message|>{THOUGHT}", f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|chan",
    "<|start|>assistant<|cha", "analysisWe need to", "<think></think>", "<think>\n\n</think>\n\n",
    "<think>It says `</think>` in",
]  # fmt: skip


@pytest.mark.parametrize("name", THOUGHTFUL)
def test_thoughts_are_left_out(name: str) -> None:
    assert without_thoughts(THOUGHTFUL[name]) == ANSWER
    assert without_thoughts(ANSWER) == ANSWER


@pytest.mark.parametrize("text", QUOTING)
def test_a_tag_that_an_answer_quotes_is_part_of_it(text: str) -> None:
    assert without_thoughts(text) == text
    assert without_thoughts(f"<think>{THOUGHT}</think>\n\n{text}") == text, "also behind thoughts"


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_tag_stays(text: str) -> None:
    assert without_thoughts(text) == text


@pytest.mark.parametrize("text", NOTHING)
def test_thoughts_that_are_not_over_answer_nothing(text: str) -> None:
    assert without_thoughts(text) == ""


@pytest.mark.parametrize(
    "name", ["tags on lines", "tags in one line", "Magistral", "Kimi", "gpt-oss", "Seed-OSS", "Apertus"]
)
def test_a_stream_that_is_cut_anywhere_says_what_stands_behind_the_thoughts(name: str) -> None:
    whole = THOUGHTFUL[name]
    begin = whole.index(ANSWER)
    for length in range(len(whole) + 1):
        assert without_thoughts(whole[:length]) == ANSWER[: max(length - begin, 0)].strip(), whole[:length]


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "x </think> ",
        "<think ",
        "[THINK]",
        "<|channel|>final<|message|>",
        "`<think>",
        "```\n",
    ],
)
def test_the_time_is_linear(piece: str) -> None:
    took = [cpu.seconds(lambda text=piece * times: without_thoughts(text)) for times in (10_000, 80_000)]
    assert took[1] < 24 * max(took[0], 0.005), took  # eight times as long a text; a quadratic search takes 64 times


def completion(content: str) -> ChatCompletion:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}
    return ChatCompletion.model_validate(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    )


@pytest.mark.parametrize(
    "value",
    [
        str, str.encode, AIMessage, completion, Response, lambda text: [HumanMessage("Where?"), AIMessage(text)],
        lambda text: {"answer": text}, lambda text: AIMessage([{"type": "text", "text": text}]),
    ],
)  # fmt: skip
def test_an_answer_by_hand_has_none_and_the_call_keeps_them(value: Any) -> None:
    text, keeper = THOUGHTFUL["tags on lines"], Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.generated(
            inputs=[Message(role="user", content="Where?")], outputs=[Message(role="assistant", content=text)]
        )
        run.answered(value(text))
    assert keeper.only.record.answer == ANSWER
    assert keeper.only.steps[0].outputs[0].content == text  # type: ignore[union-attr]


def test_a_short_answer_behind_thoughts_leads_back_to_its_prompt() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="How long?") as run:
        run.retrieved([{"id": "a", "text": "The loan is 28 days."}, {"id": "b", "text": "Fines are small."}])
        for prompt, reply in (
            ("The loan is 28 days.", f"<think>{THOUGHT}</think>28 days."),
            ("Fines are small.", "Yes"),
        ):
            run.add_prompt(prompt)
            asked, said = Message(role="user", content=prompt), Message(role="assistant", content=reply)
            run.generated(inputs=[asked], outputs=[said])
        run.answered("28 days.")
    assert keeper.only.prompt_ids == ("a",)


def test_json_that_was_asked_for_stands_behind_thoughts_or_holds_them() -> None:
    assert answer_text('<think>hm</think>{"answer": "28 days."}', is_json=True) == "28 days."
    assert answer_text('{"answer": "<think>hm</think>28 days."}', is_json=True) == "28 days."
