"""Plain values as YAML, by PyYAML of the extra ``dashboards``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Json = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"] | None
    JsonObject = dict[str, Json]


def yaml_text(value: object) -> str:
    r"""Return mappings, sequences and scalars as YAML in block style, texts of several lines as literal blocks.

    Raises:
        MissingExtra: PyYAML is not installed.

    Example:
        >>> print(yaml_text({"groups": [{"name": "a", "limit": 1}], "expr": "a\n> b"}), end="")
        groups:
        - name: a
          limit: 1
        expr: |-
          a
          > b
    """
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("PyYAML", "dashboards") from error

    class Dumper(yaml.SafeDumper):
        """Writes equal objects twice instead of once with an anchor."""

        def ignore_aliases(self, data: object) -> bool:
            del data
            return True

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, represent_text)
    dumped: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100_000)
    return dumped
