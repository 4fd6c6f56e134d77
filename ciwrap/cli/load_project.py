"""The project that a command works on, with paths as the user would type them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.base.errors import ConfigMissingError
from ciwrap.base.files import PENDING_DIR
from ciwrap.golden.test_goldens import GoldenStores
from ciwrap.model.results import ProjectOptions
from ciwrap.project.config import find_config, load_config
from ciwrap.project.settings import DEFAULT_GOLDEN_DIR
from ciwrap.review.project import Project, root_without_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.project.settings import Config


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
    """The project of a configuration. names: of the checks that are asked for, none for all.

    Raises ConfigMissingError, or ConfigError (for an unknown check, too).
    """
    config = load_config(find_config(Path.cwd()) if config_path is None else Path(config_path))
    return project_of(config, config.golden_dir if golden_dir is None else Path(golden_dir), names)


def project_of(config: Config, golden_dir: Path, names: Sequence[str] = ()) -> Project:
    """The project of a configuration that is loaded already. Raises ConfigError as above."""
    wanted = config.checks
    if names:
        wanted = tuple(config.check(name) for name in dict.fromkeys(names))
    checks = tuple(replace(check, root=near(check.root)) for check in wanted)
    return replace(_project(config.root, golden_dir, config), checks=checks)


def load_project_if_any(
    config_path: str | None, golden_dir: str | None, names: Sequence[str] = ()
) -> Project | None:
    """The project; None if there is no configuration, and nothing was asked of one."""
    if not names and load_config_if_any(config_path) is None:
        return None
    return load_project(config_path, golden_dir, names)


def find_project(config_path: str | None, golden_dir: str | None) -> Project:
    """The project around here, with or without a configuration: what waits in it names the golden
    folder. Raises ConfigError, CorruptFileError for a damaged list of what waits, UsageError for a
    golden folder that does not lie in the project's.
    """
    config = load_config_if_any(config_path)
    root = root_without_config(Path.cwd()) if config is None else config.root
    if golden_dir is not None:
        folder = Path(golden_dir)
    else:
        from ciwrap.review.pending import PendingGoldens

        named = PendingGoldens(root / PENDING_DIR).golden_dir()
        own = root / DEFAULT_GOLDEN_DIR if config is None else config.golden_dir
        folder = own if named is None else root / named
    project = _project(root, folder, config, is_said=golden_dir is not None)
    _ = project.golden_dir_text
    return project


def load_config_if_any(config_path: str | None) -> Config | None:
    """The configuration around here, or None. Raises ConfigError, and ConfigMissingError if a path
    is given where there is none.
    """
    if config_path is not None:
        return load_config(Path(config_path))
    try:
        return load_config(find_config(Path.cwd()))
    except ConfigMissingError:
        return None


def _project(
    root: Path, golden_dir: Path, config: Config | None, *, is_said: bool = False
) -> Project:
    """is_said: whether the golden folder was named to the command."""
    is_elsewhere = config is not None and near(golden_dir) != near(config.golden_dir)
    options = ProjectOptions(
        None if config is None or _is_nearest(config) else _typed(config.path),
        _typed(golden_dir) if is_said or is_elsewhere else None,
    )
    return Project(
        root=near(root),
        golden_dir=near(golden_dir),
        goldens=GoldenStores(near(golden_dir), options=str(options)),
        pending_dir=near(root / PENDING_DIR),
        config=config,
        options=options,
    )


def _is_nearest(config: Config) -> bool:
    """Whether a command finds this configuration by itself."""
    try:
        return find_config(Path.cwd()).samefile(config.path)
    except (ConfigMissingError, OSError):
        return False


def _typed(path: Path) -> str:
    """A path as somebody here would type it; results name no folder of the machine."""
    return os.path.relpath(path)
