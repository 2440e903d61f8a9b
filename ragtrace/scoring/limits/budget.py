"""Budgets of a day and rates of a minute, shared by the processes of one host.

The counts stand in a SQLite file beside the spool, or in memory. One transaction a reservation grants it whole or
changes nothing. The counts are right after kill -9 at any point, since a reservation that nobody settles is
released after a while. Rates stand in the same file: a limiter inside one process cannot hold the rate of several
workers.
"""

from __future__ import annotations

import logging
import math
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.capture.off_loop import off_loop
from ragtrace.host import Clock
from ragtrace.scoring.limits.bucket import MOST_DEBT, Bucket
from ragtrace.scoring.limits.pace import Purse
from ragtrace.sqlite_file import SharedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Rate = Literal["requests_per_minute", "tokens_per_minute"]
_log = logging.getLogger("ragtrace")
BUSY_S = 2.0  # how long a transaction waits for another process's; one takes 0.1 ms
ABANDONED_S = 900.0  # after this a reservation's process is taken for dead; one attempt lasts 45 s
MOST = 10**15  # tokens or nano-dollars of one call; SQLite holds 2^63, and a day of such calls fits below it
DAY_S = 86_400
SOON_S = 1.0  # a look again, while reservations stand in the way that calls under way may give back
_SCHEMA = """
CREATE TABLE IF NOT EXISTS days (
  account TEXT NOT NULL, day INTEGER NOT NULL, nano_usd INTEGER NOT NULL, tokens INTEGER NOT NULL,
  PRIMARY KEY (account, day)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL, day INTEGER NOT NULL, nano_usd INTEGER NOT NULL,
  tokens INTEGER NOT NULL, until_s REAL NOT NULL, epoch TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS buckets (
  name TEXT PRIMARY KEY, level REAL NOT NULL, at_s REAL NOT NULL, epoch TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The limits; None or 0 of one turns it off.

    Attributes:
        usd_per_day: US dollars from midnight to midnight, UTC.
        tokens_per_day: prompt and reply tokens, the same.
        requests_per_minute: of one server; bursts of a sixth of it.
        tokens_per_minute: of one server; bursts of all of it, and no larger request.

    Raises:
        ValueError: one is below zero or not finite.
    """

    usd_per_day: float | None = 10.0
    tokens_per_day: int | None = 20_000_000
    requests_per_minute: float | None = 500
    tokens_per_minute: float | None = 200_000

    def __post_init__(self) -> None:
        for cap in (self.usd_per_day, self.tokens_per_day, self.requests_per_minute, self.tokens_per_minute):
            if cap is not None and not 0.0 <= cap < math.inf:
                raise ValueError(f"a limit is 0 (off) or above and finite, got {cap}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A granted reservation, for `Budget.settle`."""

    id: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Refusal of a reservation.

    Attributes:
        limit: the limit that refused.
        wait_s: seconds until the next try; infinite when this request never fits.
    """

    limit: Literal["budget_usd", "budget_tokens"] | Rate
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Rest of today's budgets without reservations; None where a limit is off."""

    usd: float | None
    tokens: int | None


class Budget:
    """Reserves before a call and settles after it. Thread-safe; after a fork the child opens the file anew.

    Args:
        path: the file, made when it is not there (mode 0600); None keeps the counts in memory, for this process.
        host: the server that is asked; rates are kept by host, budgets over all of them.
        caps: the limits.
        account: whose budget; a backfill has one of its own.
        clock: the time.

    Raises:
        sqlite3.Error: from any method, when the file cannot be written; nothing is granted then.
        OSError: the same, when it cannot be made.

    Example:
        >>> budget = Budget(None, host="judge", caps=Caps(tokens_per_day=28_800_000, requests_per_minute=None))
        >>> granted = budget.reserve(usd=0.01, tokens=1_200)
        >>> budget.left().usd
        9.99
        >>> budget.settle(granted, usd=0.004, tokens=700)
        True
        >>> budget.left()
        Left(usd=9.996, tokens=28799300)
        >>> budget.close()
    """

    def __init__(
        self, path: Path | None, *, host: str, caps: Caps, account: str = "scoring", clock: Clock | None = None
    ) -> None:
        self._path = path
        self._host = host
        self._caps = caps
        self._account = account
        self._clock = clock or Clock()
        self._file = SharedFile(path, prepare=_prepare, busy_s=BUSY_S, aside=_say)
        self._epoch = ""
        rpm, tpm = caps.requests_per_minute or 0.0, caps.tokens_per_minute or 0.0
        self._rates: dict[Rate, tuple[float, float]] = {}
        if rpm:
            self._rates["requests_per_minute"] = (rpm / 60.0, max(rpm / 6.0, 1.0))
        if tpm:
            self._rates["tokens_per_minute"] = (tpm / 60.0, tpm)

    @off_loop
    def reserve(self, *, usd: float | None, tokens: int) -> Reservation | Refusal:
        """Take what a call may need from every limit at once, or nothing.

        Args:
            usd: its highest price; None when the price is not known, and then only tokens are limited.
            tokens: the most tokens it may take.
        """
        nano_usd, tokens = _nano(usd), _whole(tokens)
        with self._transaction() as connection:
            now_s, wall_s = self._clock.now(), self._clock.wall()
            self._release_abandoned(connection, now_s)
            refusals = [*self._over_budget(connection, nano_usd, tokens, wall_s)]
            needs: dict[Rate, float] = {"requests_per_minute": 1.0, "tokens_per_minute": float(tokens)}
            buckets = {name: self._bucket(connection, name, now_s).at(now_s) for name in self._rates}
            after = {name: bucket.taken(needs[name], now_s) for name, bucket in buckets.items()}
            refusals += [
                Refusal(limit=name, wait_s=buckets[name].wait_s(needs[name], now_s))
                for name, bucket in after.items()
                if bucket is None
            ]
            if refusals:
                # Level and time are kept together, so that a clock that has begun anew counts from here on.
                self._write(connection, buckets)
                return max(refusals, key=lambda refusal: refusal.wait_s)
            self._write(connection, {name: bucket for name, bucket in after.items() if bucket is not None})
            row = (self._account, _day_of(wall_s), nano_usd, tokens, now_s + ABANDONED_S, self._epoch)
            cursor = connection.execute(
                "INSERT INTO reservations (account, day, nano_usd, tokens, until_s, epoch)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
            return Reservation(id=cursor.lastrowid or 0, tokens=tokens)

    @off_loop
    def settle(self, reservation: Reservation, *, usd: float | None, tokens: int) -> bool:
        """Charge a call to the day on which it was reserved, and give the rest back.

        Returns:
            False when the reservation had been released as abandoned; what was taken is written all the same, to
            the present day.
        """
        tokens = _whole(tokens)
        with self._transaction() as connection:
            gone = connection.execute(
                "DELETE FROM reservations WHERE id = ? RETURNING account, day", (reservation.id,)
            ).fetchone()
            account, day = gone or (self._account, _day_of(self._clock.wall()))
            connection.execute(
                "INSERT INTO days VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                " nano_usd = nano_usd + excluded.nano_usd, tokens = tokens + excluded.tokens",
                (account, day, _nano(usd), tokens),
            )
            if "tokens_per_minute" in self._rates:
                now_s = self._clock.now()
                bucket = self._bucket(connection, "tokens_per_minute", now_s)
                unused = float(reservation.tokens - tokens)
                self._write(connection, {"tokens_per_minute": bucket.given_back(unused, now_s)})
            return gone is not None

    @off_loop
    def left(self) -> Left:
        """Return what is left of today's budgets, for the gauges; below zero after a call that overran."""
        with self._transaction() as connection:
            self._release_abandoned(connection, self._clock.now())
            spent, reserved = self._sums(connection, _day_of(self._clock.wall()))
        caps = self._caps
        usd = (_nano(caps.usd_per_day) - spent[0] - reserved[0]) / 1e9 if caps.usd_per_day else None
        tokens = caps.tokens_per_day - spent[1] - reserved[1] if caps.tokens_per_day else None
        return Left(usd=usd, tokens=tokens)

    @off_loop
    def purses(self) -> tuple[list[Purse], float]:
        """Return the budgets that are on, in nano-dollars and in tokens, and the seconds until they begin anew."""
        with self._transaction() as connection:
            wall_s = self._clock.wall()
            today, _ = self._sums(connection, _day_of(wall_s))
            ever = connection.execute(
                "SELECT COALESCE(SUM(nano_usd), 0), COALESCE(SUM(tokens), 0) FROM days WHERE account = ?",
                (self._account,),
            ).fetchone()
        budgets = (_nano(self._caps.usd_per_day), self._caps.tokens_per_day or 0)
        found = [Purse(*each) for each in zip(budgets, today, ever, strict=True) if each[0]]
        return found, DAY_S - wall_s % DAY_S

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()

    def _over_budget(
        self, connection: sqlite3.Connection, nano_usd: int, tokens: int, wall_s: float
    ) -> Iterator[Refusal]:
        spent, reserved = self._sums(connection, _day_of(wall_s))
        usd_cap, tokens_cap = _nano(self._caps.usd_per_day), self._caps.tokens_per_day or 0
        if usd_cap and (wait_s := _wait_s(usd_cap, spent[0], reserved[0], nano_usd, wall_s)):
            yield Refusal(limit="budget_usd", wait_s=wait_s)
        if tokens_cap and (wait_s := _wait_s(tokens_cap, spent[1], reserved[1], tokens, wall_s)):
            yield Refusal(limit="budget_tokens", wait_s=wait_s)

    def _sums(self, connection: sqlite3.Connection, day: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (nano-dollars, tokens) spent and reserved on a day."""
        of = (self._account, day)
        spent = connection.execute("SELECT nano_usd, tokens FROM days WHERE account = ? AND day = ?", of).fetchone()
        reserved = connection.execute(
            "SELECT COALESCE(SUM(nano_usd), 0), COALESCE(SUM(tokens), 0) FROM reservations"
            " WHERE account = ? AND day = ?",
            of,
        ).fetchone()
        return spent or (0, 0), reserved

    def _release_abandoned(self, connection: sqlite3.Connection, now_s: float) -> None:
        # A stored time further ahead than any can be is from a clock that has begun anew.
        connection.execute(
            "DELETE FROM reservations WHERE until_s <= ? OR until_s > ? OR epoch <> ?",
            (now_s, now_s + 2 * ABANDONED_S, self._epoch),
        )

    def _bucket(
        self,
        connection: sqlite3.Connection,
        name: Rate,
        now_s: float,
    ) -> Bucket:
        rate_per_s, burst = self._rates[name]
        row = connection.execute(
            "SELECT level, at_s, epoch FROM buckets WHERE name = ?", (f"{name} {self._host}",)
        ).fetchone()
        if row is None:
            return Bucket.full(rate_per_s=rate_per_s, burst=burst, now_s=now_s)
        level, at_s, epoch = row
        # After a reboot nobody knows how long the host was down: the level stays, and no time is credited.
        at_s = at_s if epoch == self._epoch else now_s
        level = min(max(level, -MOST_DEBT * burst), burst)  # a file may hold anything
        return Bucket(rate_per_s=rate_per_s, burst=burst, level=level, at_s=at_s)

    def _write(self, connection: sqlite3.Connection, buckets: Mapping[Rate, Bucket]) -> None:
        epoch = self._epoch
        connection.executemany(
            "INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?)",
            [(f"{name} {self._host}", bucket.level, bucket.at_s, epoch) for name, bucket in buckets.items()],
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._file.transaction() as connection:
            self._epoch = self._clock.epoch()  # once a transaction: it is read from a file of the kernel
            yield connection


def _wait_s(budget: int, spent: int, reserved: int, need: int, wall_s: float) -> float:
    """Return 0.0 when the budget has the need left, else the seconds until it may."""
    if spent + reserved + need <= budget:
        return 0.0
    if need > budget:
        return math.inf
    return SOON_S if spent + need <= budget else max(DAY_S - wall_s % DAY_S, SOON_S)


def _day_of(wall_s: float) -> int:
    """Return the UTC day, counted from 1970."""
    return int(wall_s // DAY_S)


def _nano(usd: float | None) -> int:
    """Return whole nano-dollars, rounded up: sums of whole numbers are exact."""
    if usd is None or not usd > 0.0:
        return 0
    return math.ceil(round(usd * 1e9, 3)) if usd * 1e9 < MOST else MOST


def _whole(tokens: int) -> int:
    return min(max(tokens, 0), MOST)


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables, and look at every page; the file has a few."""
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise sqlite3.DatabaseError("quick_check found a broken page")


def _say(aside: Path, error: Exception) -> None:
    _log.error("the limits' file was broken (%s) and stands aside as %s: today's budget begins anew", error, aside)
