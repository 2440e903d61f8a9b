"""One process of an application that writes its runs to Kafka and scores nothing itself.

``fleet.py`` starts several. Alone: ``RAGTRACE_QUEUE=kafka://HOST:9092/ragtrace_units python app.py eu``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys

import ragtrace

ARTICLES = {
    "ticket": "A day ticket costs 9 euros. It is valid until 3 o'clock on the next morning.",
    "bike": "A bike needs a ticket of its own, which costs 4 euros. Folded bikes travel free.",
    "dog": "Small dogs travel free in a box. A large dog needs a child's ticket.",
    "delay": "After a delay of 60 minutes a quarter of the fare is paid back.",
}
SCRIPT = {
    "What does a day ticket cost?": "A day ticket costs 9 euros.",
    "Does my folded bike travel free?": "Yes, folded bikes travel free.",
    "Can I bring a large dog?": "Yes, a large dog needs a child's ticket. It must wear a muzzle.",
    "What is paid back after a delay?": "After a delay of 60 minutes a quarter of the fare is paid back.",
}


def search(question: str) -> list[dict[str, object]]:
    """Rank the articles by the words that they share with the question."""
    asked = set(re.findall(r"[a-z]{3,}", question.lower()))
    shared = {name: len(asked & set(re.findall(r"[a-z]{3,}", text.lower()))) for name, text in ARTICLES.items()}
    ranked = sorted(shared, key=lambda name: -shared[name])[:2]
    return [{"id": name, "text": ARTICLES[name], "score": shared[name]} for name in ranked]


def generate(question: str, context: str, args: argparse.Namespace) -> str:
    """Ask the model, or take the answer from the script."""
    if not args.model:
        return SCRIPT[question]
    import openai  # noqa: PLC0415 - needed with --model alone

    client = openai.OpenAI(base_url=args.base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    prompt = f"Answer from these passages alone:\n\n{context}\n\nQuestion: {question}"
    reply = client.chat.completions.create(model=args.model, messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content or ""


def main() -> None:
    """Answer the questions, and wait until the broker has the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("region", help="name of this process's traffic; its runs are tagged with it")
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    ragtrace.configure(scorer="worker", sample_rate=1.0, workflow="tickets")  # RAGTRACE_QUEUE names the topic
    for number in range(args.rounds):
        for question in SCRIPT:
            with ragtrace.query(question, session=f"{args.region}-{number}", tags=[args.region]) as run:
                found = search(question)
                run.retrieved(found, source="articles")
                context = "\n\n".join(str(one["text"]) for one in found)
                run.used(context)
                run.answered(generate(question, context, args), model=args.model or "scripted")
    is_sent = ragtrace.flush(60)
    print(f"{args.rounds * len(SCRIPT)} answers, all at the broker: {is_sent}", file=sys.stderr)
    ragtrace.shutdown(10)


if __name__ == "__main__":
    main()
