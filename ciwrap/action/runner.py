"""What the runner offers a step: folders, the event, outputs, job summary, commands, logs."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.errors import UsageError, escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A job summary of more is dropped as a whole; some room is left for other writers of the step.
SUMMARY_BYTES = 1024 * 1024 - 4096
_MOST_EVENT_BYTES = 32 << 20
# The step's own channels, which a program under test has no business with.
_CHANNELS = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


@dataclass(frozen=True, slots=True)
class Runner:
    """The environment of one step; tests hand in their own."""

    environment: Mapping[str, str]

    @staticmethod
    def here() -> Runner:
        return Runner(os.environ)

    def _folder(self, name: str) -> Path:
        folder = self.environment.get(name)
        if not folder:
            raise UsageError(f"{name} is not set; this command is a step of the GitHub Action")
        return Path(folder)

    @property
    def workspace(self) -> Path:
        return self._folder("GITHUB_WORKSPACE")

    @property
    def stage(self) -> Path:
        """Where results are put together before they are uploaded; below the runner's own folder
        for temporary files, so outside of the checkout."""
        return self._folder("RUNNER_TEMP") / "ciwrap-results"

    @property
    def repository(self) -> str:
        return self.environment.get("GITHUB_REPOSITORY", "")

    @property
    def sha(self) -> str:
        return self.environment.get("GITHUB_SHA", "")

    @property
    def event(self) -> dict[str, Any]:
        """The event's payload; {} where there is none."""
        path = self.environment.get("GITHUB_EVENT_PATH")
        if not path or not Path(path).is_file():
            return {}
        with Path(path).open("rb") as stream:
            event = json.loads(stream.read(_MOST_EVENT_BYTES))
        return event if isinstance(event, dict) else {}

    @property
    def program_environment(self) -> dict[str, str]:
        """The environment for programs under test: without the channels of the step and its
        inputs, so that they can forge no outputs."""
        return {
            name: value
            for name, value in self.environment.items()
            if name not in _CHANNELS and not name.startswith("CIWRAP_")
        }

    def set_output(self, name: str, value: object) -> None:
        """Sets an output of the step; the value may hold anything, line breaks too."""
        path = self.environment.get("GITHUB_OUTPUT")
        if not path:
            return
        text = str(value)
        # Nobody can close a heredoc whose mark he cannot guess.
        mark = f"ciwrap_{secrets.token_hex(16)}"
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{name}<<{mark}\n{text}\n{mark}\n")

    def add_summary(self, markdown: str) -> None:
        """Adds to the job summary what fits into it."""
        path = self.environment.get("GITHUB_STEP_SUMMARY")
        if not path:
            return
        file = Path(path)
        used = file.stat().st_size if file.exists() else 0
        data = cut_markdown(markdown, SUMMARY_BYTES - used).encode("utf-8", "backslashreplace")
        with file.open("ab") as stream:
            stream.write(data)


_CUT = "\n\n_... cut here: the whole text is in the report of the artifact._\n"


def cut_markdown(text: str, most_bytes: int) -> str:
    """The text if it fits, else its first lines with a note that it was cut."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= most_bytes:
        return text
    room = most_bytes - len(_CUT.encode())
    if room <= 0:
        return ""
    head = data[:room].decode("utf-8", "ignore")
    return head.rpartition("\n")[0] + _CUT


def escape_data(text: str) -> str:
    """The text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """The text as a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command_line(kind: str, message: str, **properties: object) -> str:
    """One workflow command, `::error file=a,line=3::message`; properties that are None are left
    out."""
    given = ",".join(
        f"{name}={escape_property(str(value))}"
        for name, value in properties.items()
        if value is not None
    )
    return f"::{kind}{' ' + given if given else ''}::{escape_data(message)}"


def say(text: str) -> None:
    """Prints lines of the log, control characters escaped, in their place among a child's output.

    A line of a log that begins with `::` or holds `##[` is an order to the runner, so text from
    outside is printed within `plain_log`.
    """
    print("\n".join(escape(line) for line in text.split("\n")), flush=True)


@contextlib.contextmanager
def plain_log(title: str) -> Iterator[None]:
    """A folded part of the log in which nothing is an order to the runner, whatever it says."""
    token = secrets.token_hex(16)
    print(command_line("group", title), flush=True)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        sys.stderr.flush()
        print(f"\n::{token}::", flush=True)
        print("::endgroup::", flush=True)
