"""Test suites for those who extend ciwrap; needs pytest and hypothesis. Read `reader_suite`.

from ciwrap.testing import ReaderSuite

class TestMyReader(ReaderSuite):
    ...
"""

from __future__ import annotations

import pytest

from ciwrap.testing.reader_suite import ReaderSuite

# Before the import, so that failures show both sides of an assertion.
pytest.register_assert_rewrite("ciwrap.testing.reader_suite")


__all__ = ["ReaderSuite"]
