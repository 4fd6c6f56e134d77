"""The one place that runs a user's command: `ciwrap run`, `repeat` and whatever takes times."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import CommandFailedError, UsageError, one_line
from ciwrap.interrupts import ends_are_interrupts, later_interrupts
from ciwrap.model import CommandOutcome
from ciwrap.processes import all_processes
from ciwrap.running.command_output import CommandOutput
from ciwrap.running.cores import own_cores
from ciwrap.running.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ciwrap.config import CommandSettings
    from ciwrap.snapshot.program import ProgramWatcher

_GRACE_SECONDS = 5.0
_DRAIN_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_GROUP_LOOK_SECONDS = 0.02
_MOST_SAID = 200


def run_command(
    settings: CommandSettings,
    *,
    is_shown: bool = True,
    stop: threading.Event | None = None,
    watcher: ProgramWatcher | None = None,
) -> CommandOutcome:
    """Runs a command to its end or its time limit, and tells what happened.

    is_shown: whether its output goes to stderr as it comes; the end of it is in the outcome in any
    case. stop: ends the command once it is set, for those who run several in threads, where Ctrl-C
    does not arrive; the exit code is None then. watcher: looks at what the command's processes have
    loaded. On Ctrl-C, SIGTERM or SIGHUP the command and its children are ended, too, and also where
    this process is killed by what it cannot catch. Raises
    KeyboardInterrupt then, OSError if its output could not be shown, and UsageError for cores that
    this machine does not give: a command that cannot be started has the exit code None and says why
    in its output_tail.
    """
    with ends_are_interrupts(), contextlib.ExitStack() as stack:
        return _run(settings, stack, is_shown=is_shown, stop=stop, watcher=watcher)


def _run(
    settings: CommandSettings,
    stack: contextlib.ExitStack,
    *,
    is_shown: bool,
    stop: threading.Event | None,
    watcher: ProgramWatcher | None,
) -> CommandOutcome:
    started = time.perf_counter()
    process: subprocess.Popen[bytes] | None = None
    output: CommandOutput | None = None
    try:
        with later_interrupts():  # else it might run before anybody knows whom to end
            try:
                guard = stack.enter_context(Guard())
                started = time.perf_counter()
                process = _begin(settings)
            except (OSError, UnicodeEncodeError) as error:
                why = _why_not_begun(error, settings)
                return _outcome(settings, None, time.perf_counter() - started, output_tail=why)
            guard.watch(process.pid)
            assert process.stdout is not None
            output = CommandOutput(process.stdout, sys.stderr.buffer if is_shown else None)
        with _watching(watcher, process.pid, settings):
            timed_out = not _wait(process, settings.timeout_seconds, stop)
    except BaseException:
        try:
            if process is not None:
                _end(process)
        finally:
            if output is not None:
                output.show_no_more()
        raise
    seconds = time.perf_counter() - started
    is_ended = timed_out or (stop is not None and stop.is_set())
    if is_ended:
        _end(process)
    output.finish(_DRAIN_SECONDS)
    if output.error is not None:
        raise output.error
    return _outcome(
        settings,
        None if is_ended else process.returncode,
        seconds,
        timed_out=timed_out,
        output_tail=bytes(output.tail).decode("utf-8", "replace"),
    )


def _begin(settings: CommandSettings) -> subprocess.Popen[bytes]:
    """Starts a command in a process group of its own. Raises OSError."""
    with _on_cores(settings.cores):
        return subprocess.Popen(
            settings.words if isinstance(settings.words, str) else list(settings.words),
            shell=isinstance(settings.words, str),
            cwd=settings.working_dir,
            env={**os.environ, **settings.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _why_not_begun(error: OSError | UnicodeEncodeError, settings: CommandSettings) -> str:
    """One that cannot be where it is to run looks to the system as one that is not there."""
    if isinstance(error, UnicodeEncodeError):
        return f"the locale's {error.encoding} has no {error.object[error.start]!a}"
    why = error.strerror or str(error)
    if settings.working_dir.is_dir():
        return why
    return f"its folder {os.path.relpath(settings.working_dir)!r}: {why}"


def _watching(
    watcher: ProgramWatcher | None, pid: int, settings: CommandSettings
) -> contextlib.AbstractContextManager[object]:
    if watcher is None:
        return contextlib.nullcontext()
    return watcher.watch(pid, has_shell=isinstance(settings.words, str))


def _wait(
    process: subprocess.Popen[bytes], seconds: float | None, stop: threading.Event | None
) -> bool:
    """Waits for a command's end, or until it is to be ended; False if its time was up."""
    if stop is None and seconds is None:
        process.wait()
        return True
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    with _end_of(process) as has_ended:
        while stop is None or not stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if has_ended(min(left, _LOOK_SECONDS)):
                process.wait()
                return True
    return True


