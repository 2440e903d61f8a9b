"""The threat model names the receiver's limits as they are."""

from __future__ import annotations

import re
from pathlib import Path

from ragtrace.ingest import ReceiverLimits

PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "threat-model.md"
UNITS = {"MiB": 2**20, "s": 1}


def test_the_table_holds_every_default_in_order():
    table = PAGE.read_text(encoding="utf-8").partition("| limit | default |\n|---|---|\n")[2].partition("\n\n")[0]
    told = []
    for line in table.splitlines():
        number, unit = re.fullmatch(r"\|.*\| ([\d,]+) ?(\w*) \|", line).groups()
        told.append(int(number.replace(",", "")) * UNITS.get(unit, 1))
    limits = ReceiverLimits()
    assert told == [getattr(limits, name) for name in ReceiverLimits.__dataclass_fields__]
