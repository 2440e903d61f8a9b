"""pytest shows both sides of the suite's own comparisons."""

import pytest

pytest.register_assert_rewrite("ragtrace.testing.integration")