@contextlib.contextmanager
def _end_of(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """A function that waits for so many seconds and says whether the process has ended.

    The kernel tells at once, where Python's own wait with a limit looks every 50 ms, by which run
    times would be off.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # macOS, an old C library or kernel, or a sandbox
        ended = threading.Event()
        threading.Thread(target=_tell_end, args=(process, ended), daemon=True).start()
        yield ended.wait
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        yield lambda seconds: bool(poll.poll(math.ceil(1000 * seconds)))
    finally:
        os.close(descriptor)


def _tell_end(process: subprocess.Popen[bytes], ended: threading.Event) -> None:
    """Waits without a limit, which is told at once, too."""
    process.wait()
    ended.set()


def failure_of(
    outcome: CommandOutcome,
    *,
    was_shown: bool = True,
    so: str = "so its outputs were not compared",
) -> CommandFailedError:
    """What went wrong with a command, in one line. was_shown: whether its output was; else its last
    words are told. so: what follows from it.
    """
    words = "" if was_shown else last_words(outcome)
    return CommandFailedError(f"the command {outcome.command!r} {ending_of(outcome)}, {so}{words}")


def last_words(outcome: CommandOutcome) -> str:
    """The end of what a command printed, to be added to a sentence: `; its last words: no memory`;
    nothing where it printed nothing or never began.
    """
    said = one_line(outcome.output_tail)[-_MOST_SAID:]
    is_told = said and (outcome.exit_code is not None or outcome.timed_out)
    return f"; its last words: {said}" if is_told else ""


def ending_of(outcome: CommandOutcome) -> str:
    """How a command ended, and why if it could not be started."""
    if outcome.exit_code is None and not outcome.timed_out:
        return f"{outcome.ending}: {outcome.output_tail}"
    return outcome.ending


def _outcome(
    settings: CommandSettings,
    exit_code: int | None,
    seconds: float,
    *,
    timed_out: bool = False,
    output_tail: str = "",
) -> CommandOutcome:
    return CommandOutcome(
        settings.text,
        str(settings.working_dir),
        exit_code,
        seconds,
        timed_out=timed_out,
        output_tail=output_tail,
    )


@contextlib.contextmanager
def _on_cores(cores: frozenset[int] | None) -> Iterator[None]:
    """What is started within runs on these cores alone: a child inherits its parent's, and so
    nothing has to be done between fork and exec, where threads make that unsafe.
    """
    if cores is None:
        yield
        return
    before = own_cores()  # of this thread
    try:
        os.sched_setaffinity(0, cores)
    except (OSError, ValueError) as error:
        shown = ", ".join(map(str, sorted(cores)))
        raise UsageError(
            f"no command can run on the cores {shown or 'of an empty list'}"
        ) from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command with its whole process group: asks first, then does not ask, nor does it where
    somebody wants an end a second time.
    """
    try:
        _signal_group(process, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_SECONDS
        while _has_group(process) and time.monotonic() < deadline:
            time.sleep(_GROUP_LOOK_SECONDS)
    finally:
        # The first process may have obeyed, as a shell does, and another one of its group not.
        _signal_group(process, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _has_group(process: subprocess.Popen[bytes]) -> bool:
    """Whether any process of a command's group is alive."""
    if process.poll() is None:
        return True
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    # Zombies count there, and in a container nobody may ever take them away.
    if not Path("/proc/self/stat").exists():
        return True
    return any(one.group == process.pid and one.is_alive for one in all_processes())
