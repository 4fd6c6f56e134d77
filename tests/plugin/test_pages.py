"""The page on the plugin says what is so: its tests are run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from plugin.conftest import ROOT, summary

from ciwrap.golden.places import TestPlace

if TYPE_CHECKING:
    from plugin.conftest import Suite

PAGE = (ROOT / "docs/how-to/pytest.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_its_tests_run(suite: Suite) -> None:
    for number, block in enumerate(BLOCKS):
        suite.write("", f"tests/test_{number}.py").write_text(block)
    suite.run().assert_outcomes(failed=7, passed=1)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=8)
    result = suite.run("--ciwrap-unused=fail")
    result.assert_outcomes(passed=8)
    assert summary(result) == (
        "ciwrap: 8 matched, 1 reproducible from run to run, 1 differ as expected"
    )


def test_its_file_name_is_right(suite: Suite) -> None:
    suite.write(
        """
        class TestFlow:
            @pytest.mark.parametrize("n, name", [(2, "a/b")])
            def test_push(self, n, name, ciwrap): ciwrap.check(1.0, "velocity")
        """,
        "tests/test_flow.py",
    )
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    (name,) = suite.files("golden")
    assert f"    golden/{name}\n" in PAGE
    place = TestPlace("tests/test_flow.py", "TestFlow::test_push", "2-a/b", "velocity").place
    assert (place.folder, f"`{place.name}`" in PAGE) == ("tests/test_flow", True)


def test_its_options_exist(suite: Suite) -> None:
    text = suite.run("--help").stdout.str()
    options = set(re.findall(r"--ciwrap-[a-z-]+", PAGE)) | set(re.findall(r"ciwrap_[a-z_]+", PAGE))
    assert len(options) >= 9
    for option in options:
        assert option in text
