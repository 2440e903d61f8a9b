"""A real file system of a few megabytes, that a test fills and frees."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SmallDisk:
    """A folder on a disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take every free byte."""
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))

    def free(self) -> None:
        """Give them back."""
        self._filler.unlink()


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "32m") -> Iterator[SmallDisk]:
    """Mount one; skip where this user may mount nothing."""
    folder.mkdir()
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    mount = [*sudo, "mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this user may mount no file system")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run([*sudo, "umount", "-l", str(folder)], check=True)
