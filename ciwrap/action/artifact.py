"""Artifacts that others made: fetched, unpacked within limits, and read as what they may be."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ciwrap.action.inputs import ARTIFACT_PREFIX, safe_key
from ciwrap.archive import copy_files, zip_files
from ciwrap.documents import DocumentError, to_record
from ciwrap.documents.load_json import load_json
from ciwrap.errors import CorruptFileError, FileLimitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.action.api import Api
    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner

MOST_ZIP_BYTES = 256 << 20
MOST_ARTIFACTS = 200
_MOST_META_BYTES = 64 << 10

# '' where there is none.
Commit = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40})?$", max_length=40)]


class Meta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an artifact says of itself. Somebody else wrote it: it names, it never decides.

    platform_key: where its goldens belong. sha: the commit that was pushed. commit: what was
    checked out; of a pull request, its merge with the base.
    """

    version: Literal[1] = 1
    platform_key: str
    config: str = ""
    golden_dir: str = ""
    artifact_name: str = ""
    repository: str = ""
    sha: Commit
    commit: Commit


def unpack(data: bytes, folder: Path, name: str) -> None:
    """Unpacks a zip into an empty folder.

    Raises ArtifactError for anything but plain files in plain folders, before any is written, and
    FileLimitError for more than `ciwrap.archive` lets through.
    """
    with zip_files(io.BytesIO(data), name) as files:
        copy_files(files, folder, name)


def read_meta(folder: Path) -> Meta:
    """Raises CorruptFileError for a description that is not one of ours."""
    path = folder / "meta.json"
    try:
        with path.open("rb") as stream:
            meta = to_record(load_json(stream.read(_MOST_META_BYTES)), Meta)
        if meta.platform_key:
            safe_key(meta.platform_key, "platform_key")
    except (OSError, DocumentError, UsageError) as error:
        raise CorruptFileError(f"does not describe an artifact: {error}", file=path) from None
    return meta


def source_folder(inputs: Inputs, runner: Runner) -> Path:
    """The folder that the input `source` names. Raises UsageError if there is none."""
    folder = runner.workspace / inputs.source
    if not folder.is_dir():
        raise UsageError(
            "is not a folder", file=folder, remedy="download the artifacts to it first"
        )
    return folder


def results_below(folder: Path) -> Iterator[Path]:
    """The folders of artifacts in a folder: itself, or those in it, sorted by name."""
    for one in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (one / "result.json").is_file() or (one / "meta.json").is_file():
            yield one


def fetch(api: Api, repository: str, run_id: int, folder: Path) -> list[Path]:
    """Unpacks all of our artifacts of a workflow run, each into a folder of its own name."""
    path = f"/repos/{repository}/actions/runs/{run_id}/artifacts"
    newest: dict[str, Any] = {}
    for found in api.pages(path, "artifacts"):
        name = str(found.get("name", ""))
        if found.get("expired") or not _is_ours(name):
            continue
        if name not in newest or int(newest[name]["id"]) < int(found["id"]):
            newest[name] = found
        if len(newest) > MOST_ARTIFACTS:
            raise FileLimitError(f"the run has more than {MOST_ARTIFACTS} artifacts")
    folders = []
    for name, found in sorted(newest.items()):
        data = api.download(
            f"/repos/{repository}/actions/artifacts/{int(found['id'])}/zip", MOST_ZIP_BYTES
        )
        target = folder / name
        target.mkdir(parents=True)
        unpack(data, target, name)
        folders.append(target)
    return folders


def _is_ours(name: str) -> bool:
    if name != ARTIFACT_PREFIX and not name.startswith(f"{ARTIFACT_PREFIX}-"):
        return False
    try:
        return safe_key(name, "name") == name
    except UsageError:
        return False
