"""Command lines of ciwrap, called in the process of the tests or in one of their own.

`call` is what most tests want: it takes some hundredths of a second, where a new process takes a
whole one. `call_apart` starts that process. It is for what only a process has: signals, a terminal,
pipes, limits, crashes, and environment variables that are read once, at its start.
`e2e/test_cli_apart.py` holds the two against each other.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from typing import IO, TYPE_CHECKING, Any, NoReturn

import pytest

from ciwrap.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECONDS = 120
# Variables that the interpreter and its libraries read when they start.
READ_AT_START = ("PYTHON", "OMP_", "KOKKOS_", "LD_", "LANG", "LC_")

# For a pytest in a process of its own: without the plugins of others that happen to be installed,
# which take a second to load (most of it zarr's). Ours comes by its entry point as ever.
NO_OTHER_PLUGINS = tuple(
    word
    for name in ("zarr", "hypothesispytest", "syrupy", "regressions", "rerunfailures", "xdist")
    for word in ("-p", f"no:{name}")
)


def command(*arguments: str) -> list[str]:
    """The words that start ciwrap as a process."""
    return [sys.executable, "-m", "ciwrap", *arguments]


def call_apart(
    *arguments: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command line of ciwrap in a new process."""
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def call(
    *arguments: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command line of ciwrap in this process; the result is that of `call_apart`.

    Afterwards the working folder, the environment and the standard streams are what they were.
    """
    refuse_what_is_read_at_start(environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with (
            _working_in(folder, environment),
            _streams_into(out, err),
            _default_warnings(),
            _time_limit(arguments),
        ):
            code = run(arguments)
        said = [_text_of(file) for file in (out, err)]
    return subprocess.CompletedProcess(command(*arguments), code, *said)


def refuse_what_is_read_at_start(environment: Mapping[str, str]) -> None:
    """Raises AssertionError if a variable is set that this process is too old to read."""
    for name in environment.keys() | os.environ.keys():
        if name.startswith(READ_AT_START):
            value = environment.get(name)
            assert value == os.environ.get(name), f"{name}={value} needs a process of its own"


@contextlib.contextmanager
def _working_in(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    folder_before, environment_before = os.getcwd(), dict(os.environ)  # noqa: PTH109
    arguments_before = sys.argv
    os.chdir(folder)
    _set_environment(environment)
    sys.argv = ["ciwrap"]
    try:
        yield
    finally:
        sys.argv = arguments_before
        _set_environment(environment_before)
        os.chdir(folder_before)


def _set_environment(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)


@contextlib.contextmanager
def _streams_into(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Has the standard streams write into files, those of processes that are started, too."""
    streams = sys.stdin, sys.stdout, sys.stderr
    for stream in streams[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        for number, file in enumerate((nothing, out, err)):
            os.dup2(file.fileno(), number)
    # As the interpreter opens them.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    try:
        yield
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.close()
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, saved in enumerate(kept):
            os.dup2(saved, number)
            os.close(saved)


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8").replace("\r\n", "\n")


@contextlib.contextmanager
def _default_warnings() -> Iterator[None]:
    """Has warnings printed, as Python itself does; in tests they are errors."""

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any
    ) -> None:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for kind in (
            DeprecationWarning,
            PendingDeprecationWarning,
            ImportWarning,
            ResourceWarning,
        ):
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _time_limit(arguments: tuple[str, ...]) -> Iterator[None]:
    def end(number: int, frame: object) -> NoReturn:
        # No Exception, so that nothing makes a verdict of it.
        pytest.fail(f"ciwrap {' '.join(arguments)} took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
