"""Takes out of texts what says who ran something, or where: host, user, home folder, secrets."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.hidden import HIDDEN, hide_secrets, secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Folders that everybody has, whose paths tell nothing about anybody.
_PUBLIC = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/opt/", "/etc/", "/nix/store/")
_SPACK = re.compile(r"^.*/(?=[a-z0-9][\w.-]*-[\w.]+-[a-z0-9]{32}/)")
_PACKAGES = re.compile(r"^.*/(?:site|dist)-packages/")
# The home folder of anybody, also of one who is not here.
_HOMES = re.compile(r"(?<![\w.~-])/(?:home|Users)/[^/\s:;,'\"]+")


class Cleaner:
    """Cleans the texts of one snapshot.

    environment: the variables that secrets are looked for in; those of this process by default.
    root: the folder that paths are told relative to. secrets: others that are known.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        root: Path | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        given = os.environ if environment is None else environment
        self._root = str(root) if root is not None else ""
        self._home = _home()
        self._prefixes = tuple(
            dict.fromkeys(one for one in (sys.prefix, sys.base_prefix) if one not in ("/usr", "/"))
        )
        self._secrets = secrets_of(given).union(secrets)
        words = {re.escape(word) for word in (_user(), *_hosts()) if len(word) > 2}
        words -= {"root", "localhost"}
        self._words = (
            re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(words))})(?![\w-])") if words else None
        )

    def text(self, text: str) -> str:
        """A short text without secrets, home, user and host."""
        text = hide_secrets(text, self._secrets)
        if self._root not in ("", "/"):
            text = text.replace(self._root, ".")
        if self._home not in ("", "/"):
            text = text.replace(self._home, "~")
        text = _HOMES.sub("~", text)
        return text if self._words is None else self._words.sub(HIDDEN, text)

    def path(self, path: str) -> str:
        """A path as everybody may see it: as it is below /usr and its like, else relative to
        site-packages, the Python installation or the project, else its name alone.
        """
        inside = _PACKAGES.match(path)
        if inside:
            return self.text(f"{{packages}}/{path[inside.end() :]}")
        spack = _SPACK.match(path)
        if spack:
            return self.text(f"{{spack}}/{path[spack.end() :]}")
        if path.startswith(_PUBLIC):
            return self.text(path)
        for prefix in self._prefixes:
            if path.startswith(f"{prefix}/"):
                return self.text(f"{{python}}{path[len(prefix) :]}")
        if self._root not in ("", "/") and path.startswith(f"{self._root}/"):
            return self.text(f".{path[len(self._root) :]}")
        return self.text(f".../{path.rpartition('/')[2]}")

    def paths(self, text: str) -> str:
        """A list of paths parted by colons, each as in `path`."""
        return ":".join(
            self.path(part) if part.startswith("/") else part for part in text.split(":")
        )


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _hosts() -> tuple[str, ...]:
    name = socket.gethostname()
    return name, name.partition(".")[0]
