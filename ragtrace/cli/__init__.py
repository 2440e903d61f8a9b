"""Commands of the command line, with their arguments and exit statuses.

Owns: words on a terminal. Imports: everything below it, lazily, so that ``ragtrace --version`` is quick.

Exit statuses: 0 fine, 1 broken lines in the input, 2 usage (one line says what to do), 3 a threshold was missed or
had nothing to measure (or the judge failed throughout), 130 interrupted.
"""

from ragtrace.cli.main import COMMANDS, build_app, main
