"""Pending goldens out of an artifact that somebody else's run left: a folder or a .zip.

Nothing in it is trusted. Only files of the kinds that ciwrap itself writes are copied into a
folder of our own; whatever else lies below its `pending.json` is refused. What the goldens hold is
verified when they are read.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Container, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.base.archive import copy_files, folder_files, refused, zip_files
from ciwrap.base.errors import ArtifactError, CiwrapError, PendingConflictError
from ciwrap.base.repository import DIRTY, git_commit
from ciwrap.golden.places import BINARY_SUFFIX, MANIFEST_SUFFIX, SHARED_SUFFIX, STAGED_SUFFIX
from ciwrap.review.change import VariableChange
from ciwrap.review.pending import INDEX_NAME, RESULT_SUFFIX, PendingGoldens
from ciwrap.snapshot.store import GOLDEN_FOLDER, NAME

if TYPE_CHECKING:
    from ciwrap.base.archive import Files
    from ciwrap.review.accept import PendingChange
    from ciwrap.review.project import Project

_SUFFIXES = (
    *(MANIFEST_SUFFIX, BINARY_SUFFIX, RESULT_SUFFIX),
    *(SHARED_SUFFIX, SHARED_SUFFIX + STAGED_SUFFIX),
)
WIDER, LESS_EVIDENCE, REMOVED = "allow-wider", "allow-less-evidence", "allow-removed"
# What has to be said for each way in which somebody else's golden checks less than ours.
ALLOWED_WORDS = (WIDER, LESS_EVIDENCE, REMOVED)
# Left by whatever was running when the folder was packed; of no use, and harmless.
_PASSED_OVER = frozenset({".ciwrap.lock"})


@contextlib.contextmanager
def opened(source: Path) -> Iterator[PendingGoldens]:
    """The artifact's pending goldens, copied into a temporary folder that ends with the block.

    Raises ArtifactError for anything that ciwrap does not write itself, FileLimitError for more of
    it than is ever needed.
    """
    with tempfile.TemporaryDirectory(prefix="ciwrap-") as folder:
        target = Path(folder) / "pending"
        target.mkdir()
        try:
            if source.is_dir():
                _take(folder_files(source), target, source)
            elif source.exists() and not source.is_file():
                raise ArtifactError("is neither a folder nor a file", file=source)
            else:
                with source.open("rb") as stream, zip_files(stream, source) as files:
                    _take(files, target, source)
        except OSError as error:
            raise ArtifactError(
                f"cannot be read: {error.strerror or error}", file=source
            ) from error
        try:
            yield PendingGoldens(target)
        except CiwrapError as error:
            _name_in(source, target, error)
            raise


def _name_in(source: Path, target: Path, error: CiwrapError) -> None:
    """Has an error name a file as it is called in the artifact, not in the copy."""

    def named(text: str | None) -> str | None:
        return None if text is None else text.replace(str(target), str(source))

    error.file, error.remedy = named(error.file), named(error.remedy)
    error.message = error.message.replace(str(target), str(source))


def _take(files: Files, target: Path, source: Path) -> None:
    """Copies what lies beside and below `pending.json`; other parts of the artifact stay out."""
    indexes = [name for name in files if PurePosixPath(name).name == INDEX_NAME]
    if len(indexes) != 1:
        raise ArtifactError(
            f"holds {len(indexes) or 'no'} {INDEX_NAME}, not one",
            file=source,
            remedy="give the folder that `ciwrap` left in .ciwrap/pending, or an archive of it",
        )
    prefix = indexes[0].removesuffix(INDEX_NAME)
    taken = {}
    for name, open_file in sorted(files.items()):
        inner = name.removeprefix(prefix)
        if not name.startswith(prefix) or PurePosixPath(inner).name in _PASSED_OVER:
            continue
        folder, _, own = inner.rpartition("/")
        is_snapshot = folder == GOLDEN_FOLDER and NAME.fullmatch(own) is not None
        if inner != INDEX_NAME and not inner.endswith(_SUFFIXES) and not is_snapshot:
            raise refused(name, "is not a file of a pending golden", source)
        taken[inner] = open_file
    copy_files(taken, target, source)


@contextlib.contextmanager
def project_with(project: Project, source: str, commit: str | None) -> Iterator[Project]:
    """The project with the pending goldens of an artifact instead of its own.

    commit: what the caller says they were made from; None: it has to be what is checked out here.
    Raises as `opened` does, and PendingConflictError.
    """
    with opened(Path(source)) as pending:
        named = pending.golden_dir()
        if named != project.golden_dir_text:
            raise PendingConflictError(
                f"its goldens are for the folder {named!r}, those of this project lie in"
                f" {project.golden_dir_text!r}",
                file=source,
                remedy="name the folder with --golden-dir, if it is the right one",
            )
        _check_commits(project, pending, source, commit)
        yield replace(project, pending_dir=pending.folder, is_own=False)


def refuse_less(looked: Iterable[PendingChange], allowed: Container[str]) -> None:
    """Raises ArtifactError if a change makes goldens check less, and nobody has said the word.

    allowed: the words that were said, of `ALLOWED_WORDS`.
    """
    for one in looked:
        for change in one.change.changes:
            for word, problem in _less(change):
                if word not in allowed:
                    raise ArtifactError(
                        problem,
                        file=one.pending.path,
                        variable=change.identity.text,
                        remedy=f"if that is meant, add --{word}",
                    )


def _less(change: VariableChange) -> Iterator[tuple[str, str]]:
    if change.is_bound_wider:
        yield WIDER, f"it widens a bound: {change.bound_change}"
    if change.lowered_evidence is not None:
        yield LESS_EVIDENCE, f"it keeps less evidence: {change.lowered_evidence}"
    if change.new is None:
        yield REMOVED, "it takes the variable out of the golden"


def _check_commits(
    project: Project, pending: PendingGoldens, source: str, commit: str | None
) -> None:
    here = git_commit(project.root)
    wanted = commit if commit is not None else here
    for golden in pending.all():
        made_from = golden.origin.commit
        if _is_same_commit(made_from, wanted, whole=commit is None):
            continue
        other = f"checked out here is {here or '(none)'}"
        if commit is not None:
            other = f"--commit {commit} is not the beginning of that, of 7 digits or more"
        raise PendingConflictError(
            f"it was made from commit {made_from or '(none)'}, {other}",
            file=source,
            variable=golden.check,
            remedy="check that commit out, or name it with --commit if you want these numbers",
        )


def _is_same_commit(made_from: str | None, wanted: str | None, *, whole: bool) -> bool:
    """Whether they name one commit; changes that were not committed are no part of it."""
    if made_from is None or wanted is None:
        return made_from is wanted
    plain, asked = made_from.removesuffix(DIRTY), wanted.removesuffix(DIRTY).lower()
    if whole:
        return plain == asked
    return len(asked) >= 7 and plain.startswith(asked)
