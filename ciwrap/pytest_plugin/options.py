"""Options, ini settings and the marker: what they are, and what may not be asked for."""

from __future__ import annotations

import contextlib
import os
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

UPDATE_MODES = ("none", "new", "failed", "all")
UPDATE_VARIABLE = "CIWRAP_UPDATE"  # for the buttons of editors
UNUSED_MODES = ("ignore", "warn", "fail", "delete")
DEFAULT_VARIANTS = ("{system}-{machine}",)

MARKER = (
    "ciwrap(atol=, ... as in ciwrap.yaml, bounds=, ignore=, strict=, duplicates=, repeat=):"
    " defaults for ciwrap.check() in this test, which fails if it checks nothing; repeat=N runs the"
    " test's body N times and compares the runs with each other instead of with a golden"
)

_FILE_OPTIONS = ("--ciwrap-json", "--ciwrap-report")
_TOPS = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml"),
    *("tox.ini", "setup.cfg", "setup.py", "ciwrap.yaml", ".git", ".ciwrap"),
)


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("ciwrap", "numbers against goldens (ciwrap)")
    group.addoption(
        "--ciwrap-update",
        choices=UPDATE_MODES,
        default=os.environ.get(UPDATE_VARIABLE) or "none",
        help="which goldens to write: none (default), new ones, failed ones too, or all that are"
        f" not the same to the byte; refused in CI; default: ${UPDATE_VARIABLE}",
    )
    group.addoption(
        "--ciwrap-update-in-ci",
        action="store_true",
        help="let --ciwrap-update and --ciwrap-unused=delete work in CI all the same",
    )
    group.addoption(
        "--ciwrap-all",
        action="store_true",
        help="make all checks of each test before it fails, so that one run finds all that differ",
    )
    group.addoption(
        "--ciwrap-reason",
        metavar="TEXT",
        help="why; needed to replace goldens, and kept in their history",
    )
    group.addoption(
        "--ciwrap-unused",
        choices=UNUSED_MODES,
        help="what to do about goldens of tests that no longer use them (default: warn)",
    )
    group.addoption(
        "--ciwrap-variant",
        metavar="NAME",
        help="the kind of machine this is: its goldens are looked for first, and new ones are"
        " written for it alone",
    )
    group.addoption("--ciwrap-json", metavar="FILE", help="write all checks as JSON to FILE")
    group.addoption("--ciwrap-report", metavar="FILE", help="write an HTML report to FILE")
    parser.addini("ciwrap_golden_dir", "folder of the goldens (default: as in ciwrap.yaml)")
    parser.addini(
        "ciwrap_variants",
        "kinds of machines whose goldens are looked for, in this order, before the common ones;"
        " {system}, {machine} and {python} are replaced",
        type="args",
        default=list(DEFAULT_VARIANTS),
    )
    parser.addini("ciwrap_unused", "default of --ciwrap-unused")
    parser.addini("ciwrap_all", "default of --ciwrap-all", type="bool", default=False)


def refuse_nonsense(config: pytest.Config) -> None:
    """Raises pytest.UsageError for options that must not be followed."""
    mode, reason = config.option.ciwrap_update, config.option.ciwrap_reason
    if mode not in UPDATE_MODES:  # pytest looks at what is given, not at the default
        raise pytest.UsageError(
            f"{UPDATE_VARIABLE}={mode}: there is {', '.join(UPDATE_MODES)} only"
        )
    is_from_variable = mode == os.environ.get(UPDATE_VARIABLE)
    asked = f"{UPDATE_VARIABLE if is_from_variable else '--ciwrap-update'}={mode}"
    if reason is not None and not reason.strip():
        raise pytest.UsageError("--ciwrap-reason is empty; say why the new numbers are right")
    if mode in ("failed", "all") and reason is None:
        raise pytest.UsageError(
            f"{asked} replaces goldens, which needs a reason;"
            " add --ciwrap-reason='why the new numbers are right'"
        )
    deletes = unused_mode(config) == "delete"
    if config.option.ciwrap_update_in_ci or not (deletes or mode != "none"):
        return
    from ciwrap.base.ci import is_ci  # no module of ours is loaded where nothing is asked for

    if not is_ci():
        return
    if mode != "none":
        instead = "take the pending goldens that the run leaves (`ciwrap accept --from`)"
        raise _refused_in_ci(asked, instead)
    if deletes:
        instead = "say --ciwrap-unused=fail, and prune where you work (`ciwrap prune`)"
        raise _refused_in_ci("--ciwrap-unused=delete", instead)


def _refused_in_ci(option: str, instead: str) -> pytest.UsageError:
    return pytest.UsageError(
        f"{option} is refused in CI, where nobody would see the files; {instead}, or add"
        " --ciwrap-update-in-ci"
    )


def refuse_misread_files(config: pytest.Config) -> None:
    """Raises pytest.UsageError where pytest took a file to write for tests, and another project for
    this one.

    It looks for its configuration before it knows our options: of an option and its value as two
    words, the value is a path to tests to it, if there is such a file.
    """
    if config.option.inifilename or config.option.rootdir:
        return
    here = config.invocation_params.dir
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *config.invocation_params.args]
    for option, value in pairwise(map(str, words)):
        if option not in _FILE_OPTIONS or not Path(here, value).exists():
            continue
        if _top_of(here) != _top_of(config.rootpath):
            raise pytest.UsageError(
                f"{option} {value}: pytest takes an existing file that stands there as a word of"
                f" its own for tests, and the project would be {config.rootpath}; write"
                f" {option}={value}"
            )


def _top_of(folder: Path) -> Path:
    """The nearest folder, upwards, that looks like that of a project; else the folder itself."""
    above = (folder, *folder.parents)
    return next((one for one in above if any((one / name).exists() for name in _TOPS)), folder)


def remove_earlier_results(config: pytest.Config) -> None:
    """Removes the files that an earlier session wrote under the names that this one is given.

    A test may end the process (os._exit, a crash in C): what lay there would pass for its result.
    """
    if config.option.collectonly or config.option.help:
        return
    for name in (config.option.ciwrap_json, config.option.ciwrap_report):
        path = Path(config.invocation_params.dir, name or "-")
        # Those may be where this process prints to.
        is_ours = name and name != "-" and not name.startswith(("/dev/", "/proc/"))
        if is_ours and path.is_file():
            # What is in the way of this is in the way of the writing, which tells of it.
            with contextlib.suppress(OSError):
                Path(os.path.realpath(path)).unlink()


def makes_all(config: pytest.Config) -> bool:
    """Whether a test goes on after a check that fails, and fails at its end."""
    return bool(config.option.ciwrap_all or config.getini("ciwrap_all"))


def unused_mode(config: pytest.Config) -> str:
    mode = config.option.ciwrap_unused or config.getini("ciwrap_unused") or "warn"
    if mode not in UNUSED_MODES:
        raise pytest.UsageError(
            f"ciwrap_unused = {mode!r}: there is {', '.join(UNUSED_MODES)} only"
        )
    return str(mode)


def may_have_goldens(config: pytest.Config) -> bool:
    """Whether the end of a session without any check has something to say, found out cheaply."""
    if config.option.collectonly:
        return False
    if config.option.ciwrap_json or config.option.ciwrap_report:
        return True
    if unused_mode(config) == "ignore":
        return False
    folder = config.rootpath / (config.getini("ciwrap_golden_dir") or "golden")
    # Goldens of tests lie in folders, and in the file of those at the top.
    return (config.rootpath / "ciwrap.yaml").exists() or (
        folder.is_dir()
        and any(one.suffix == ".goldens" or one.is_dir() for one in folder.iterdir())
    )
