"""git, for the modes that write: a clone to work in, a commit of goldens alone, a push."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciwrap.errors import RemoteError, UsageError, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ciwrap.action.runner import Runner

_TIMEOUT_SECONDS = 300
_AUTHOR = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")
GOLDEN_SUFFIXES = (".golden", ".golden.yaml")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@-]{0,200}")


@dataclass(frozen=True, slots=True)
class Clone:
    """A checkout whose contents may be a stranger's: no hooks, no filters, no links, no modules."""

    folder: Path
    token: str

    @staticmethod
    def make(folder: Path, branch: str, runner: Runner, token: str) -> Clone:
        """Clones the tip of a branch. Raises RemoteError."""
        clone = Clone(folder, token)
        folder.mkdir(parents=True)
        clone.git("init", "--quiet", "--template=")
        clone.git("fetch", "--quiet", "--depth=1", remote_url(runner), f"refs/heads/{branch}")
        clone.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
        return clone

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def git(self, *arguments: str) -> str:
        """Runs git without any configuration but this. Raises RemoteError."""
        settings = {
            "core.hooksPath": os.devnull,
            "core.symlinks": "false",
            "core.fsmonitor": "false",
            "core.autocrlf": "false",
            "protocol.ext.allow": "never",
            "safe.directory": "*",
            "user.name": _AUTHOR[0],
            "user.email": _AUTHOR[1],
            "commit.gpgSign": "false",
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=_environment(settings, self.token),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            said = one_line(done.stderr.decode("utf-8", "replace"))[-500:]
            raise RemoteError(f"git {arguments[0]} failed: {said}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def commit_goldens(self, golden_dirs: Sequence[Path], message: str) -> bool:
        """Commits what changed of the goldens and nothing else; whether anything did.

        Raises UsageError for a folder outside of the clone.
        """
        for folder in golden_dirs:
            if not folder.resolve().is_relative_to(self.folder.resolve()):
                raise UsageError("the goldens' folder is outside of the repository", file=folder)
            if folder.exists():
                self.git("add", "--force", "--", str(folder.resolve()))
        changed = [
            name for name in self.git("diff", "--cached", "--name-only", "-z").split("\0") if name
        ]
        for name in changed:
            if not name.endswith(GOLDEN_SUFFIXES):
                # An accept leaves nothing else; whatever this is, it does not get in.
                self.git("reset", "--quiet", "--", name)
        goldens = [name for name in changed if name.endswith(GOLDEN_SUFFIXES)]
        if goldens:
            self.git("commit", "--quiet", "--no-verify", "-m", message)
        return bool(goldens)

    def push(self, branch: str, runner: Runner, *, over: bool = False) -> None:
        """Pushes HEAD to a branch; `over` replaces what is there (for a branch of our own)."""
        target = f"{'+' if over else ''}HEAD:refs/heads/{safe_branch(branch)}"
        self.git("push", "--quiet", remote_url(runner), target)


def safe_branch(name: str) -> str:
    """A branch name that git cannot take for anything else. Raises UsageError."""
    strange = ("..", "//", "@{", "/.", ".lock")
    if not _BRANCH.fullmatch(name) or any(one in name for one in strange) or name[-1] in "/.":
        raise UsageError(f"the branch name {name[:200]!r} is not supported")
    return name


def remote_url(runner: Runner) -> str:
    server = runner.environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    return f"{server}/{runner.repository}.git"


def _environment(settings: Mapping[str, str], token: str) -> dict[str, str]:
    """The token travels in a header that the command line does not show."""
    given = dict(settings)
    if token:
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        given["http.extraHeader"] = f"Authorization: Basic {basic}"
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "CIWRAP_"))
    }
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_COUNT": str(len(given)),
    }
    for number, (name, value) in enumerate(given.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = name
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
