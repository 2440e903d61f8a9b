"""Addresses as messages show them."""

from __future__ import annotations

import pytest

from ragtrace.address import shown_address


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("http://ada:p/s3cret@host:4318", "http://***@host:4318"),
        ("http://ada:p/s3cret@host:4318/v1/traces", "http://***@host:4318/v1/traces"),
        ("http://ada:p?s3cret@host:4318", "***"),
        ("http://ada:p#s3cret@host:4318", "***"),
        ("http://ada:p@s3cret@host/x?key=s3cret", "http://***@host/x?***"),
        ("ada:s3cret@host:4317", "***@host:4317"),
        ("ada:s3cret://s3cret@host:4317", "***@host:4317"),
        ("localhost:4317", "localhost:4317"),
        ("http://[s3cret@host", "http://***@host"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_login_however_it_is_written(address: str, seen: str) -> None:
    assert shown_address(address) == seen
