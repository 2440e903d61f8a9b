"""Print 120 records of two days of support; on the second day answers in the app invent a fee."""

import json

ASKED = {
    "How do I cancel my plan?": "To cancel your plan, open Settings and choose Cancel plan.",
    "How long does a refund take?": "A refund takes five working days after approval.",
    "How many seats has the team plan?": "The team plan has 10 seats and costs 90 euros a month.",
    "When is the support open?": "Support is open from 9 to 17 on working days.",
}
for n in range(120):
    query, text = list(ASKED.items())[n % 4]
    channel = "app" if n % 3 == 0 else "web"
    is_bad = n >= 60 and channel == "app"
    line = {
        "id": f"run-{n}",
        "query": query,
        "answer": "A fee of 75 euros applies in Norway." if is_bad else text,
        "contexts": [{"id": f"help/{n % 4}", "text": text}],
        "workflow": "support",
        "session": f"s{n}",
        "tags": [f"channel:{channel}"],
        "ended": 1_710_000_000 + n * 1_440,
        "helpful": 0 if is_bad or n % 10 == 0 else 1,
    }
    print(json.dumps(line))
