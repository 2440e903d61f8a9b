"""An answer that is one code block, a command, a link, a number or a table is an answer; a refusal is none."""

from __future__ import annotations

from tests.cases.numbers.judging import Judged, judged

QUERY = "What do I need?"

# kind: context, answer
SUPPORTED = {
    "python block": (
        "Create a client with `client = Nova(timeout=30)` and then call `client.connect()`.",
        "```python\nclient = Nova(timeout=30)\nclient.connect()\n```",
    ),
    "block without a language": (
        "Restart the pods with kubectl rollout restart deploy/web. Watch them with kubectl get pods.",
        "```\nkubectl rollout restart deploy/web\n```",
    ),
    "block of tildes": (
        "Restart the pods with kubectl rollout restart deploy/web. Watch them with kubectl get pods.",
        "~~~bash\nkubectl rollout restart deploy/web\n~~~",
    ),
    "block without an end": (
        "Restart the pods with kubectl rollout restart deploy/web. Watch them with kubectl get pods.",
        "```bash\nkubectl rollout restart deploy/web",
    ),
    "block of one word": ("The command that lists files is `ls`.", "```\nls\n```"),
    "two blocks": (
        "First run npm install nova. Then run npm run build.",
        "```sh\nnpm install nova\n```\n\n```sh\nnpm run build\n```",
    ),
    "block with a lead-in": (
        "Restart the pods with kubectl rollout restart deploy/web. Watch them with kubectl get pods.",
        "Here you go:\n\n```bash\nkubectl rollout restart deploy/web\n```",
    ),
    "inline code": (
        "The command `git push --force-with-lease` overwrites safely.",
        "`git push --force-with-lease`",
    ),
    "bare command": ("Use `docker run --rm nova:latest` to try the image.", "docker run --rm nova:latest"),
    "link": (
        "The guide is at https://docs.example.org/guides/start and the forum at https://forum.example.org.",
        "https://docs.example.org/guides/start",
    ),
    "link in angles": (
        "The guide is at https://docs.example.org/guides/start and the forum at https://forum.example.org.",
        "<https://docs.example.org/guides/start>",
    ),
    "link with words": (
        "The start guide is at https://docs.example.org/guides/start.",
        "[start guide](https://docs.example.org/guides/start)",
    ),
    "list of links": (
        "The guide is at https://docs.example.org/guides/start and the forum at https://forum.example.org.",
        "- https://docs.example.org/guides/start\n- https://forum.example.org",
    ),
    "number": ("The hall has 42 seats.", "42"),
    "number with a stop": ("The hall has 42 seats.", "42."),
    "number in bold": ("The hall has 42 seats.", "**42**"),
    "number with a unit": ("The heater weighs 3.4 kg.", "3.4 kg"),
    "percentage": ("The tax is 12 % of the price.", "12 %"),
    "price": ("A ticket costs €30.", "€30"),
    "version": ("The current release is 2.1.0, the next is 2.2.0.", "2.1.0"),
    "clock time": ("Doors open at 17:30.", "17:30"),
    "date": ("The museum opened on 5 March 2019.", "5 March 2019"),
    "ISO date": ("The museum opened on 2019-03-05.", "2019-03-05"),
    "Markdown table": (
        "The basic plan costs 10 euros a month. The pro plan costs 20 euros a month.",
        "| Plan | Price a month |\n|---|---|\n| basic | 10 euros |\n| pro | 20 euros |",
    ),
    "table in a block": (
        "The basic plan costs 10 euros a month. The pro plan costs 20 euros a month.",
        "```\n| Plan | Price a month |\n|---|---|\n| basic | 10 euros |\n| pro | 20 euros |\n```",
    ),
    "JSON object": ('The default is {"retries": 3, "timeout": 30}.', '{"retries": 3, "timeout": 30}'),
    "JSON list": ("The regions are north and south.", '["north", "south"]'),
    "file path": ("The settings are in the file /etc/nova/nova.conf.", "/etc/nova/nova.conf"),
    "Windows path": ("The log is written to C:\\Nova\\logs\\nova.log.", "C:\\Nova\\logs\\nova.log"),
    "SQL": (
        "Active users are listed by SELECT name FROM users WHERE active = 1;",
        "SELECT name FROM users WHERE active = 1;",
    ),
    "SQL in a block": (
        "Active users are listed by SELECT name FROM users WHERE active = 1;",
        "```sql\nSELECT name FROM users\nWHERE active = 1;\n```",
    ),
    "regular expression": ("Order numbers match ^[A-Z]{3}-\\d{4}$ and are unique.", "`^[A-Z]{3}-\\d{4}$`"),
    "configuration line": ("Set max_connections = 200 in the configuration.", "max_connections = 200"),
    "YAML block": (
        "The service needs replicas: 3 and image: nova in its values.",
        "```yaml\nreplicas: 3\nimage: nova\n```",
    ),
    "environment variable": ("Run export NOVA_TOKEN=abc before the first call.", "export NOVA_TOKEN=abc"),
    "address and port": ("The broker listens on 10.0.0.12:8080.", "10.0.0.12:8080"),
    "e-mail address": ("Write to support@nova.example for help.", "support@nova.example"),
    "phone number": ("Call us at +47 22 33 44 55 on working days.", "+47 22 33 44 55"),
}

