"""Records of ragtrace, and datasets with the field names of DeepEval."""

from ragtrace.batch.readers import Reader
from ragtrace.model.codec import ALIASES

_NAMES = {*ALIASES, *(name for names in ALIASES.values() for name in names), "pool", "selection"}

READER = Reader(
    about="Records of ragtrace (`ragtrace schema`), and lines with their names in DeepEval.",
    reads=lambda columns: not _NAMES.isdisjoint(columns),
    order=9,  # many formats have a column "input"
)
