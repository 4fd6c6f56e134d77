"""The plugin costs nothing until a test asks for the fixture."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plugin.conftest import Suite


def test_the_hooks_load_nothing_heavy() -> None:
    code = "import sys, ciwrap.pytest_plugin.hooks; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "ciwrap.pytest_plugin.options" in loaded
    assert not loaded & {
        "numpy",
        "msgspec",
        "yaml",
        "click",
        "jinja2",
        "ciwrap._core",
    }
    assert {name for name in loaded if name.startswith("ciwrap")} == {
        "ciwrap",
        "ciwrap.pytest_plugin",
        "ciwrap.pytest_plugin.collect",
        "ciwrap.pytest_plugin.hooks",
        "ciwrap.pytest_plugin.options",
    }


def test_a_session_without_the_fixture_loads_nothing_heavy(suite: Suite) -> None:
    (suite.root / "tests/test_it.py").write_text("def test_it(): pass\n")
    suite.write(
        "def pytest_unconfigure(config):\n    import sys\n    print('\\nLOADED', *sys.modules)\n",
        "conftest.py",
    )
    text = (suite.root / "conftest.py").read_text().replace("import numpy as np\n", "")
    (suite.root / "conftest.py").write_text(text)
    done = suite.subprocess("-p", "no:hypothesispytest", "-p", "no:syrupy")
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]
    loaded = set(line.split())
    assert "ciwrap.pytest_plugin.hooks" in loaded
    assert not loaded & {"ciwrap._core", "ciwrap.pytest_plugin.fixture", "ciwrap.project.schema"}


def test_help_and_markers_tell_of_it(suite: Suite) -> None:
    text = suite.run("--help").stdout.str()
    for option in ("update", "update-in-ci", "reason", "unused", "variant", "json", "report"):
        assert f"--ciwrap-{option}" in text
    assert "ciwrap_golden_dir" in text
    assert "@pytest.mark.ciwrap(atol=" in suite.run("--markers").stdout.str()
    assert "ciwrap.check(array" in suite.run("--fixtures").stdout.str()


def test_the_plugin_is_quiet_where_it_is_not_used(suite: Suite) -> None:
    suite.write("def test_it(): pass")
    result = suite.run()
    result.assert_outcomes(passed=1)
    assert not [line for line in result.outlines if line.startswith("ciwrap")]
    assert not (suite.root / ".ciwrap").exists()


def test_where_goldens_lie(suite: Suite) -> None:
    """As ciwrap.yaml says, or as pytest's configuration does."""
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)", "sub/tests/test_it.py")
    (suite.root / "ciwrap.yaml").write_text(
        "version: 1\ngolden_dir: baselines\nchecks: {mesh: {outputs: x.npy}}\n"
    )
    suite.run("sub", "--ciwrap-update=new").assert_outcomes(passed=1)
    assert (suite.root / "baselines/sub/tests/test_it.goldens").exists()
    result = suite.run("sub", "--ciwrap-update=new", "-o", "ciwrap_golden_dir=other")
    result.assert_outcomes(passed=1)
    assert (suite.root / "other/sub/tests/test_it.goldens").exists()
    result = suite.run("sub", "-o", "ciwrap_golden_dir=../outside")
    result.assert_outcomes(errors=1)
    assert "the golden folder must lie in the project's" in result.stdout.str()
    (suite.root / "ciwrap.yaml").write_text("version: 1\nchecksy: 1\n")
    result = suite.run("sub")
    result.assert_outcomes(errors=1)
    assert "ciwrap.yaml:2" in result.stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--ciwrap-json", "--ciwrap-report"])
@pytest.mark.parametrize("is_in_environment", [False, True])
def test_a_result_of_an_earlier_run_moves_no_project(
    suite: Suite, option: str, is_in_environment: bool
) -> None:
    # pytest reads options before it knows ours: it took the file for a path to tests.
    suite.write("def test_a(ciwrap): ciwrap.check(1.0)")
    assert suite.subprocess("--ciwrap-update=new").returncode == 0
    file = suite.root.parent / f"{suite.root.name}-result"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        if is_in_environment:
            return suite.subprocess(PYTEST_ADDOPTS=" ".join(words))
        return suite.subprocess(*words)

    assert run(option, str(file)).returncode == 0
    written = file.read_bytes()
    done = run(option, str(file))
    assert done.returncode == 4
    line = done.stderr.strip()
    assert "\n" not in line
    assert line.startswith(f"ERROR: {option} {file}: pytest takes an existing file")
    assert line.endswith(f"the project would be {suite.root.parent}; write {option}={file}")
    assert file.read_bytes() == written
    assert run(f"{option}={file}").returncode == 0
    assert run(option, str(file), "--rootdir", str(suite.root), "-c", "pytest.ini").returncode == 0


def test_a_result_in_the_project_is_named_as_two_words(suite: Suite) -> None:
    suite.write("def test_a(ciwrap): ciwrap.check(1.0)")
    (suite.root / "result.json").write_text("{}")
    done = suite.subprocess("--ciwrap-update=new", "--ciwrap-json", "result.json")
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        suite.command("--ciwrap-json", "../result.json"),
        cwd=suite.root / "tests",
        env=suite.environment(),
        check=False,
    )
    assert done.returncode == 0
