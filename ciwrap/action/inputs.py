"""The action's inputs, read from the environment and checked before anything is done with them."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ciwrap.config import CONFIG_NAME
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "CIWRAP_INPUT_"
MEASURES = ("repeat", "time", "trend")
MODES = ("check", "update", "merge", "comment", "accept", *MEASURES)
NO_COMMAND = "none"
ARTIFACT_PREFIX = "ciwrap"

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_LONGEST_CONFIG = 40
_PLAIN = re.compile(r"[A-Za-z0-9_./-]*")
# As the conditions in action.yml read them.
_FLAGS = {"true": True, "false": False, "": False}


class FailOn(str, Enum):
    """From which status on the gate fails the job."""

    DIFFER = "differ"
    NOT_COMPARABLE = "not-comparable"
    ERROR = "error"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Inputs:
    """See action.yml for what each input means; '' or () for one that is not given."""

    mode: str = "check"
    config: str = ""
    golden_dir: str = ""
    platform_key: str = ""
    checks: tuple[str, ...] = ()
    run: str = ""
    report: str = ""
    fail_on: FailOn = FailOn.DIFFER
    fail_on_wider: bool = False
    upload: bool = True
    artifact_name: str = ARTIFACT_PREFIX
    source: str = ""
    pattern: str = ""
    reason: str = ""
    expect: int | None = None
    pull_request: bool = False
    workflow: str = ""
    arguments: str = ""


def read_inputs(environment: Mapping[str, str] | None = None) -> Inputs:
    """The inputs of this step. Raises UsageError for one that has no meaning."""
    given = os.environ if environment is None else environment

    def text(name: str) -> str:
        return given.get(PREFIX + name.upper().replace("-", "_"), "").strip()

    mode = text("mode") or "check"
    if mode not in MODES:
        raise _wrong("mode", mode, f"one of {', '.join(MODES)}")
    key = safe_key(text("platform-key"), "platform-key") if text("platform-key") else ""
    pull_request = _flag("pull-request", text("pull-request"))
    if mode == "update" and pull_request and not text("source"):
        # A program that runs in the job of the token can read it from another process.
        raise UsageError(
            "mode update with pull-request needs the input source: no program is run in the job"
            " that holds the token",
            remedy="use two jobs, as examples/workflows/refresh.yml does",
        )
    return Inputs(
        mode=mode,
        config=text("config"),
        golden_dir=text("golden-dir"),
        platform_key=key,
        checks=tuple(text("checks").split()),
        run=text("run"),
        report=text("report"),
        fail_on=_fail_on(text("fail-on")),
        fail_on_wider=_flag("fail-on-wider", text("fail-on-wider")),
        upload=_flag("upload", text("upload") or "true"),
        artifact_name=safe_key(
            text("artifact-name") or _default_name(key, text("config")), "artifact-name"
        ),
        source=text("source"),
        pattern=text("pattern"),
        reason=text("reason"),
        expect=_count("expect", text("expect")),
        pull_request=pull_request,
        workflow=text("workflow"),
        arguments=text("arguments"),
    )


def safe_key(text: str, name: str) -> str:
    """A text that may be a folder, an artifact and a branch name. Raises UsageError."""
    if not _KEY.fullmatch(text) or ".." in text or text.endswith((".", ".lock")):
        raise _wrong(name, text, "letters, digits, '.', '_' and '-', at most 100 of them")
    return text


def _default_name(key: str, config: str) -> str:
    """The artifact's name: another one for each platform and each configuration of a workflow."""
    own = "" if config in ("", CONFIG_NAME) else config.removesuffix(f"/{CONFIG_NAME}")
    is_told = _PLAIN.fullmatch(own) is not None and ".." not in own and len(own) <= _LONGEST_CONFIG
    own = re.sub(r"[^A-Za-z0-9_.-]+", "-", own).replace("..", "-").strip(".-")
    if not is_told:  # others would be called the same
        digest = hashlib.sha256(config.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        own = "-".join(part for part in (own[-_LONGEST_CONFIG:].lstrip(".-"), digest) if part)
    return "-".join(part for part in (ARTIFACT_PREFIX, key, own) if part)


def _fail_on(text: str) -> FailOn:
    try:
        return FailOn(text or "differ")
    except ValueError:
        words = ", ".join(one.value for one in FailOn)
        raise _wrong("fail-on", text, f"one of {words}") from None


def _flag(name: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise _wrong(name, text, "true or false")
    return _FLAGS[text.lower()]


def _count(name: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise _wrong(name, text, "a whole number")
    return int(text)


def _wrong(name: str, text: str, wanted: str) -> UsageError:
    return UsageError(f"the input {name} cannot be {text[:200]!r}", remedy=f"give {wanted}")
