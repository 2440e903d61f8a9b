"""The offline judge and answers that are code, a link, an address, a number or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from ragtrace.model import MetricResult

CONTEXTS = (
    "Run `pip install nova-cli==2.1` and then `nova login --token T`. The file is at https://docs.nova.dev/start.",
    "Set retries = 3. Write to support@nova.dev. The config is /etc/nova/config.yaml, the log is /var/log/nova.log.",
    "SELECT name FROM users WHERE age > 30; lists adults. See https://docs.nova.dev/api and [Guide](https://nova.dev/guide).",
    "The heater weighs 3.4 kg and was launched in March 2019. Basic costs 10 euros a month, Pro costs 20 euros a month.",
    "```yaml\nserver:\n  port: 8080\n  timeout: 30s\n```",
)
# An answer that the contexts support, and the same with one thing changed.
PAIRS: dict[str, tuple[str, str]] = {
    "block": ("```sh\npip install nova-cli==2.1\n```", "```sh\npip install nova-cli==2.2\n```"),
    "block of two lines": (
        "```\npip install nova-cli==2.1\nnova login --token T\n```",
        "```\npip install nova-cli==2.1\nnova login --user T\n```",
    ),
    "one more flag": ("~~~sh\nnova login --token T\n~~~", "~~~sh\nnova login --token T --force\n~~~"),
    "lead-in": (
        "Here is the command:\n\n```sh\nnova login --token T\n```\n\nLet me know if you need more help!",
        "Here is the command:\n\n```sh\nnova logout --token T\n```\n\nLet me know if you need more help!",
    ),
    "lead-in of its own words": (
        "To install the client, run:\n```sh\npip install nova-cli==2.1\n```",
        "To install the client, run:\n```sh\npip install nova-sdk==2.1\n```",
    ),
    "comment": ("```python\n# install first\nretries = 3\n```", "```python\n# install first\nretries = 5\n```"),
    "JSON block": ('```json\n{"retries": 3}\n```', '```json\n{"retries": 5}\n```'),
    "JSON": ('{"retries": 3}', '{"retries": 7}'),
    "JSON with an answer": (
        '```json\n{"answer": "Basic costs 10 euros.", "confidence": 0.9}\n```',
        '```json\n{"answer": "Basic costs 15 euros.", "confidence": 0.9}\n```',
    ),
    "JSON list": ('[{"plan": "Basic", "costs": "10 euros"}]', '[{"plan": "Basic", "costs": "15 euros"}]'),
    "YAML": ("```yaml\nserver:\n  port: 8080\n```", "```yaml\nserver:\n  port: 9090\n```"),
    "SQL": (
        "```sql\nSELECT name FROM users WHERE age > 30;\n```",
        "```sql\nSELECT email FROM users WHERE age > 30;\n```",
    ),
    "HTML code": ("<pre><code>nova login --token T</code></pre>", "<pre><code>nova login --force</code></pre>"),
    "inline code": ("`pip install nova-cli==2.1`", "`pip install nova-sdk==2.1`"),
    "inline code with a verb": ("Use `--token`.", "Use `--user`."),
    "bare command": ("nova login --token T", "nova login --token T --force"),
    "link": ("https://docs.nova.dev/start", "https://docs.nova.dev/begin"),
    "link in angles": ("<https://docs.nova.dev/start>", "<https://docs.nova.dev/login>"),
    "link with a verb": ("See https://docs.nova.dev/start.", "See https://docs.nova.dev/stop."),
    "link without scheme": ("docs.nova.dev/start", "docs.nova.dev/install"),
    "titled link": ("[Start](https://docs.nova.dev/start)", "[Start](https://evil.example/start)"),
    "links": (
        "Useful links:\n- [Start](https://docs.nova.dev/start)\n- https://docs.nova.dev/api",
        "Useful links:\n- [Start](https://docs.nova.dev/start)\n- https://docs.nova.dev/apis",
    ),
    "e-mail": ("support@nova.dev", "config@nova.dev"),
    "titled e-mail": ("[support@nova.dev](mailto:support@nova.dev)", "[help@nova.dev](mailto:help@nova.dev)"),
    "path": ("/etc/nova/config.yaml", "/var/nova/config.yaml"),
    "number": ("8080", "9090"),
    "part of a number": ("3.4", "4"),
    "number with unit": ("3.4 kg", "4 kg"),
    "price": ("10 euros", "15 euros"),
    "date": ("March 2019", "March 2020"),
    "table": (
        "| Plan | Price |\n|---|---|\n| Basic | 10 euros |\n| Pro | 20 euros |",
        "| Plan | Price |\n|---|---|\n| Basic | 10 euros |\n| Pro | 25 euros |",
    ),
    "table without edges": (
        "Plan | Price\n--- | ---\nBasic | 10 euros",
        "Plan | Price\n--- | ---\nBasic | 15 euros",
    ),
    "HTML table": (
        "<table><tr><th>Plan</th><th>Price</th></tr><tr><td>Basic</td><td>10 euros</td></tr></table>",
        "<table><tr><th>Plan</th><th>Price</th></tr><tr><td>Basic</td><td>15 euros</td></tr></table>",
    ),
}


async def scores(answer: str) -> dict[str, MetricResult]:
    return await results(answer, *CONTEXTS, metrics=("faithfulness", "no_answer"))


@pytest.mark.parametrize("kind", PAIRS)
async def test_what_the_contexts_hold_is_a_supported_answer(kind: str) -> None:
    found = await scores(PAIRS[kind][0])
    assert found["answered"].value == 1.0
    assert found["faithfulness"].details["unsupported"] == []
    assert found["faithfulness"].passed is True


@pytest.mark.parametrize("kind", PAIRS)
async def test_one_other_thing_makes_a_claim_unsupported(kind: str) -> None:
    found = await scores(PAIRS[kind][1])
    assert found["answered"].value == 1.0
    assert found["faithfulness"].state == "ok"
    assert len(found["faithfulness"].details["unsupported"]) == 1, found["faithfulness"].details


@pytest.mark.parametrize(
    "answer",
    [
        "```\nI don't know.\n```",
        "```text\nI'm sorry, I cannot help with that.\n```",
        "```\nN/A\n```",
        "`I don't know.`",
        "> I don't know.",
        '"I don\'t know."',
        '{"answer": "I don\'t know."}',
        '```json\n{"answer": "I do not know."}\n```',
        '{"answer": null}',
        "Here is what I found:\n```\nThe documents do not mention this.\n```",
        "```\n```",
    ],
)
async def test_a_refusal_in_code_or_quotes_stays_one(answer: str) -> None:
    found = await scores(answer)
    assert found["answered"].value == 0.0
    assert found["faithfulness"].state == "na"


@pytest.mark.parametrize(
    "answer",
    [
        "The heater weighs 3.4 kg.\n\n```python\nprint(order.total(42))\n```",
        "The heater weighs 3.4 kg, see https://docs.nova.dev/start.",
        "The heater weighs 3.4 kg ([more](https://nova.dev/guide)).",
    ],
)
async def test_code_and_known_links_beside_a_claim_are_no_claims(answer: str) -> None:
    found = (await scores(answer))["faithfulness"]
    assert found.details["n_claims"] == 1
    assert found.details["unsupported"] == []
