"""The configuration a command works on, with paths as the user would type them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.config import Check, Config, find_config, load_config
from ciwrap.golden.store import GoldenStore

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Project:
    """A configuration, the store of its goldens and the checks asked for."""

    config: Config
    store: GoldenStore
    checks: tuple[Check, ...]


def near(path: Path) -> Path:
    """The path relative to here if it lies below here, else as it is."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
    try:
        return absolute.relative_to(Path.cwd())
    except ValueError:
        return absolute


def load_project(
    config_path: str | None, golden_dir: str | None, names: Sequence[str] = ()
) -> Project:
    """Loads the configuration. Raises ConfigMissingError or ConfigError (an unknown check, too)."""
    path = find_config(Path.cwd()) if config_path is None else Path(config_path)
    config = load_config(path)
    wanted = config.checks if not names else tuple(config.check(name) for name in _unique(names))
    folder = config.golden_dir if golden_dir is None else Path(golden_dir)
    checks = tuple(replace(check, root=near(check.root)) for check in wanted)
    return Project(config, GoldenStore(near(folder)), checks)


def _unique(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))