UNSUPPORTED = {
    "block": (
        "Run `pip install nova-cli==2.1` and then `nova login`.",
        "```sh\npip install nova-cli==3.7\n```",
    ),
    "block without a language": ("The pool holds 20 workers: set workers = 20.", "```\nworkers = 64\n```"),
    "other command": ("Use `docker run --rm nova:latest` to try the image.", "`systemctl restart apache`"),
    "link": (
        "The guide is at https://docs.example.org/guides/start.",
        "https://billing.other.example/refunds/form",
    ),
    "list of links": (
        "The guide is at https://docs.example.org/guides/start.",
        "- https://billing.other.example/refunds/form\n- https://shop.other.example/cart",
    ),
    "number": ("The hall has 42 seats.", "57"),
    "number with a unit": ("The heater weighs 3.4 kg.", "9.9 kg"),
    "percentage": ("The tax is 12 % of the price.", "19 %"),
    "price": ("A ticket costs €30.", "€45"),
    "clock time": ("Doors open at 17:30.", "18:45"),
    "date": ("The museum opened on 5 March 2019.", "12 July 2021"),
    "Markdown table": (
        "The basic plan costs 10 euros a month. The pro plan costs 20 euros a month.",
        "| Plan | Price a month |\n|---|---|\n| basic | 15 euros |\n| pro | 35 euros |",
    ),
    "JSON object": ('The default is {"retries": 3}.', '{"retries": 8}'),
    "file path": ("The settings are in the file /etc/nova/nova.conf.", "/var/lib/mail/spool.db"),
    "configuration line": ("Set max_connections = 200 in the configuration.", "max_connections = 900"),
    "e-mail address": ("Write to support@nova.example for help.", "billing@other.example"),
    "phone number": ("Call us at +47 22 33 44 55 on working days.", "+47 99 88 77 66"),
}

REFUSALS = (
    "I don't know.",
    "`I don't know.`",
    "```\nI don't know.\n```",
    "```text\nThe context does not contain this information.\n```",
    "> I don't know.",
    "**I don't know.**",
    "_I'm sorry, but I don't have enough information to answer this question._",
    '"I cannot answer that from the provided context."',
    "> I could not find this in the provided documents.",
)


def rows(table: dict[str, tuple[str, str]]) -> dict[str, Judged]:
    return dict(zip(table, judged([(QUERY, context, answer) for context, answer in table.values()]), strict=True))


def test_every_supported_form_is_an_answer() -> None:
    assert [kind for kind, found in rows(SUPPORTED).items() if found.answered != 1.0] == []


def test_every_supported_form_is_supported() -> None:
    wrong = {kind: found.faithfulness for kind, found in rows(SUPPORTED).items() if not found.is_supported}
    assert wrong == {}


def test_no_supported_form_is_invented() -> None:
    assert {kind: found.specifics for kind, found in rows(SUPPORTED).items() if found.invented == 1.0} == {}


def test_every_unsupported_form_is_an_answer() -> None:
    assert [kind for kind, found in rows(UNSUPPORTED).items() if found.answered != 1.0] == []


def test_no_unsupported_form_is_supported() -> None:
    wrong = {kind: found.faithfulness for kind, found in rows(UNSUPPORTED).items() if not found.is_unsupported}
    assert wrong == {}


def test_a_refusal_in_any_form_is_no_answer() -> None:
    found = judged([(QUERY, "Nova is made in Oslo.", answer) for answer in REFUSALS])
    assert [text for text, one in zip(REFUSALS, found, strict=True) if one.answered != 0.0] == []
