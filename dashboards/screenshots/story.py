"""The month that the pictures show: the tests' month with a sample every five minutes in its last eight days."""

from __future__ import annotations

from tests.dashboards.month import Month

END = 1_780_002_000 // 7_200 * 7_200
Story = Month
