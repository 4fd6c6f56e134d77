"""Steps of a long check: each is one command with a log and a time limit, all share a budget."""

from __future__ import annotations

import subprocess
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a step that ended at its limit says, as timeout(1) does.
TIMED_OUT = 124


class Steps:
    """Runs commands one after the other, a line for each; keeps their output in files.

    step_timeout: seconds that one of them may take. budget: seconds for all; a step that begins
    with less than `_LEAST` of them left is left out, and one that runs into their end is ended.
    """

    _LEAST = 5.0

    def __init__(self, results: Path, step_timeout: float, budget: float) -> None:
        self.results = results
        self.failed: list[str] = []
        self.left_out: list[str] = []
        self.seconds: dict[str, float] = {}
        self._step_timeout = step_timeout
        self._end = time.monotonic() + budget

    def run(
        self,
        name: str,
        command: list[str | Path],
        env: dict[str, str] | None = None,
        show: int = 0,
        must: bool = False,
    ) -> bool:
        """Whether it ended with 0. show: how many lines of its output to print even then."""
        left = self._end - time.monotonic()
        if left < self._LEAST:
            self.leave_out(name, "no time is left")
            if must:
                raise SystemExit(1)
            return False
        log = self.results / f"{name.replace(' ', '-')}.log"
        begin = time.monotonic()
        status = _status(command, log, env, min(self._step_timeout, left))
        self.seconds[name] = round(time.monotonic() - begin, 1)
        word = "ok" if status == 0 else "FAILED"
        print(f"  {word:6} {name:34} {self.seconds[name]:6.1f} s", flush=True)
        lines = log.read_text(errors="replace").splitlines()
        for line in lines[-(show if status == 0 else 40) :] if status or show else []:
            print(f"         {line}")
        if status != 0:
            self.failed.append(name)
            why = "its time limit" if status == TIMED_OUT else f"status {status}"
            print(f"         {why}; all of it in {log}", flush=True)
            if must:
                raise SystemExit(1)
        return status == 0

    def leave_out(self, what: str, why: str) -> None:
        self.left_out.append(f"{what}: {why}")
        print(f"  --     {what}: {why}", flush=True)


def _status(
    command: list[str | Path], log: Path, env: dict[str, str] | None, seconds: float
) -> int:
    words = ["timeout", "--kill-after=5", f"{seconds:.0f}", *(str(part) for part in command)]
    try:
        with log.open("w") as out:
            return subprocess.run(
                words, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=env, check=False
            ).returncode
    except OSError as error:
        log.write_text(f"{error}\n")
        return 127


def pack(archive: Path, folder: Path, names: list[str]) -> None:
    """Writes files and folders of a folder into one archive; those that are not there, not."""
    with tarfile.open(archive, "w:gz") as tar:
        for name in names:
            if (folder / name).exists():
                tar.add(folder / name, arcname=name)


def unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        # Python 3.11.2 of Debian 12 knows no filters; the archive is our own.
        if hasattr(tarfile, "data_filter"):
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(folder)
