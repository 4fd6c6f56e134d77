"""Changes of how outputs are read: the options of readers, and what is looked for in logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.changes.document import Change
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.attributes import MEANING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ciwrap.config import Check
    from ciwrap.model.formats import FormatRule

_LOG = "log"
# What of a log is told rule by rule, and what is a list of templates.
_GROUPS = ("values", "tables", "steps", "counts")
_LISTS = {"require": "asked of the log", "forbid": "forbidden in the log"}
# What an option, and a key of a rule, means where nobody says it.
_DEFAULTS: Mapping[str, Any] = {
    "skip_rows": 0,
    "comment": "#",
    "final_newline": True,
    "empty_is_nan": False,
    "header": "auto",
    "offset": 0,
    "ignore": (),
    "ignore_lines": (),
    "attributes": MEANING,
}
# A text or a list of texts, in any order.
_SETS = ("comment", "ignore", "ignore_lines", "attributes")
_RULE_DEFAULTS: Mapping[str, Any] = {
    "take": "all",
    "duplicates": "error",
    "optional": False,
    "absolute": False,
    "covers": "after",
}


def option_changes(old: Check, new: Check) -> Iterator[Change]:
    """What differs in the options of a check, in those of its `formats`, and in rules of logs."""
    for text, wider in _options(old.options, new.options, is_own=_is_own(new.format)):
        yield Change(new.name, None, "check", text, wider=wider)
    yield from _formats(old, new)
    if _LOG in (old.format, new.format):
        yield from _log(old, new)


def _is_own(reader: str | None) -> bool:
    """Whether we know what the options of a reader mean; other packages have readers, too."""
    return reader is None or reader in OWN_FORMATS


def _options(
    old: Mapping[str, Any], new: Mapping[str, Any], *, is_own: bool
) -> Iterator[tuple[str, bool]]:
    """What differs in options, in words, and whether less is compared."""
    for key in dict.fromkeys((*old, *new)):
        if is_own and key in (*_GROUPS, *_LISTS):
            continue
        default = _DEFAULTS.get(key) if is_own else None
        was, now = (_value(one.get(key, default), key, is_own=is_own) for one in (old, new))
        if was != now:
            judge = _WIDER.get(key) if is_own else None
            wider = judge is not None and judge(was, now)
            yield f"options: {key}: {words(was)} -> {words(now)}", wider


def _value(value: Any, key: str, *, is_own: bool) -> Any:
    """As it is compared: a set of texts in one order."""
    if not is_own or key not in _SETS or isinstance(value, bool):
        return value
    return tuple(sorted(_all_of(value)))


def _formats(old: Check, new: Check) -> Iterator[Change]:
    before, after = ({one.glob: one for one in check.formats} for check in (old, new))
    for glob in dict.fromkeys((*before, *after)):
        was, now = before.get(glob), after.get(glob)
        readers = tuple("none" if one is None else one.reader for one in (was, now))
        if readers[0] != readers[1]:
            text = f"formats: {glob}: {readers[0]} -> {readers[1]}"
            yield Change(new.name, None, "check", text, wider=False)
        if all(one is None or one.options is None for one in (was, now)):
            continue
        # Without the rule, those of the check hold for these files.
        is_own = all(_is_own(one.reader) for one in (was, now) if one is not None)
        for text, wider in _options(_of(was, old), _of(now, new), is_own=is_own):
            yield Change(new.name, None, "check", f"formats: {glob}: {text}", wider=wider)
    shared = [[glob for glob in one if glob in before and glob in after] for one in (before, after)]
    if shared[0] != shared[1]:
        text = f"formats: order: {', '.join(shared[0])} -> {', '.join(shared[1])}"
        yield Change(new.name, None, "check", text, wider=False)


def _of(rule: FormatRule | None, check: Check) -> Mapping[str, Any]:
    return check.options if rule is None or rule.options is None else rule.options


def _log(old: Check, new: Check) -> Iterator[Change]:
    """What is looked for in a log otherwise than before."""
    before, after = (check.options if check.format == _LOG else {} for check in (old, new))
    for group in _GROUPS:
        was, now = before.get(group, {}), after.get(group, {})
        for name in dict.fromkeys((*was, *now)):
            for text, wider in _rule(was.get(name), now.get(name)):
                yield Change(new.name, name, "variable", f"{group}: {text}", wider=wider)
    for key, word in _LISTS.items():
        templates, there = before.get(key, ()), after.get(key, ())
        for one in dict.fromkeys((*templates, *there)):
            is_gone, is_new = one not in there, one not in templates
            if is_gone or is_new:
                text = f"{key}: {one!r} is {word} {'now' if is_new else 'no more'}"
                yield Change(new.name, None, "check", text, wider=is_gone)


def _rule(old: Any, new: Any) -> Iterator[tuple[str, bool]]:
    if old is None or new is None:
        yield f"is {'no longer' if new is None else 'newly'} looked for", new is None
        return
    was, now = ({**_RULE_DEFAULTS, **rule} for rule in (old, new))
    for key in dict.fromkeys((*was, *now)):
        before, after = was.get(key), now.get(key)
        if before != after:
            judge = _RULE_WIDER.get(key)
            wider = judge is not None and judge(before, after)
            yield f"{key}: {words(before)} -> {words(after)}", wider


def words(value: Any) -> str:
    """A value of a configuration as it is shown."""
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ", ".join(f"{key} {words(one)}" for key, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _all_of(value: Any) -> set[str]:
    return {value} if isinstance(value, str) else set(value or ())


def gains(was: Any, now: Any) -> bool:
    """Whether a text or a list of texts has one that it had not."""
    return bool(_all_of(now) - _all_of(was))


def _becomes(state: object) -> Callable[[Any, Any], bool]:
    return lambda _, now: now == state


def loses(was: Any, now: Any) -> bool:
    """The other way round."""
    return bool(_all_of(was) - _all_of(now))


def _names_less(was: Any, now: Any) -> bool:
    """Of `attributes`: all of them (true), those that are named, none (false)."""
    if isinstance(was, bool) or isinstance(now, bool):
        return was is True or (now is False and bool(was))
    return loses(was, now)


# Those whose change can mean that less is compared, or that what was an error is none: whether it
# does. What else changes is another reading, which goldens notice by other variables or shapes.
_WIDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "ignore": gains,
    "ignore_lines": gains,
    "comment": gains,
    "skip_rows": lambda was, now: now > was,
    "final_newline": _becomes(False),
    "empty_is_nan": _becomes(True),
    "regions": loses,
    "attributes": _names_less,
}
_RULE_WIDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "take": lambda was, _: was == "all",
    "duplicates": lambda was, _: was in ("error", "all"),
    "optional": _becomes(True),
    "absolute": _becomes(True),
    "section": lambda was, now: was is None and now is not None,
    "step": lambda _, now: now is None,
    "iteration": lambda _, now: now is None,
}
