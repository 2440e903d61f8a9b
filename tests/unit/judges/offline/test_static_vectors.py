"""Real safetensors and tokenizers over a table of seven words."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from ragtrace.errors import ConfigError, MissingExtra
from ragtrace.judges import StaticEmbedder, make_embedder

for needed in ("safetensors", "tokenizers"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

WORDS = {"[UNK]": 0, "refund": 1, "money": 2, "moon": 3, "the": 4, "[CLS]": 5}
TABLE = [[0, 0, 0], [3, 4, 0], [4, 3, 0], [0, 0, 2], [0, 0, 0], [9, 9, 9]]


def write(folder, *, table=TABLE, kind=np.float16, name="vectors.safetensors", tokenizer="tokenizer.json"):
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    save_file({"embedding.weight": np.array(table, dtype=kind)}, folder / name)
    made = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 5)])
    made.enable_truncation(2)  # what a file may hold, and must not happen
    made.enable_padding(length=4, pad_id=5)
    made.save(str(folder / tokenizer))
    return folder


async def test_a_text_is_the_mean_of_its_words_at_unit_length(tmp_path):
    embedder = make_embedder(f"local:{write(tmp_path)}")
    rows = await embedder.embed(
        ["refund", "refund money", "moon", "", "  ", "the", "moon moon the moon moon refund"]
    )
    assert rows.dtype == np.float64
    assert rows[0] == pytest.approx([0.6, 0.8, 0])
    assert rows[1] == pytest.approx([2**-0.5, 2**-0.5, 0])
    assert rows[2] == pytest.approx([0, 0, 1])
    assert not rows[3:6].any()
    # Nothing is cut off: the sixth word counts.
    assert rows[6] == pytest.approx(np.array([3, 4, 8]) / 89**0.5)


async def test_half_a_surrogate_pair_is_a_text(tmp_path):
    embedder = StaticEmbedder(write(tmp_path))
    assert (await embedder.embed(["moon \ud83d"]))[0] == pytest.approx([0, 0, 1])
    assert (await embedder.embed([])).shape == (0, 3)


def test_the_name_follows_the_files_and_not_their_place(tmp_path):
    names = [StaticEmbedder(write(tmp_path / place)).name for place in "ab"]
    other = StaticEmbedder(write(tmp_path / "c", table=[[1, 2, 3]] * 6)).name
    assert names[0] == names[1] != other
    assert names[0].startswith("local:vectors@")


def test_the_files_of_an_installed_package_are_found_without_importing_it(tmp_path):
    package = tmp_path / "wordllama"
    write(package / "weights", name="l2_supercat_256.safetensors")
    (package / "tokenizers").mkdir()
    (package / "weights" / "tokenizer.json").rename(package / "tokenizers" / "l2_supercat_tokenizer_config.json")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    code = (
        "import sys; from ragtrace.judges import make_embedder;"
        "print(make_embedder('local').name, 'wordllama' in sys.modules)"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(
        run, capture_output=True, text=True, check=True, timeout=60, env={"PYTHONPATH": str(tmp_path)}
    )
    name, is_imported = done.stdout.split()
    assert name.startswith("local:l2_supercat_256@")
    assert is_imported == "False"


def test_without_vectors_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr("ragtrace.judges.offline.static_vectors.PACKAGE", "wordllama_that_nobody_has")
    with pytest.raises(ConfigError, match=r"pip install wordllama.*, or write local:FOLDER"):
        make_embedder("local")


def test_a_folder_without_one_of_each_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is not a folder"):
        StaticEmbedder(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="found 0 and 0"):
        StaticEmbedder(tmp_path)
    write(tmp_path / "two")
    write(tmp_path / "two", name="other.safetensors")
    with pytest.raises(ConfigError, match="found 2 and 1"):
        StaticEmbedder(tmp_path / "two")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"table": [[1, 2, 3]] * 3}, "more tokens than"),
        ({"table": [1, 2, 3]}, "holds 0 tables of vectors"),
        ({"kind": np.int8}, "holds 0 tables of vectors"),
    ],
)
def test_a_table_that_does_not_belong_is_refused(tmp_path, given, message):
    with pytest.raises(ConfigError, match=message):
        StaticEmbedder(write(tmp_path, **given))


@pytest.mark.parametrize("name", ["vectors.safetensors", "tokenizer.json"])
def test_a_broken_file_is_named(tmp_path, name):
    (write(tmp_path) / name).write_bytes(b"\x00garbage")
    with pytest.raises(ConfigError, match=rf"{name} cannot be read"):
        StaticEmbedder(tmp_path)


def test_bfloat16_which_numpy_lacks_is_refused(tmp_path):
    header = json.dumps({"w": {"dtype": "BF16", "shape": [6, 1], "data_offsets": [0, 12]}}).encode()
    (write(tmp_path) / "vectors.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
    with pytest.raises(ConfigError, match=r"vectors\.safetensors"):
        StaticEmbedder(tmp_path)


@pytest.mark.parametrize("package", ["safetensors", "tokenizers"])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, package):
    write(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtra, match=rf"{package} is not installed: pip install \"\.\[local\]\" in your clone"
    ):
        StaticEmbedder(tmp_path)
