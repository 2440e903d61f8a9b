"""The RA-nWG family for many queries at once, with numpy; the definitions are those of `set_family`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.metrics.selection.set_family import FROZEN, PUBLISHED, SetParams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

UNLABELLED = 0  # the grade of a passage that stands in a query's list without a label
ABSENT = -1  # the grade of a cell that holds no passage, and the place of an empty slot


class SetBatch(NamedTuple):
    """The family for Q queries: arrays of length Q, NaN where a quantity has no value.

    NaN stands here only, as an array has no other gap: take means with ``np.nanmean``, and counts beside them.

    Attributes:
        is_labelled: False where the family has no value at all: no labels, or an unlabelled passage in S.
    """

    is_labelled: NDArray[np.bool_]
    ra_nwg: Floats
    proc: Floats
    pct_proc: Floats
    n_recall4: Floats
    n_recall5: Floats
    precision4: Floats
    harm: Floats
    g_obs: Floats
    g_oracle: Floats
    g_pool: Floats


def set_scores_batch(
    grades: ArrayLike, topk: ArrayLike, pool: ArrayLike | None, k: int, params: SetParams = PUBLISHED
) -> SetBatch:
    """Return the family for many queries of one K.

    Args:
        grades: (Q, N) integers: the grade, 1 to 5, of each passage of a query's list; `UNLABELLED` where a
            listed passage has no label, `ABSENT` where the row is shorter than N.
        topk: (Q, D) columns of `grades`: the delivered passages, best first; `ABSENT` for an empty slot. Later
            copies are left out, then the first K are taken.
        pool: (Q, N) booleans: which passages the retrieval pool holds; None when it holds all of them.
        k: cut-off, at least 1.
        params: see `SetParams`.

    Returns:
        Float64 arrays of length Q, equal to `set_scores` of each query to 1e-12.

    Raises:
        ValueError: K is not positive, shapes do not fit, or a grade or place is out of range.

    Example:
        >>> batch = set_scores_batch([[5, 4, 4, 1]], [[0, 3]], [[True, True, False, True]], 2)
        >>> batch.ra_nwg, batch.harm
        (array([0.8]), array([0.5]))
    """
    table, slots = _checked(grades, topk, k)
    chosen = _first_k(slots, k)
    rows = np.arange(len(table))[:, None]
    delivered = np.where(chosen, table[rows, slots], np.int8(ABSENT))
    census = _counts(table)
    selected = _counts(delivered)
    weights = _weights(census, params)
    g_oracle = _best_gains(census, weights, k)
    if pool is None:
        g_pool = g_oracle
    else:
        g_pool = _best_gains(_counts(_candidates(table, pool, rows, slots, chosen)), weights, k)
    is_labelled = (census[:, 1:].sum(axis=1) > 0) & (selected[:, UNLABELLED] == 0)
    g_obs = (selected * weights).sum(axis=1)
    return _assembled(is_labelled, census, selected, g_obs, g_oracle, g_pool, k, params)


def _checked(grades: ArrayLike, topk: ArrayLike, k: int) -> tuple[NDArray[np.int8], Counts]:
    raw, slots = np.asarray(grades), np.asarray(topk)
    if k <= 0:
        raise ValueError(f"K is at least 1, got {k}")
    if raw.ndim != 2 or slots.ndim != 2 or len(raw) != len(slots):
        raise ValueError(f"grades and topk are (Q, N) and (Q, D), got {raw.shape} and {slots.shape}")
    if raw.dtype.kind not in "iu" or slots.dtype.kind not in "iu":
        raise ValueError(f"grades and topk are integers, got {raw.dtype} and {slots.dtype}")
    if raw.size and not (raw.min() >= ABSENT and raw.max() <= 5):
        raise ValueError("a grade is an integer of 1 to 5")
    if slots.size and not (slots.min() >= ABSENT and slots.max() < raw.shape[1]):
        raise ValueError("a place of topk is a column of grades")
    return raw.astype(np.int8, copy=False), slots.astype(np.int64, copy=False)


def _first_k(slots: Counts, k: int) -> NDArray[np.bool_]:
    """Mark the first K distinct passages of each row."""
    same = slots[:, :, None] == slots[:, None, :]
    is_copy = np.tril(same, k=-1).any(axis=2)
    is_first = ~is_copy & (slots != ABSENT)
    chosen: NDArray[np.bool_] = is_first & (np.cumsum(is_first, axis=1) <= k)
    return chosen


def _candidates(
    table: NDArray[np.int8], pool: ArrayLike, rows: Counts, slots: Counts, chosen: NDArray[np.bool_]
) -> NDArray[np.int8]:
    held = np.array(pool, dtype=bool)
    if held.shape != table.shape:
        raise ValueError(f"pool has the shape of grades, got {held.shape} and {table.shape}")
    row, place = np.nonzero(chosen)
    held[rows[row, 0], slots[row, place]] = True
    return np.where(held, table, np.int8(ABSENT))


def _counts(table: NDArray[np.int8]) -> Counts:
    """Return (Q, 6): how many passages of each row have each grade, 0 = unlabelled."""
    counts = np.empty((len(table), 6), dtype=np.int64)
    for grade in range(6):
        np.sum(table == grade, axis=1, out=counts[:, grade])
    return counts


def _weights(census: Counts, params: SetParams) -> Floats:
    weights = np.tile(np.array(FROZEN), (len(census), 1))
    if params.is_frozen:
        return weights
    n5 = census[:, 5].astype(np.float64)
    for grade, base, cap in ((4, 0.5, params.cap4), (3, 0.1, params.cap3)):
        n = census[:, grade]
        ratio = np.divide(n5, n, out=np.zeros_like(n5), where=n > 0)
        weights[:, grade] = np.where(n > 0, np.minimum(base * ratio**params.alpha, cap), 0.0)
    if params.monotone:
        weights[:, 3] = np.minimum(weights[:, 3], weights[:, 4])
    weights[census[:, 5] == 0, 3:5] = (0.2, 1.0)
    return weights


def _best_gains(counts: Counts, weights: Floats, k: int) -> Floats:
    """Return the sum of the K largest weights of each row; only the order of 3 and 4 can differ."""
    n5, n4, n3 = counts[:, 5], counts[:, 4], counts[:, 3]
    w4, w3 = weights[:, 4], weights[:, 3]
    take5 = np.minimum(n5, k)
    rest = k - take5
    is_three_first = w3 > w4
    before4 = np.where(is_three_first, np.minimum(n3, rest), 0)
    take4 = np.minimum(n4, rest - before4)
    take3 = np.minimum(n3, rest - np.where(is_three_first, 0, take4))
    gains: Floats = take5 + take4 * w4 + take3 * w3
    return gains


def _assembled(
    is_labelled: NDArray[np.bool_],
    census: Counts,
    selected: Counts,
    g_obs: Floats,
    g_oracle: Floats,
    g_pool: Floats,
    k: int,
    params: SetParams,
) -> SetBatch:
    def over(top: Floats | Counts, bottom: Floats | Counts) -> Floats:
        quotient: Floats = np.full(len(census), np.nan)
        np.divide(top, bottom, out=quotient, where=is_labelled & (bottom > 0))
        return quotient

    returned = selected[:, 1:].sum(axis=1)
    slots = np.full(len(census), k) if params.denominator == "k" else np.where(returned > 0, returned, k)
    good = selected[:, 4] + selected[:, 5]
    return SetBatch(
        is_labelled,
        ra_nwg=over(g_obs, g_oracle),
        proc=over(g_pool, g_oracle),
        pct_proc=np.where(g_oracle > 0, over(g_obs, g_pool), np.nan),
        n_recall4=over(good, np.minimum(k, census[:, 4] + census[:, 5])),
        n_recall5=over(selected[:, 5], np.minimum(k, census[:, 5])),
        precision4=over(good, slots),
        harm=over(selected[:, 1 : params.harm_max + 1].sum(axis=1), slots),
        g_obs=g_obs,
        g_oracle=g_oracle,
        g_pool=g_pool,
    )
