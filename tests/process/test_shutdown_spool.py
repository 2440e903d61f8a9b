"""A shutdown that is past its deadline, with a spool and a judge that hangs: leases go back, and nothing crashes."""

from __future__ import annotations

import pytest

from tests.process.hung_app import ROUNDS
from tests.process.observing import accounts, ran

pytestmark = pytest.mark.slow


def test_an_application_gives_its_leases_back_and_lives(tmp_path, hung):
    done = ran("-m", "tests.process.hung_app", tmp_path, hung, timeout=240)
    assert done.returncode == 0, done.stderr
    for number in range(ROUNDS):
        found = accounts(tmp_path / f"{number}.sqlite")
        assert (found.leased, found.ready) == (0, 40)
