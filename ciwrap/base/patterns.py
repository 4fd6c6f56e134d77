"""Patterns of names and of paths.

Those of paths are globs and templates at once: `out/iter_{iteration:d}/*/{name}.npy`.
`*` and `?` stay within one path component, `[...]` is a set of characters, `**/` crosses any number
of folders and `**` anything. `{iteration:d}` and `{rank:d}` stand for digits, and so does `{rank}`;
`{iteration}` also for a time such as 0.0125 or 1e-05. `{name}` stands for one or more characters of
one component, `{*}` for what differs from run to run, as the number of a job does: within one
component, and left out of names.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from ciwrap.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = r"[0-9]{1,18}"
_FIELDS = {"iteration": _DIGITS, "rank": _DIGITS, "name": r"[^/]+?"}
# As many digits as there have to be: what follows a dot may be another part of the name.
_TIME = _DIGITS + r"(?:\.[0-9]{1,18})??(?:[eE][-+]?[0-9]{1,3})??"
_WILD = {"**": r".*", "*": r"[^/]*", "?": r"[^/]"}
_SPECIAL = re.compile(r"\*\*|\*|\?|\[[^\]/]+\]|\{[^{}]*\}")
_SPECIAL_IN_NAME = re.compile(r"\*+|\?|\[[^\]]+\]")
_RANGES = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_TRIMMED = "_-. "


@lru_cache(maxsize=1024)
def name_pattern(text: str) -> re.Pattern[str]:
    """A shell-like pattern of a name, which is to match all of it: `*` is anything, `?` one
    character, `[...]` one of a set.
    """
    parts: list[str] = []
    last = 0
    for special in _SPECIAL_IN_NAME.finditer(text):
        parts.append(re.escape(text[last : special.start()]))
        kind = special[0][0]
        parts.append(_set_regex(special[0][1:-1]) if kind == "[" else ".*" if kind == "*" else ".")
        last = special.end()
    parts.append(re.escape(text[last:]))
    return re.compile("".join(parts), re.DOTALL)


def _set_regex(body: str, never: str = "") -> str:
    """What `[body]` means: one of these characters and ranges; after `!` or `^` any but these. A
    range that runs backwards is empty. never: characters that it never stands for.
    """
    is_negated = body[0] in "!^" and len(body) > 1
    pieces = [
        re.escape(found[3]) if found[3] else f"{re.escape(found[1])}-{re.escape(found[2])}"
        for found in _RANGES.finditer(body[1:] if is_negated else body)
        if found[3] or found[1] <= found[2]
    ]
    if is_negated:
        return f"[^{never}{''.join(pieces)}]" if never or pieces else "."
    return f"[{''.join(pieces)}]" if pieces else "(?!)"


def _has_backward_range(body: str) -> bool:
    inside = body[1:] if body[0] in "!^" else body
    return any(found[1] and found[1] > found[2] for found in _RANGES.finditer(inside))


class PathMatch(Struct, frozen=True):
    """What a path told. iteration, rank, name: None where the pattern has no such field. iteration:
    text, which is a time, where the pattern says nothing of whole numbers.

    wild: the components in which the pattern has wild cards, joined by '/', without the text of
    fields.
    """

    iteration: int | str | None = None
    rank: int | None = None
    name: str | None = None
    wild: str = ""


class PathPattern:
    """A compiled pattern. `anywhere` lets it match the end of a path, from some folder's start on.

    Raises ConfigError (naming `key`) for an unknown or repeated field.
    """

    def __init__(self, text: str, *, anywhere: bool = False, key: str = "outputs") -> None:
        self.text = text
        self.fields: list[str] = []
        self._takes_time = False
        self._wild_count = 0
        self._key = key
        *folders, last = text.split("/")
        parts = [self._component(part) for part in folders]
        parts.append(self._component(last) if last != "**" else self._rest())
        # "a/**/b" also means "a/b": the slash after a `**` component belongs to what it crosses.
        body = "/".join(parts).replace("\0/", "").replace("\0", "")
        self._regex = re.compile((r"(?:.*/)?" if anywhere else "") + body, re.DOTALL)

    def _component(self, text: str) -> str:
        if text == "**":
            self._wild_count += 1
            return rf"(?P<w{self._wild_count}>(?:[^/]+/)*)" + "\0"
        parts: list[str] = []
        last = 0
        is_wild = False
        for special in _SPECIAL.finditer(text):
            parts.append(re.escape(text[last : special.start()]))
            found = special[0]
            if found in _WILD:
                parts.append(_WILD[found])
            elif found[0] == "[":
                parts.append(self._set(found[1:-1]))
            else:
                parts.append(self._field(found[1:-1]))
            is_wild = is_wild or found[0] != "{"
            last = special.end()
        parts.append(re.escape(text[last:]))
        body = "".join(parts)
        if not is_wild:
            return body
        self._wild_count += 1
        return f"(?P<w{self._wild_count}>{body})"

    def _rest(self) -> str:
        self._wild_count += 1
        return rf"(?P<w{self._wild_count}>.+)"

    def _set(self, body: str) -> str:
        if _has_backward_range(body):
            raise ConfigError(
                f"{self.text!r} has the set [{body}], of which a range runs backwards",
                key=self._key,
            )
        return _set_regex(body, never="/")

    def _field(self, body: str) -> str:
        if body == "*":
            return r"[^/]*?"
        name, _, kind = body.partition(":")
        if name not in _FIELDS or (":" in body and (kind != "d" or name == "name")):
            raise ConfigError(
                f"{self.text!r} has an unknown field {{{body}}}",
                key=self._key,
                remedy="the fields are {iteration:d}, {rank:d}, {name} and {*}",
            )
        if name in self.fields:
            raise ConfigError(f"{self.text!r} has the field {{{name}}} twice", key=self._key)
        self.fields.append(name)
        if name == "iteration" and not kind:
            self._takes_time = True
            return f"(?P<{name}>{_TIME})"
        return f"(?P<{name}>{_FIELDS[name]})"

    @property
    def is_literal(self) -> bool:
        return _SPECIAL.search(self.text) is None

    @property
    def wants_hidden(self) -> bool:
        """Whether a component with wild cards or fields begins with a dot."""
        inside = self.text[len(self.fixed_folder) :]
        return any(part.startswith(".") and part.strip(".") for part in inside.split("/"))

    @property
    def fixed_folder(self) -> str:
        """The folders before the first wild card or field, '' or ending in '/'."""
        special = _SPECIAL.search(self.text)
        head = self.text if special is None else self.text[: special.start()]
        return head[: head.rfind("/") + 1]

    @cached_property
    def stem(self) -> str:
        """The last component without fields, wild cards and suffix; 'data' if nothing is left."""
        last = _SPECIAL.sub("", self.text.rsplit("/", 1)[-1])
        return last.rsplit(".", 1)[0].strip(_TRIMMED) or "data"

    def match(self, path: str) -> PathMatch | None:
        """The fields of a path ('/' between components), None if it does not match."""
        found = self._regex.fullmatch(path)
        if found is None:
            return None
        wild = [self._without_fields(found, f"w{n + 1}") for n in range(self._wild_count)]
        return PathMatch(
            iteration=self._iteration(found) if "iteration" in self.fields else None,
            rank=_number(found, "rank") if "rank" in self.fields else None,
            name=found["name"] if "name" in self.fields else None,
            wild="/".join(text for text in wild if text),
        )

    def _iteration(self, found: re.Match[str]) -> int | str:
        return found["iteration"] if self._takes_time else _number(found, "iteration")

    def _without_fields(self, found: re.Match[str], group: str) -> str:
        first, end = found.span(group)
        if first == end:
            return ""
        text, last = "", first
        for name in self.fields:
            start, stop = found.span(name)
            if first <= start and stop <= end:
                text += found.string[last:start]
                last = stop
        text += found.string[last:end]
        return text.strip("/") if last == first else text.strip("/" + _TRIMMED)


def file_glob(text: str, key: str) -> PathPattern:
    """A glob that means files: of any folder, unless it names one; all below one that ends in '/'.

    Raises ConfigError.
    """
    text = text + "**" if text.endswith("/") else text
    is_anywhere = "/" not in text.removesuffix("/**")
    while text.startswith("./"):
        text = text[2:]
    return PathPattern(text, anywhere=is_anywhere, key=key)


def _number(found: re.Match[str], name: str) -> int:
    return int(found[name])


# Names of folders and files that count: `step_0030`, `rank-1`.
_COUNTING = {
    "iteration": r"(?:iter|iteration|step|frame|cycle|time|t|plt)[_-]?([0-9]+)",
    "rank": r"(?:rank|proc|processor|pe)[_-]?([0-9]+)",
}


def with_counters(parts: Sequence[str]) -> list[str]:
    """Components of a path, each field in place of the first number that counts it:
    `step_{iteration:d}` for `step_0030`.
    """
    found = list(parts)
    for field, regex in _COUNTING.items():
        for number, part in enumerate(found):
            counts = re.fullmatch(regex, part, re.IGNORECASE)
            if counts is not None:
                found[number] = f"{part[: counts.start(1)]}{{{field}:d}}"
                break
    return found


# Times, as paths and logs say them.
_TIME_TEXT = re.compile(r"\+?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eEdD][-+]?[0-9]{1,3})?")
_LARGEST_STEP = (1 << 63) - 1


def steps_of(text: str, step: float) -> int | None:
    """How many steps a time is; None for what is no time, or no whole number of steps from 0 on
    that 64 bits hold.
    """
    if not _TIME_TEXT.fullmatch(text):
        return None
    digits, exponent = _decimal(text)
    unit, unit_exponent = _decimal(repr(step))  # the shortest text of a double is what was written
    shift = exponent - unit_exponent
    count, rest = divmod(digits * 10 ** max(shift, 0), unit * 10 ** max(-shift, 0))
    return count if not rest and count <= _LARGEST_STEP else None


def _decimal(text: str) -> tuple[int, int]:
    """The digits, and the power of ten that they are multiplied by."""
    mantissa, _, exponent = text.lower().replace("d", "e").partition("e")
    whole, _, places = mantissa.partition(".")
    return int(whole + places), int(exponent or 0) - len(places)
