"""A help desk without a framework: BM25 search, a reranker, a prompt and a model, captured by hand.

Run it: ``python app.py``, or with a model: ``python app.py --model gpt-4o-mini [--base-url URL]``.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections import Counter
from typing import Any

import ragtrace

ARTICLES = {
    "cancel": "You can cancel your plan at any time in the settings, under Billing. It ends with the month.",
    "refund": "Refunds are paid to the card that you paid with. A refund takes five working days.",
    "invoice": "Invoices come by e-mail on the first day of each month. The settings list them too.",
    "seats": "An administrator adds seats in the settings, under Members. A new seat is paid from that day on.",
    "export": "You can export all data as CSV in the settings, under Data. A large export takes an hour.",
    "login": "Single sign-on works with SAML. It is part of the Business plan.",
}
QUESTIONS = {  # and the article that a person found relevant, for the metrics of ranking
    "How can I cancel my plan?": "cancel",
    "How long does a refund take?": "refund",
    "Can I export my data?": "export",
}
SCRIPT = {
    "How can I cancel my plan?": "You can cancel your plan at any time in the settings, under Billing. [1]",
    "How long does a refund take?": "A refund takes five working days. [1] Refunds above 500 euros take 21 days.",
    "Can I export my data?": "Yes, you can export all data as CSV in the settings, under Data. [1]",
}
Found = dict[str, Any]  # a passage: id, text, score

PROMPT = "Answer from these passages alone, and cite them as [1]:\n\n{context}\n\nQuestion: {question}"


def words(text: str) -> list[str]:
    """Return the words of a text that are worth a search."""
    return [word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2]


def search(question: str, top_k: int = 5) -> list[Found]:
    """Rank the articles by BM25 (k1 = 1.2, b = 0.75)."""
    counts = {name: Counter(words(text)) for name, text in ARTICLES.items()}
    average = sum(count.total() for count in counts.values()) / len(counts)
    scores: Counter[str] = Counter()
    for word in words(question):
        holding = [name for name, count in counts.items() if word in count]
        rarity = math.log(1 + (len(counts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for name in holding:
            often, length = counts[name][word], counts[name].total() / average
            scores[name] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length))
    return [{"id": name, "text": ARTICLES[name], "score": score} for name, score in scores.most_common(top_k)]


def rerank(question: str, pool: list[Found], keep: int = 2) -> list[Found]:
    """Keep the passages that hold the largest share of the question's words."""
    asked = set(words(question))
    rated = [{**one, "score": len(asked & set(words(one["text"]))) / len(asked)} for one in pool]
    return sorted(rated, key=lambda one: -one["score"])[:keep]


def generate(question: str, prompt: str, args: argparse.Namespace) -> tuple[str, dict[str, int] | None]:
    """Ask the model, or take the answer from the script; return it with its tokens."""
    if not args.model:
        return SCRIPT[question], None
    import openai  # noqa: PLC0415 - needed with --model alone

    client = openai.OpenAI(base_url=args.base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    reply = client.chat.completions.create(model=args.model, messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content or "", reply.usage.model_dump() if reply.usage else None


def answer(question: str, args: argparse.Namespace) -> str:
    """Answer one question; every step tells the run what it did."""
    with ragtrace.query(question, workflow="help-desk", session="s-42", corpus="help-centre") as run:
        pool = search(question)
        run.retrieved(pool, source="bm25", top_k=5)
        best = rerank(question, pool)
        run.reranked(best, model="word-share", top_n=2)
        context = "\n\n".join(f"[{number}] {one['text']}" for number, one in enumerate(best, start=1))
        run.used(context)  # as it stands in the prompt; or the passages themselves
        run.labels({name: 5 if name == QUESTIONS[question] else 1 for name in ARTICLES})  # where you have grades
        text, tokens = generate(question, PROMPT.format(context=context, question=question), args)
        run.answered(text, model=args.model or "scripted", usage=tokens)
        return text


def main() -> None:
    """Answer three questions, and print each answer and its scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    args = parser.parse_args()
    for signal in ("TRACES", "METRICS", "LOGS"):  # no collector here; leave this out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    metrics = "faithfulness,no_answer,invented_specifics,diagnosis,mrr"
    ragtrace.configure(metrics=metrics, sample_rate=1.0, content="full", store="help-desk.sqlite", console=True)
    for question in QUESTIONS:
        print(f"{question}\n  {answer(question, args)}", flush=True)
    print("scored:", ragtrace.flush(30))
    ragtrace.shutdown(10)


if __name__ == "__main__":
    main()
