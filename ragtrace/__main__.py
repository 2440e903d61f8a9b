"""``python -m ragtrace`` is the command line."""

import sys

from ragtrace.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
