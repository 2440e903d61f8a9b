"""The local embedder, the mean of static word vectors from files.

Two files make a set of vectors: a table (``*.safetensors``) and a tokenizer. The package wordllama brings such a
pair, but its own load() asks the network for the tokenizer (0.4.0.post1), so we read the files ourselves.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError
from ragtrace.judges.model_files import files_hash, imported, read_tokenizer
from ragtrace.text import valid

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

EXTRA = "local"
PACKAGE = "wordllama"
_TOKENIZERS = ("tokenizer.json", "*tokenizer_config.json", "*tokenizer*.json")


class StaticEmbedder:
    """Embeds a text as the mean of its tokens' vectors.

    It works offline and takes about 0.1 ms a short text. Rows have unit length; a text without a token gives a
    zero row. It knows related words, which the overlap embedder does not; what that is worth stands in
    docs/how-to/pairs.md. Levels are comparable under one set of vectors alone: its name, with 8 hex digits over
    the files, stands on every score. Thread-safe and coroutine-safe; the table is kept as it is in the file (16
    MB for wordllama's).

    Args:
        path: a folder with one ``*.safetensors`` and one tokenizer file (as wordllama's or a model2vec folder);
            None takes the files of the installed package wordllama, without importing it.

    Raises:
        MissingExtra: safetensors or tokenizers is not installed.
        ConfigError: a file is missing or broken, or the two do not belong together.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        table, tokenizer = _files(None if path is None else Path(path).expanduser())
        self._tokenizer, _ = read_tokenizer(tokenizer, EXTRA, "embedder local")
        self._vectors = _vectors(table)
        if len(self._vectors) < self._tokenizer.get_vocab_size(with_added_tokens=False):
            raise ConfigError(f"embedder local: {tokenizer} has more tokens than {table} has vectors")
        self.name = f"local:{table.stem}@{files_hash((table, tokenizer))}"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return unit rows of shape (len(texts), d). A text without tokens gives a zero row."""
        import numpy as np  # noqa: PLC0415 - the application's process may import this module

        rows = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float64)
        plain = list(map(valid, texts))
        for place, found in enumerate(self._tokenizer.encode_batch(plain, add_special_tokens=False)):
            known = [token for token in found.ids if token < len(self._vectors)]
            if known:
                mean = self._vectors[known].astype(np.float64).mean(axis=0)
                rows[place] = mean / (np.linalg.norm(mean) or 1.0)
        return rows

    async def aclose(self) -> None:
        """Nothing is held."""


def _files(folder: Path | None) -> tuple[Path, Path]:
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"embedder local: {folder} is not a folder")
    folders = _package_folders() if folder is None else [folder]
    tables = sorted(path for one in folders for path in one.glob("*.safetensors"))
    found = [sorted(path for one in folders for path in one.glob(pattern)) for pattern in _TOKENIZERS]
    tokenizers = next((paths for paths in found if paths), [])
    where = " and ".join(map(str, folders))
    if len(tables) != 1 or len(tokenizers) != 1:
        raise ConfigError(
            f"embedder local: expected one *.safetensors and one tokenizer.json in {where}, "
            f"found {len(tables)} and {len(tokenizers)}"
        )
    return tables[0], tokenizers[0]


def _package_folders() -> list[Path]:
    spec = importlib.util.find_spec(PACKAGE)  # finds it without importing it
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"embedder local: no vectors: pip install {PACKAGE}, or write local:FOLDER")
    root = Path(next(iter(spec.submodule_search_locations)))
    return [root / "weights", root / "tokenizers"]


def _vectors(path: Path) -> NDArray[np.floating]:
    safetensors = imported("safetensors", EXTRA)
    try:
        with safetensors.safe_open(str(path), framework="numpy") as opened:
            tables = [opened.get_tensor(name) for name in opened.keys()]  # noqa: SIM118 - it is no mapping
    except Exception as error:  # also a TypeError for bfloat16, which numpy does not know
        raise ConfigError(f"embedder local: {path} cannot be read: {error}") from None
    flat = [table for table in tables if table.ndim == 2 and table.dtype.kind == "f"]
    if len(flat) != 1:
        raise ConfigError(f"embedder local: {path} holds {len(flat)} tables of vectors, expected one")
    vectors: NDArray[np.floating] = flat[0]
    return vectors
