"""The project that a command works on, with paths as the user would type them.

Other configurations of the repository may keep their goldens in the same folder.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import CiwrapError, ConfigError, ConfigMissingError, UsageError
from ciwrap.base.files import PENDING_DIR, WORK_DIR
from ciwrap.base.repository import ask_git, left_out
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStore, GoldenStores
from ciwrap.model.results import ProjectOptions
from ciwrap.project.config import find_config, find_config_here, load_config
from ciwrap.project.schema import read_document
from ciwrap.project.settings import DEFAULT_GOLDEN_DIR, Check, Config

if TYPE_CHECKING:
    from ciwrap.review.pending import PendingGoldens


def root_without_config(here: Path) -> Path:
    """The folder of a project without a ciwrap.yaml: where work was done, or the repository's."""
    for folder in (here, *here.parents):
        if (folder / WORK_DIR).is_dir() or (folder / ".git").exists():
            return folder
    return here


class Project(Struct, frozen=True, kw_only=True, dict=True):
    """A folder with goldens.

    root: the folder of ciwrap.yaml; without one, of the repository. config: None without a
    ciwrap.yaml. checks: those of the configuration that are asked for. pending_dir: where goldens
    wait to be accepted. keeps_pending: as is_kept of a `GoldenStore`. is_own: whether they were
    made here, and not in somebody else's run. options: what a command needs to work on
    this very project.
    """

    root: Path
    golden_dir: Path
    goldens: GoldenStores
    pending_dir: Path
    keeps_pending: bool = False
    config: Config | None = None
    checks: tuple[Check, ...] = ()
    is_own: bool = True
    options: ProjectOptions = ProjectOptions()

    @property
    def own_config(self) -> Config:
        """The configuration of a project that has one."""
        assert self.config is not None
        return self.config

    @cached_property
    def pending(self) -> PendingGoldens:
        """The goldens that wait to be accepted. Most commands never ask for them."""
        from ciwrap.review.pending import PendingGoldens

        return PendingGoldens(self.pending_dir, is_kept=self.keeps_pending)

    @contextlib.contextmanager
    def indexed(self) -> Iterator[None]:
        """Brings the list of what waits up to date when the block ends, also if an error ends it.

        Raises WriteFailedError, LockBusyError.
        """
        try:
            yield
        except CiwrapError:
            # The list is made anew each time; what ended the block is to be told.
            with contextlib.suppress(CiwrapError):
                self.pending.write_index(self.golden_dir_text)
            raise
        self.pending.write_index(self.golden_dir_text)

    @property
    def store(self) -> GoldenStore:
        """The goldens of the configuration's checks."""
        return self.goldens.at(Place("", ""))

    @property
    def golden_dir_text(self) -> str:
        """The golden folder relative to the project's, with '/'.

        Raises UsageError unless it lies in the project's, links resolved: what somebody else has
        made is never accepted into another place.
        """
        folder, root = self.golden_dir.resolve(), self.root.resolve()
        if not folder.is_relative_to(root):
            raise UsageError(
                f"the golden folder must lie in the project's, {self.root}", file=self.golden_dir
            )
        as_given = Path(os.path.relpath(self.golden_dir, self.root))
        is_below = os.pardir not in as_given.parts
        return (as_given if is_below else folder.relative_to(root)).as_posix()


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
    config = load_config(find_config_here() if config_path is None else Path(config_path))
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


def load_config_if_any(config_path: str | None, *, needs_checks: bool = True) -> Config | None:
    """The configuration around here, or None. needs_checks: whether one without any is refused.
    Raises ConfigError, and ConfigMissingError if a path is given where there is none.
    """
    if config_path is not None:
        return load_config(Path(config_path), needs_checks=needs_checks)
    try:
        return load_config(find_config_here(), needs_checks=needs_checks)
    except ConfigMissingError:
        return None


