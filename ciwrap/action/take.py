"""Pending goldens of artifacts, accepted into a checkout, and what that changes in words."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.action.artifact import read_meta
from ciwrap.action.runner import plain_log
from ciwrap.config.loading import find_config, load_config
from ciwrap.documents import DocumentError, to_record
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.model import VariableId
from ciwrap.report.document import from_document, load_document
from ciwrap.report.markdown import escaped
from ciwrap.report.text import bytes_text, percent_text, plural
from ciwrap.review.accept_document import AcceptDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap.action.inputs import Inputs
    from ciwrap.review.accept_document import AcceptedCheck, AcceptedVariable

_MOST_ROWS = 100
_MOST_NAMES = 3
_WRITTEN = frozenset({"created", "replaced"})


class NothingMeantError(Exception):
    """A pattern that means none of the pending goldens."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was accepted. documents: of `ciwrap accept`, by platform key."""

    golden_dirs: tuple[Path, ...]
    documents: tuple[tuple[str, AcceptDocument], ...]

    @property
    def names(self) -> list[str]:
        found = [
            f"{key}/{check.name}" if key else check.name
            for key, document in self.documents
            for check in document.checks
            if check.status in _WRITTEN
        ]
        return list(dict.fromkeys(found))

    @property
    def title(self) -> str:
        """For a commit's first line."""
        names = self.names
        if len(names) > _MOST_NAMES:
            return plural(len(names), "check")
        return ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in names) or "none"

    @property
    def markdown(self) -> str:
        """What each golden was and is, for reviewers."""
        lines: list[str] = []
        for key, document in self.documents:
            for check in document.checks:
                lines += _check_lines(key, check)
        return "\n".join(lines) + "\n"


def take_pending(
    folders: Sequence[Path],
    root: Path,
    inputs: Inputs,
    reason: str,
    pattern: str = "",
    allowed: Sequence[str] = (),
) -> Taken:
    """Accepts the pending goldens of artifacts into the checkout at `root`; runs nothing of it.

    The folders' own descriptions say which platform's goldens they are, nothing else. allowed: in
    which ways goldens may check less, of `ciwrap.review.pending_artifact.ALLOWED_WORDS`. Raises
    UsageError for a golden folder outside of `root`, NotComparableError where nothing could be
    accepted.
    """
    documents, golden_dirs, unmatched = [], [], []
    for folder in folders:
        meta = read_meta(folder)
        key = meta.platform_key
        golden_dir = golden_dir_below(root, inputs, key)
        golden_dirs.append(golden_dir)
        more = ["--from", str(folder / "pending"), "--commit", meta.commit]
        more += [f"--{word}" for word in allowed]
        # After `--`, a pattern is no option, whatever it begins with.
        more += ["--", pattern] if pattern else []
        try:
            documents.append((key, accept(root, inputs, golden_dir, more, reason)))
        except NothingMeantError as error:
            # A pattern may mean goldens of some platforms alone, but not of none.
            unmatched.append(error)
    if unmatched and not documents:
        raise UsageError(str(unmatched[0]))
    return Taken(tuple(golden_dirs), tuple(documents))


def golden_dir_below(root: Path, inputs: Inputs, key: str) -> Path:
    """The folder of the goldens, which has to be within the checkout, links resolved."""
    path = root / inputs.config if inputs.config else find_config(root)
    base = root / inputs.golden_dir if inputs.golden_dir else load_config(path).golden_dir
    folder = base / key if key else base
    if not folder.resolve().is_relative_to(root.resolve()):
        raise UsageError("the goldens' folder is outside of the repository", file=folder)
    return folder


def accept(
    root: Path, inputs: Inputs, golden_dir: Path | None, more: Iterable[str], reason: str
) -> AcceptDocument:
    """`ciwrap accept` in the checkout; its document. Raises NotComparableError."""
    options = ["--config", inputs.config] if inputs.config else []
    if golden_dir is not None:
        options += ["--golden-dir", str(golden_dir)]
    with tempfile.TemporaryDirectory() as name:
        target = Path(name, "accept.json")
        command = [sys.executable, "-I", "-m", "ciwrap", "accept", "--json", str(target)]
        with plain_log("ciwrap accept"):
            done = subprocess.run(
                [*command, *options, "--reason", reason, *more],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                check=False,
            )
        try:
            document = load_document(target) if target.is_file() else None
            if done.returncode == 0:
                return to_record(document, AcceptDocument)
            messages = () if document is None else from_document(document).messages
        except (OSError, DocumentError) as error:
            raise NotComparableError(f"`ciwrap accept` left no document: {error}") from None
    said = "; ".join(one.text for one in messages)
    if any(one.slug == UsageError.slug for one in messages) and "--" in list(more):
        raise NothingMeantError(said)
    raise NotComparableError(
        f"nothing was accepted: {said or f'`ciwrap accept` ended with {done.returncode}'}"
    )


def _check_lines(key: str, check: AcceptedCheck) -> list[str]:
    name = escaped(f"{key}/{check.name}" if key else check.name)
    sizes = [bytes_text(count) for count in (check.old_bytes, check.new_bytes) if count]
    lines = [f"**{name}**: {check.status}, {' -> '.join(sizes)}", ""]
    loud = [one for one in check.variables if one.change not in ("equal", "within")]
    if loud:
        lines += ["| variable | change | |", "|---|---|---|"]
        lines += [_variable_row(variable) for variable in loud[:_MOST_ROWS]]
        if len(loud) > _MOST_ROWS:
            lines += ["", f"+{len(loud) - _MOST_ROWS} more"]
        lines.append("")
    return lines


def _variable_row(variable: AcceptedVariable) -> str:
    identity = VariableId(variable.name, variable.iteration, variable.rank)
    moved = variable.moved
    notes = []
    if variable.bound_widened:
        notes.append("**bound WIDER**")
    if variable.evidence_lowered:
        notes.append("**less evidence**")
    if variable.new is None:
        notes.append("**no longer checked**")
    if moved is not None and moved.differing_count:
        notes.append(f"{moved.differing_count} of {moved.element_count} elements moved")
    share = None if moved is None else moved.max_bound_share
    if share is not None and math.isfinite(share):
        notes.append(
            f"up to {percent_text(share)} of the old bound"
            if share <= 1
            else f"up to {share:.3g} x the old bound"
        )
    elif moved is not None and moved.reason:
        notes.append(escaped(moved.reason))
    return f"| {escaped(identity.text)} | {escaped(variable.change)} | {', '.join(notes)} |"
