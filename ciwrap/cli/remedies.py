"""Remedies as `ciwrap compare` takes them: what errors name by keys of ciwrap.yaml, as options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.model import CheckResult

_KEY = re.compile(r"(?<!ciwrap\.yaml: )'([a-z_]+)'")
_SET = re.compile(r"'([a-z_]+): ([\w-]+)'")
_OTHER_NAMES = {
    "format": "--format",
    "formats": "--format",
    "options": "--option",
    "variables": "--bound",
}


def with_options(check: CheckResult, options: Mapping[str, str]) -> CheckResult:
    """The result, its errors naming options. options: the command's, by the keys they stand for."""
    known = {**options, **_OTHER_NAMES}
    messages = tuple(replace(one, text=in_options(one.text, known)) for one in check.messages)
    variables = tuple(
        one if one.reason is None else replace(one, reason=in_options(one.reason, known))
        for one in check.variables
    )
    return replace(check, messages=messages, variables=variables)


def in_options(text: str, options: Mapping[str, str]) -> str:
    """An error's text. Its remedy stands behind the last semicolon; only there a quoted word is a
    key for certain.
    """
    problem, semicolon, remedy = text.rpartition("; ")
    remedy = _KEY.sub(lambda found: options.get(found[1], found[0]), remedy)
    return _SET.sub(lambda found: _as_option(found, options), problem + semicolon + remedy)


def _as_option(found: re.Match[str], options: Mapping[str, str]) -> str:
    key, value = found.groups()
    from ciwrap.project.schema import OPTIONS

    if key == "format":
        return f"--format 'GLOB={value}'"
    if key in OPTIONS.keys:
        return f"--option {key}={value}"
    return f"{options[key]} {value}" if key in options else found[0]
