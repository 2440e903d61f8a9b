"""Console of tables and lists, on a terminal or through a pipe."""

from __future__ import annotations

from ragtrace.demo.console import PlainConsole

PIPED_COLUMNS = 220  # where no terminal shows a table, nothing of it is folded


class Shown(PlainConsole):
    """A console without markup, which is wide where no terminal limits it."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
        if not self.file.isatty():  # FORCE_COLOR, as notebooks set it, brings colours and no screen of 80 columns
            self.width = PIPED_COLUMNS

    def on_broken_pipe(self) -> None:
        """Raise for `main`; rich would exit with 1, the status of broken lines."""
        raise BrokenPipeError
