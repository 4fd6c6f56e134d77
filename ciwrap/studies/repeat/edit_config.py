"""Puts error bounds into the text of a ciwrap.yaml, and leaves every other character as it is.

PyYAML gives the places of the nodes. The new text is read again and compared with the old one: an
edit that would change anything but these bounds is refused.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import yaml
from msgspec import Struct

from ciwrap.base.errors import ConfigError
from ciwrap.golden.manifest import scalar
from ciwrap.model import BOUND_PARTS, ErrorBound, VariableId
from ciwrap.model.repeat_result import BoundFit, RepeatResult
from ciwrap.project.config import load_text
from ciwrap.project.schema import parse_document, read_text
from ciwrap.project.settings import is_glob
from ciwrap.studies.repeat.bounds import bound_reason, bound_text

_OUR_COMMENT = re.compile(
    r"(\d+ x largest of \d+ differences|three digits are left here), \d{4}-\d\d-\d\d"
)


class BoundEdit(Struct, frozen=True):
    """A bound to write for one variable of a check, by its exact name. comment: why it is that."""

    check: str
    variable: str
    bound: ErrorBound
    comment: str

    @property
    def setting(self) -> str:
        """`atol: 2e-6`."""
        return bound_text(self.bound)


class IterationEdit(Struct, frozen=True):
    """Up to which iteration a check is to compare."""

    check: str
    until: int
    comment: str


def edited(
    text: str, edits: Sequence[BoundEdit], path: Path, iterations: Sequence[IterationEdit] = ()
) -> str:
    """The text with the bounds in it, each with its comment at the end of its line.

    path: of the file, for messages. Raises ConfigError for a file that cannot be read, or whose
    form leaves no place for them.
    """
    load_text(text, path)  # which refuses what cannot be read
    new = text
    for edit in edits:
        if is_glob(edit.variable):
            raise ConfigError(
                f"the name {edit.variable!r} would be a pattern there, which matches others, too",
                file=path,
            )
        new = _Editor(new).put(edit)
    for one in iterations:
        new = _Editor(new).put_iteration(one)
    _refuse_other_changes(text, new, edits, iterations, path)
    return new


def _refuse_other_changes(
    before: str,
    text: str,
    edits: Sequence[BoundEdit],
    iterations: Sequence[IterationEdit],
    path: Path,
) -> None:
    try:
        after = load_text(text, path)
        is_right = all(
            after.check(one.check).settings_for(VariableId(one.variable)).bound == one.bound
            for one in edits
        ) and all(after.check(one.check).until_iteration == one.until for one in iterations)
    except ConfigError:
        is_right = False
    others = [_rest(one, edits, iterations, path) for one in (before, text)]
    if not is_right or others[0] != others[1]:
        raise ConfigError(
            "is written in a form that bounds cannot be put into",
            file=path,
            remedy="write those that are suggested yourself, under 'variables' of the check",
        )


def _rest(
    text: str, edits: Sequence[BoundEdit], iterations: Sequence[IterationEdit], path: Path
) -> str:
    """All that a configuration says, in its order, but these bounds and last iterations."""
    # Through JSON, so that what stands at two places by an anchor is two things.
    said = json.loads(json.dumps(parse_document(text, path).value, default=str))
    found = said["checks"]
    checks = found if isinstance(found, dict) else {one.get("name"): one for one in found}
    for edit in edits:
        variables = checks[edit.check].get("variables") or {}
        own = variables.get(edit.variable) or {}
        for part in BOUND_PARTS:
            own.pop(part, None)
        if not own:
            variables.pop(edit.variable, None)
        if not variables:
            checks[edit.check].pop("variables", None)
    for one in iterations:
        checks[one.check].pop("until_iteration", None)
    return json.dumps(said)


class _Editor:
    """One text, its nodes, and what one edit makes of it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def put(self, edit: BoundEdit) -> str:
        check = self._check(edit.check)
        entry = f"{scalar(edit.variable)}: {{{edit.setting}}}"
        variables = None if check is None else _value(check, "variables")
        if check is None:
            return self._text
        if isinstance(variables, yaml.MappingNode):
            own = _value(variables, edit.variable)
            if isinstance(own, yaml.MappingNode):
                return self._in_entry(own, edit)
            return self._append(variables, entry, edit.comment)
        if check.flow_style:
            return self._append(check, f"variables: {{{entry}}}", edit.comment)
        indent = " " * check.start_mark.column
        text = f"variables:{self._newline}{indent}  {entry}"
        return self._append(check, text, edit.comment)

    def put_iteration(self, edit: IterationEdit) -> str:
        check = self._check(edit.check)
        if check is None:
            return self._text
        setting = f"until_iteration: {edit.until}"
        for key, value in check.value:
            if key.value == "until_iteration":
                start = key.start_mark.index
                text = f"{self._text[:start]}{setting}{self._text[_end(value) :]}"
                return _with_comment(text, start + len(setting), edit.comment)
        return self._append(check, setting, edit.comment)

    def _check(self, name: str) -> yaml.MappingNode | None:
        root = yaml.compose(self._text, Loader=yaml.SafeLoader)
        checks = _value(root, "checks") if isinstance(root, yaml.MappingNode) else None
        if isinstance(checks, yaml.SequenceNode):
            for one in checks.value:
                own = _value(one, "name")
                if isinstance(own, yaml.ScalarNode) and own.value == name:
                    return one if isinstance(one, yaml.MappingNode) else None
            return None
        found = _value(checks, name)
        return found if isinstance(found, yaml.MappingNode) else None

    def _append(self, mapping: yaml.MappingNode, entry: str, comment: str) -> str:
        """The text with one more entry at the end of a mapping."""
        if mapping.flow_style:
            brace = mapping.end_mark.index - 1
            end = _end(mapping.value[-1][1]) if mapping.value else brace
            separator = ", " if mapping.value else ""
            text = f"{self._text[:end]}{separator}{entry}{self._text[end:]}"
            return _with_comment(text, end + len(separator) + len(entry), comment)
        line_end = self._line_end(_end(mapping))
        indent = " " * mapping.start_mark.column
        new = f"{self._newline}{indent}{entry}"
        text = f"{self._text[:line_end]}{new}{self._text[line_end:]}"
        return _with_comment(text, line_end + len(new), comment)

    def _in_entry(self, own: yaml.MappingNode, edit: BoundEdit) -> str:
        """The text with the bound of an entry that is there replaced, or added to it."""
        parts = [(key, value) for key, value in own.value if key.value in BOUND_PARTS]
        if not parts and own.flow_style:
            return self._append(own, edit.setting, edit.comment)
        if not parts:
            start = own.start_mark.index
            indent = " " * own.start_mark.column
            new = f"{edit.setting}{self._newline}{indent}"
            text = f"{self._text[:start]}{new}{self._text[start:]}"
            return _with_comment(text, start + len(edit.setting), edit.comment)
        text = self._text
        for key, value in reversed(parts[1:]):
            text = self._without(text, own, key, value)
        key, value = parts[0]
        start = key.start_mark.index
        text = f"{text[:start]}{edit.setting}{text[_end(value) :]}"
        return _with_comment(text, start + len(edit.setting), edit.comment)

    def _without(self, text: str, own: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> str:
        """The text without one entry of a mapping that has others before it."""
        start, end = key.start_mark.index, _end(value)
        if own.flow_style:
            return text[: text.rindex(",", 0, start)] + text[end:]
        line_start = text.rindex("\n", 0, start)
        return text[:line_start].removesuffix("\r") + text[self._line_end(end) :]

    def _line_end(self, position: int) -> int:
        """Where the line ends that a position is in: before its line break."""
        found = self._text.find("\n", position)
        if found < 0:
            return len(self._text)
        return found - 1 if self._text[found - 1] == "\r" else found


def _with_comment(text: str, position: int, comment: str) -> str:
    """The text with a comment at the end of the line of `position`; an earlier one of ours goes."""
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    line = text[position:end]
    carriage = "\r" if line.endswith("\r") else ""
    line = line.removesuffix("\r")
    rest, sign, old = line.partition(" #")
    kept = _OUR_COMMENT.sub("", old).strip().strip(";").strip() if sign else ""
    said = f"{kept}; {comment}" if kept else comment
    return f"{text[:position]}{rest.rstrip()}  # {said}{carriage}{text[end:]}"


def _value(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == name:
            found: yaml.Node = value
            return found
    return None


def _end(node: yaml.Node) -> int:
    """Where a node's own text ends; a block's end mark is where the next one begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    index: int = node.end_mark.index
    return index


class ConfigChange(Struct, frozen=True):
    """The new text of a configuration, and what is different in it, as a unified diff."""

    text: str
    diff: tuple[str, ...]


def changed_config(result: RepeatResult, path: Path) -> ConfigChange | None:
    """The configuration with the suggested bounds where the present ones do not fit; None if there
    are none.

    Everything must have been compared: what a run would have shown is not known. Raises ConfigError
    as `edited` does.
    """
    assert not result.has_failed
    today = datetime.now(timezone.utc).date().isoformat()
    edits = [
        BoundEdit(
            one.check,
            one.name,
            one.suggested_bound.bound,
            f"{bound_reason(one.suggested_bound)}, {today}",
        )
        for one in result.variables
        if one.suggested_bound is not None
        and one.present_fit is not BoundFit.FITS
        and one.suggested_bound.bound != one.present_bound
    ]
    iterations = _iterations(result, today)
    text = read_text(path)
    new = edited(text, edits, path, iterations)
    if new == text:
        return None
    lines = difflib.unified_diff(
        text.splitlines(), new.splitlines(), path.name, f"{path.name} (new)", n=2, lineterm=""
    )
    return ConfigChange(new, tuple(lines))


def _iterations(result: RepeatResult, today: str) -> list[IterationEdit]:
    """Of each check with variables that grow, the last iteration that is good for all of them;
    nothing where all that was compared is good: what a longer run would show is not known.
    """
    until: dict[str, int] = {}
    for one in result.variables:
        if one.compare_until is not None and not one.is_compared_to_the_end:
            until[one.check] = min(until.get(one.check, one.compare_until), one.compare_until)
    return [
        IterationEdit(check, last, f"three digits are left here, {today}")
        for check, last in until.items()
    ]
