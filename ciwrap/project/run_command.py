"""The one place that runs a user's command: `ciwrap run`, `repeat` and whatever takes times.

SIGKILL leaves ciwrap no time to end a command, which would go on and write over what the next call
puts there. So a shell waits beside each command for one line; if its pipe is closed without that
line, the shell kills the command's process group. A command that has just begun, and whose group
the shell does not know yet, goes on. Nothing runs between fork and exec, where threads make that
unsafe, and no program but the system's own shell is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, TypeVar

from ciwrap.base.errors import CommandFailedError, UsageError, one_line
from ciwrap.base.processes import all_processes, endings_call, ends_are_interrupts, later_interrupts
from ciwrap.model import CommandOutcome, Used

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from concurrent.futures import Future

    from ciwrap.project.settings import CommandSettings
    from ciwrap.snapshot.take import ProgramWatcher

_TAIL_BYTES = 4000
_AT_ONCE = 1 << 16
_OUTPUT_LOOK_SECONDS = 0.05
_USUAL_PIPE_BYTES = 1 << 16


class CommandOutput:
    """Takes what a command prints, in a thread of its own.

    tail: the end of it. error: why it could no longer be shown; the command does not suffer from
    that, and what it prints is still taken. copy: where it is shown; None for nowhere.
    """

    def __init__(self, stream: IO[bytes], copy: IO[bytes] | None) -> None:
        self.tail = bytearray()
        self.error: OSError | None = None
        self._stream, self._copy = stream, copy
        self._taken = 0
        self._is_over = False  # nobody prints any more
        self._is_left = False  # nobody waits for the thread any more
        self._showing = threading.Lock()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Waits until all that the command printed is shown, and shows no more then.

        seconds: to wait for more. A process that it left behind may hold the pipe open for ever, or
        print for ever: of that, no more is shown than a pipe can hold.
        """
        deadline = time.monotonic() + seconds
        most = self._taken + _capacity(self._stream)
        while self._thread.is_alive():
            self._thread.join(_OUTPUT_LOOK_SECONDS)
            is_late = time.monotonic() >= deadline
            if is_late and (self._taken > most or not self._is_busy()):
                break
        self.show_no_more()

    def show_no_more(self) -> None:
        """Nobody writes to where it was shown from now on: a thread that does so while Python ends
        makes it abort.
        """
        with self._showing:
            self._copy = None
            self._is_left = True
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_over and self._is_left:
            self._stream.close()

    def _is_busy(self) -> bool:
        """Whether something is being shown, or is there to be."""
        return self._showing.locked() or self._has_more(0)

    def _has_more(self, milliseconds: int | None) -> bool:
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def _pass_on(self) -> None:
        while not self._is_over:
            self._has_more(None)
            with self._showing:  # from before it is taken: what is taken will have been shown
                self._is_over = not self._take()
                self._close_if_done()

    def _take(self) -> bool:
        chunk = os.read(self._stream.fileno(), _AT_ONCE)
        self._taken += len(chunk)
        self.tail += chunk
        del self.tail[:-_TAIL_BYTES]
        if chunk and self._copy is not None and self.error is None:
            self._show(self._copy, chunk)
        return bool(chunk)

    def _show(self, copy: IO[bytes], chunk: bytes) -> None:
        try:
            copy.write(chunk)
            copy.flush()
        except OSError as error:
            self.error = error


def _capacity(pipe: IO[bytes]) -> int:
    """How many bytes a pipe holds."""
    with contextlib.suppress(AttributeError, OSError):  # another system
        return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    return _USUAL_PIPE_BYTES


_SHELL = "/bin/sh"
# `read` fails at the end of the pipe. The first line is the group: without it there is no command.
_WAITS = 'read -r group && { read -r over || kill -s KILL -- "-$group"; }'


class Guard:
    """The shell that waits, until the end of a `with`. Begun before the command, so that none is
    ever without one, but where there is no shell, as in some images of containers. Raises OSError
    if it cannot be started.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        # In a session of its own: Ctrl-C is for ciwrap, which ends the command and then the guard.
        with contextlib.suppress(FileNotFoundError):
            self._shell = subprocess.Popen(
                [_SHELL, "-c", _WAITS],
                cwd="/",
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def watch(self, group: int) -> None:
        """Says which process group is to end with this process."""
        self._say(f"{group}\n")

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *raised: object) -> None:
        """Ends the guard, and nothing else."""
        self._say("over\n")
        if self._shell is not None:
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell.wait()

    def _say(self, line: str) -> None:
        if self._shell is None:
            return
        assert self._shell.stdin is not None
        # Somebody may have killed the guard; the command is none the worse for it.
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(line.encode())


_TOPOLOGY = Path("/sys/devices/system/cpu")


def all_cores_but_one() -> frozenset[int]:
    """The cores of this process without the first one, which then is the operating system's.

    Raises UsageError where there is only one, or where cores cannot be chosen.
    """
    cores = sorted(own_cores())
    if len(cores) < 2:
        raise UsageError("there is only one core, so none can be reserved")
    return frozenset(cores[1:])


def halves_of_cores(
    cores: Collection[int] | None = None,
) -> tuple[frozenset[int], frozenset[int]]:
    """Two equally large sets of cores; of an odd number one is in neither. The hardware threads of
    one core are in the same set, as far as that goes.

    cores: those to share out; None for all of this process. Raises UsageError where there are fewer
    than two, or where cores cannot be chosen.
    """
    found = sorted(own_cores() if cores is None else cores, key=_place_of)
    half = len(found) // 2
    if not half:
        raise UsageError("there is only one core, so two commands cannot have one each")
    return frozenset(found[:half]), frozenset(found[half : 2 * half])


def own_cores() -> set[int]:
    """The cores that this thread may use. Raises UsageError where cores cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("this system does not let a program choose its cores")
    return os.sched_getaffinity(0)


