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
GOLDEN_SUFFIXES = (".golden", ".golden.yaml", ".goldens")
_MOST_ASKED = 1000
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
        clone.remote(runner, "fetch", "--quiet", "--depth=1", f"refs/heads/{branch}")
        clone.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
        return clone

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def remote(self, runner: Runner, verb: str, *arguments: str) -> str:
        """Runs `git fetch` or `git push`, which alone are given the token, for this host alone."""
        *options, what = arguments
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        header = {f"http.{server_of(runner)}/.extraHeader": f"Authorization: Basic {basic}"}
        words = (verb, *options, remote_url(runner), what)
        return self._run(words, header if self.token else {})

    def git(self, *arguments: str) -> str:
        """Runs git without the token and without any configuration but ours. Raises RemoteError."""
        return self._run(arguments, {})

    def refuse_lfs(self) -> None:
        """Raises UsageError where goldens are kept in Git LFS.

        What is checked out without its filter are pointers, and a golden that is committed without
        it is an object that nobody has uploaded.
        """
        names = self.git("ls-files", "-z", "--", "*.golden", "*.goldens").split("\0")
        asked = [name for name in names if name][:_MOST_ASKED]
        if not asked:
            return
        said = self.git("check-attr", "-z", "filter", "--", *asked).split("\0")
        for name, value in zip(said[::3], said[2::3], strict=False):
            if value == "lfs":
                raise UsageError(
                    "the goldens are in Git LFS, which this job does not write to",
                    file=name,
                    remedy="download the artifact, run `ciwrap accept --from ZIP` in a clone with"
                    " git-lfs installed, and push from there",
                )

    def _run(self, arguments: Sequence[str], more: Mapping[str, str]) -> str:
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
            env=_environment({**settings, **more}),
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
        self.remote(runner, "push", "--quiet", target)


def safe_branch(name: str) -> str:
    """A branch name that git cannot take for anything else. Raises UsageError."""
    strange = ("..", "//", "@{", "/.", ".lock")
    if not _BRANCH.fullmatch(name) or any(one in name for one in strange) or name[-1] in "/.":
        raise UsageError(f"the branch name {name[:200]!r} is not supported")
    return name


def server_of(runner: Runner) -> str:
    return runner.environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")


def remote_url(runner: Runner) -> str:
    return f"{server_of(runner)}/{runner.repository}.git"


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Settings travel in the environment, which a command line does not show; those of the user and
    the system are not read, so no filter, helper or address of theirs has a part in it.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "CIWRAP_"))
    }
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_COUNT": str(len(given)),
    }
    for number, (name, value) in enumerate(given.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = name
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