def _project(
    root: Path, golden_dir: Path, config: Config | None, *, is_said: bool = False
) -> Project:
    """is_said: whether the golden folder was named to the command."""
    is_elsewhere = config is not None and near(golden_dir) != near(config.golden_dir)
    try:
        # Whether a command finds this configuration by itself.
        is_nearest = config is None or find_config(Path.cwd()).samefile(config.path)
    except (ConfigMissingError, OSError):
        is_nearest = False
    options = ProjectOptions(
        None if config is None or is_nearest else _typed(config.path),
        _typed(golden_dir) if is_said or is_elsewhere else None,
    )
    return Project(
        root=near(root),
        golden_dir=near(golden_dir),
        goldens=GoldenStores(near(golden_dir), options=options),
        pending_dir=near(root / PENDING_DIR),
        config=config,
        options=options,
    )


def _typed(path: Path) -> str:
    """A path as somebody here would type it; results name no folder of the machine."""
    return os.path.relpath(path)


_SUFFIXES = (".yaml", ".yml")
_PATTERNS = tuple(f"*{suffix}" for suffix in _SUFFIXES)
# A file without such a line is no configuration, and is not read any further.
_HAS_CHECKS = re.compile(rb"^[\"']?checks[\"']?[ \t]*:", re.MULTILINE)
_MOST_BYTES = 4 << 20


def checks_of_others(project: Project) -> set[str]:
    """Names of checks whose goldens another configuration keeps in the project's golden folder.

    Looked at are the YAML files that git knows of or could know of, and those in the folders
    above the golden folder, up to the repository's. A check counts whether or not its configuration
    could be used. Raises ConfigError for one of which nobody can tell, or that a sparse checkout
    leaves out.
    """
    folders = {project.golden_dir.resolve(), project.own_config.golden_dir.resolve()}
    names: set[str] = set()
    _refuse_left_out(project.root)
    for found in map(read_document, _candidates(project)):
        value = found.value if isinstance(found.value, dict) else {}
        said = value.get("golden_dir", DEFAULT_GOLDEN_DIR)
        own = (found.path.parent / said).resolve() if isinstance(said, str) else None
        # Also one above: with --golden-dir goldens of one kind of machine are kept in one below.
        if own is not None and any(one.is_relative_to(own) for one in folders):
            names |= _names_in(value.get("checks"))
    return names


def _names_in(checks: object) -> set[str]:
    if isinstance(checks, dict):
        return set(checks)
    rows = checks if isinstance(checks, list) else []
    return {str(row["name"]) for row in rows if isinstance(row, dict) and "name" in row}


def _candidates(project: Project) -> list[Path]:
    found = {path.resolve() for path in _known_to_git(project.root)}
    for folder in project.golden_dir.resolve().parents:
        found |= {path.resolve() for pattern in _PATTERNS for path in folder.glob(pattern)}
        if (folder / ".git").exists():
            break
    found.discard(project.own_config.path.resolve())
    return sorted(filter(_may_be_one, found))


def _known_to_git(root: Path) -> Iterator[Path]:
    top = ask_git(root, "rev-parse", "--show-toplevel")
    if top is None:
        return
    kinds = ("--cached", "--others", "--exclude-standard")
    listed = ask_git(Path(top), "ls-files", "-z", *kinds, "--", *_PATTERNS)
    for name in (listed or "").split("\0"):
        if name:
            yield Path(top, name)


def _refuse_left_out(root: Path) -> None:
    """Raises ConfigError where a sparse checkout leaves out what may be a configuration."""
    said = ask_git(root, "rev-parse", "--show-toplevel")
    top = root if said is None else Path(said)
    for name in left_out(top):
        if PurePosixPath(name).suffix in _SUFFIXES:
            raise ConfigError(
                "the sparse checkout leaves this file out, which may be a configuration",
                file=top / name,
                remedy="have it checked out: git sparse-checkout add",
            )


def _may_be_one(path: Path) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return False
        return _HAS_CHECKS.search(path.read_bytes()) is not None
    except OSError:
        return True  # whoever reads it tells why it cannot be read