def _place_of(cpu: int) -> tuple[int, int, int]:
    """Socket, core and hardware thread, by which threads of one core lie side by side."""
    try:
        folder = _TOPOLOGY / f"cpu{cpu}" / "topology"
        names = ("physical_package_id", "core_id")
        socket, core = (int((folder / name).read_text()) for name in names)
    except (OSError, ValueError):  # another system, or one that hides its processors
        return 0, cpu, cpu
    return socket, core, cpu


# The system counts memory in these.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
_GRACE_SECONDS = 5.0
_DRAIN_SECONDS = 2.0
_COMMAND_LOOK_SECONDS = 0.2
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
        reaper = _Reaper(process)
        with _watching(watcher, process.pid, settings):
            timed_out = not _wait(reaper, settings.timeout_seconds, stop)
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
        used=None if is_ended else reaper.used,
    )


def own_peak_bytes() -> int:
    """The most memory of this process, which is where the system begins to count a new one's."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


class _Reaper:
    """Waits for the end of a process. used: what it used, once it has ended, if that is known."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.used: Used | None = None
        self._own_peak = own_peak_bytes()

    def reap(self) -> None:
        """Returns when the process has ended."""
        if self.process.returncode is not None:
            return
        try:
            _, status, usage = os.wait4(self.process.pid, 0)
        except ChildProcessError:  # somebody else has waited for it
            self.process.wait()
            return
        self.process.returncode = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * _PEAK_UNIT
        self.used = Used(
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            voluntary_switches=usage.ru_nvcsw,
            involuntary_switches=usage.ru_nivcsw,
            minor_faults=usage.ru_minflt,
            major_faults=usage.ru_majflt,
            peak_bytes=peak if peak > self._own_peak else None,
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


def _wait(reaper: _Reaper, seconds: float | None, stop: threading.Event | None) -> bool:
    """Waits for a command's end, or until it is to be ended; False if its time was up."""
    if stop is None and seconds is None:
        reaper.reap()
        return True
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    with _end_of(reaper) as has_ended:
        while stop is None or not stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if has_ended(min(left, _COMMAND_LOOK_SECONDS)):
                reaper.reap()
                return True
    return True


@contextlib.contextmanager
def _end_of(reaper: _Reaper) -> Iterator[Callable[[float], bool]]:
    """A function that waits for so many seconds and says whether the process has ended.

    The kernel tells at once, where Python's own wait with a limit looks every 50 ms, by which run
    times would be off.
    """
    try:
        descriptor = os.pidfd_open(reaper.process.pid)
    except (AttributeError, OSError):  # macOS, an old C library or kernel, or a sandbox
        ended = threading.Event()
        threading.Thread(target=_tell_end, args=(reaper, ended), daemon=True).start()
        yield ended.wait
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        yield lambda seconds: bool(poll.poll(math.ceil(1000 * seconds)))
    finally:
        os.close(descriptor)


def _tell_end(reaper: _Reaper, ended: threading.Event) -> None:
    """Waits without a limit, which is reported at once, too."""
    reaper.reap()
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
    used: Used | None = None,
) -> CommandOutcome:
    return CommandOutcome(
        settings.text,
        str(settings.working_dir),
        exit_code,
        seconds,
        timed_out=timed_out,
        output_tail=output_tail,
        used=used,
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


_T = TypeVar("_T")


def together(jobs: Sequence[Callable[[threading.Event | None], _T]]) -> list[_T]:
    """Starts all jobs at once, each in a thread, and waits for them; results in the order of jobs.

    Each job gets an event that is set when the others are to end, too: because one has failed, or
    on Ctrl-C, SIGTERM or SIGHUP, after which KeyboardInterrupt is raised once all have ended. A
    single job runs in this thread, and gets none. Else raises what the first of them in order
    raises.
    """
    if len(jobs) == 1:
        return [jobs[0](None)]
    # Jobs that have ended, and None for a signal. It only tells: an exception in the middle of what
    # threads, pools and futures do would leave their locks held.
    news: SimpleQueue[Future[_T] | None] = SimpleQueue()
    signals: list[int] = []

    def take_signal(number: int) -> None:
        signals.append(number)
        news.put(None)

    stop = threading.Event()
    with endings_call(take_signal), ThreadPoolExecutor(max(1, len(jobs))) as pool:
        try:
            futures = [pool.submit(job, stop) for job in jobs]
            for future in futures:
                future.add_done_callback(news.put)
            while not all(future.done() for future in futures):
                one = news.get()
                if one is None or one.exception():
                    stop.set()
        except BaseException:
            stop.set()
            raise
    if signals:
        raise KeyboardInterrupt
    return [future.result() for future in futures]
