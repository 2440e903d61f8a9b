"""The application under test: a help desk of a swimming pool. Nothing in it knows of ragtrace.

Write its answers to a file: ``python app.py --out answers.jsonl [--model gpt-4o-mini [--base-url URL]]``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

HERE = Path(__file__).parent
ARTICLES = {
    "hours": "The pool opens at seven in the morning. It closes at nine in the evening.",
    "prices": "A day in the pool costs 6 euros, and 3 euros for children.",
    "diving": "The diving pool is four metres deep. Its towers open at noon.",
    "water": "The water of the large pool is 28 degrees warm. The small pool has 32 degrees.",
    "rent": "You can rent a towel for 2 euros at the desk. Swimwear is not rented.",
    "sauna": "The sauna is for women alone on Tuesday evenings.",
    "babies": "A course for babies takes place on Saturday mornings. It begins at an age of six months.",
    "bikes": "Bikes are parked in the yard behind the hall.",
    "lockers": "There are lockers in the hall. They take a coin of one euro.",
    "food": "You may bring food to the lawn. Food is not allowed in the hall.",
    "storm": "In a thunderstorm the outdoor pool closes. It opens again half an hour after the last thunder.",
    "tickets": "You cannot return a ticket. A ticket is valid for a year.",
}
INVENTED = {"rent": "The deposit is 20 euros.", "food": "Barbecues are lit at noon. Alcohol is sold from 5 pm on."}


def words(text: str) -> set[str]:
    """Return the words of a text that are worth a search."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", text.lower())}


def search(question: str) -> list[dict[str, object]]:
    """Rank the articles by the share of their words that the question has."""
    shares = {name: len(words(question) & words(text)) / len(words(text)) for name, text in ARTICLES.items()}
    ranked = sorted(shares, key=lambda name: -shares[name])[:3]
    return [{"id": name, "text": ARTICLES[name], "score": shares[name]} for name in ranked]


def generate(question: str, found: list[dict[str, object]]) -> str:
    """Ask the model that MODEL names; without one, say the best passage, at times with something invented."""
    if "MODEL" not in os.environ:
        return " ".join([str(found[0]["text"]), INVENTED.get(str(found[0]["id"]), "")]).strip()
    import openai  # noqa: PLC0415 - needed with a model alone

    client = openai.OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))  # and OPENAI_BASE_URL
    context = "\n\n".join(str(one["text"]) for one in found)
    prompt = f"Answer from these passages alone:\n\n{context}\n\nQuestion: {question}"
    reply = client.chat.completions.create(
        model=os.environ["MODEL"], messages=[{"role": "user", "content": prompt}]
    )
    return reply.choices[0].message.content or ""


def answer(question: str) -> dict[str, object]:
    """Answer one question, and say from which passages."""
    found = search(question)
    return {"answer": generate(question, found), "contexts": found}


def dataset() -> list[dict[str, str]]:
    """Return the questions with their reference answers."""
    return [json.loads(line) for line in (HERE / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Answer the whole dataset into a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    parser.add_argument("--out", default="answers.jsonl")
    args = parser.parse_args()
    os.environ |= {
        name: value for name, value in (("MODEL", args.model), ("OPENAI_BASE_URL", args.base_url)) if value
    }
    with Path(args.out).open("w", encoding="utf-8") as out:
        for row in dataset():
            print(json.dumps({**row, **answer(row["query"])}), file=out)


if __name__ == "__main__":
    main()
