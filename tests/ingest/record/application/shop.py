"""Help centre of a web shop: its articles, a retriever's results, and the answers that a scripted model gives."""

from __future__ import annotations

from dataclasses import dataclass

MODEL = "gpt-4o-mini"
TOP_K = 4
SYSTEM = "You answer customers of a web shop. Use the passages of the help centre only."
USER = "Passages:\n{context}\n\nQuestion: {question}"


@dataclass(frozen=True)
class Article:
    """One article, with the metadata that an index keeps."""

    id: str
    text: str
    section: str


@dataclass(frozen=True)
class Question:
    """One question, the retriever's results as (article, score), and the model's answer."""

    text: str
    results: tuple[tuple[str, float], ...]
    answer: str


ARTICLES = {
    article.id: article
    for article in (
        Article(
            "returns",
            "You can return shoes within 30 days of delivery. They must be unworn and in their original box.",
            "orders",
        ),
        Article(
            "refunds",
            "Refunds go to the original payment method within 5 working days after the return has arrived.",
            "orders",
        ),
        Article(
            "shipping",
            "Standard shipping takes 3 to 5 working days and costs 4.90 euros. It is free for orders over 50 euros.",
            "delivery",
        ),
        Article(
            "express",
            "Express shipping arrives on the next working day and costs 12.50 euros. Order before 2 pm.",
            "delivery",
        ),
        Article("warranty", "All shoes have a warranty of 24 months against faults in material.", "products"),
        Article("gift-cards", "Gift cards are valid for 3 years and cannot be exchanged for cash.", "products"),
    )
}
QUESTIONS = (
    Question(
        "How many days do I have to return shoes?",
        (("returns", 0.91), ("refunds", 0.74), ("warranty", 0.52), ("shipping", 0.31)),
        "You can return shoes within 30 days of delivery. They must be unworn and in their original box.",
    ),
    Question(  # the last sentence stands in no passage
        "How long does express shipping take, and what does it cost?",
        (("shipping", 0.86), ("express", 0.84), ("returns", 0.35), ("gift-cards", 0.12)),
        "Express shipping arrives on the next working day and costs 12.50 euros."
        " Members of the Gold Club get it for free until 9 December.",
    ),
    Question("Do you rent bicycles in Norway?", (), "I found nothing about that in the help centre."),
)


def question(text: str) -> Question:
    """Return the question with this text."""
    return next(one for one in QUESTIONS if one.text == text)


def asked_in(prompt: str) -> Question:
    """Return the question that a prompt asks."""
    return next(one for one in QUESTIONS if one.text in prompt)
