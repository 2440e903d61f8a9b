"""Passages of a shop's handbook, whose texts are as awkward as real ones, and vectors that a person can compare.

Each passage and each query lies in a direction, in degrees: the nearest passage is the most similar one.
"""

from __future__ import annotations

import math

TEXTS = {
    "refunds": '"Refunds" are paid within 14 days.\nSend C:\\forms\\refund.txt to "returns@shop.example".',
    "returns": "Returns, step by step:\n\t1. Pack the goods.\n\t2. Print the label \u2013 it's free.",
    "shipping": 'Shipping to Åland, Øresund and Malmö takes 3\u20135 days; track it at "https://shop.example/träck?id=\\d+".',
    "customs": 'Customs duty is due outside the EU\n(«droits de douane», ≥ 22 €);\n\nthe carrier\'s fee is "6 €".',
    "invoices": 'An invoice comes as PDF:\r\nsubject "Invoice {number}", path \\\\server\\billing, encoding UTF-8.',
    "warranty": 'The warranty lasts 2 years;\nдействует во всей Европе. Say "warranty" at the desk in Örebro.',
}
WEB = {
    "repairs": 'Lamps are repaired at "Åse & Søn", Storgata 7:\nMon\u2013Fri 9\u201317 h, C:\\lamps\\prices.html.',
    "weather": 'Oslo today: −3 °C,\n"light snow" until noon; see https://weather.example/?city=Oslo\\u0020S.',
}
# Degrees of each passage of the handbook.
DIRECTIONS = {"refunds": 0, "returns": 10, "shipping": 30, "customs": 50, "invoices": 90, "warranty": 130}


def vector(degrees: float) -> list[float]:
    """Return the unit vector of a direction."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def vectors(queries: dict[str, float]) -> dict[str, list[float]]:
    """Return the vectors of all passages and of these queries, by text; another text is a fault of the application."""
    return {
        **{TEXTS[name]: vector(degrees) for name, degrees in DIRECTIONS.items()},
        **{query: vector(degrees) for query, degrees in queries.items()},
    }
