"""The log line of a loss: which kind of error, and nothing that its message may quote."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

import pytest

from ragtrace.capture import record_internal_error
from ragtrace.errors import QueueError


def full_disk():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("CREATE TABLE ada (n)")
    return caught.value


def wrapped(cause):
    error = QueueError("the spool of Ada cannot be opened")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (full_disk(), "OperationalError, SQLITE_FULL"),
        (wrapped(full_disk()), "QueueError, SQLITE_FULL"),
        (OSError(28, "Ada's disk"), "OSError, ENOSPC"),
        (OSError("Ada"), "OSError"),
        (ValueError("Ada lives in Oslo"), "ValueError"),
    ],
)
def test_a_loss_names_the_code_of_a_file_s_error_and_no_message(error, told, caplog, request):
    with caplog.at_level(logging.WARNING, "ragtrace"):
        record_internal_error(f"site of {request.node.name}", error)
    (line,) = caplog.messages
    assert f"({told}); the application is not affected" in line
    assert "Ada" not in line.partition("(")[2]
