"""Small git repositories for tests."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Nobody tidies up behind a commit, and it tells its whole name.
_SETTINGS = ("user.name=Tester", "user.email=tester@example.org", "maintenance.auto=false")
_OPTIONS = tuple(word for one in (*_SETTINGS, "core.abbrev=40") for word in ("-c", one))


@dataclass(frozen=True)
class GitRepository:
    """A repository with a working tree."""

    folder: Path

    @staticmethod
    def make(folder: Path) -> GitRepository:
        folder.mkdir(parents=True, exist_ok=True)
        made = GitRepository(folder)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *_OPTIONS, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, files: Mapping[str, str]) -> str:
        """Writes files, commits all there is, and returns the commit's name."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        told = self.git("commit", "--allow-empty", "-m", message)
        return re.search(r"\b[0-9a-f]{40}\b", told)[0]  # of "[main NAME] message"

    def state(self) -> tuple[str, ...]:
        """Where the working tree stands, to see that it stands there again."""
        return (
            self.git("rev-parse", "HEAD"),
            self.git("rev-parse", "--abbrev-ref", "HEAD"),
            self.git("status", "--porcelain"),
            self.git("worktree", "list"),
            self.git("for-each-ref"),
        )
