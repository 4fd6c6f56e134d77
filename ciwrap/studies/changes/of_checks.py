"""Changes of whole checks, of readers' options and logs, and of `ciwrap time` and `repeat`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from ciwrap.base.secrets import hide_secrets, secrets_of
from ciwrap.formats.reader import MEANING
from ciwrap.model import StrictVariables, VariableId
from ciwrap.model.settings import OWN_FORMATS, FormatRule, StrictDtype, size_text
from ciwrap.project.settings import (
    DEFAULT_GOLDEN_DIR,
    Check,
    CommandSettings,
    Config,
    Expectation,
    name_matches,
)
from ciwrap.report.text import plural
from ciwrap.studies.changes.pytest_files import PytestFile, setting_changes
from ciwrap.studies.changes.state import Change, State, judged_by_configuration, judgement_changes


def stated_changes(
    old: Check, new: Check, old_held: AbstractSet[VariableId], new_held: AbstractSet[VariableId]
) -> Iterator[Change]:
    """What is said of values in place of a golden, and of names that no golden holds.

    old_held, new_held: what goldens of the check hold.
    """
    yield from _expectations(old, new, old_held)
    stated = [name for name in old.expected if name in new.expected]
    yield from _ignored(old, new, old_held, new_held, stated)
    if not stated:
        return
    # A file's path may stand before its values' names: a pattern stands for the names it may mean.
    known = set(map(VariableId, stated))
    names = {one.name for one in old_held | new_held}
    patterns = dict.fromkeys(rule.pattern for rule in (*old.rules, *new.rules))
    unknown = [one for one in patterns if one not in names and not _matches_any(one, known)]
    for name in (*stated, *unknown):
        before, after = (judged_by_configuration(one, name) for one in (old, new))
        said = (one.expected.get(name) for one in (old, new))
        # A range is its own bound.
        is_range = any(one is not None and one.values is None for one in said)
        for what, text, wider in judgement_changes(before, after):
            if what != "bound" or not is_range:
                yield Change(new.name, name, what, text, wider=wider)
    orders = [[rule.pattern for rule in one.rules if rule.pattern in unknown] for one in (old, new)]
    if sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]:
        text = f"order of 'variables': {', '.join(orders[0])} -> {', '.join(orders[1])}"
        yield Change(new.name, None, "bound", text, wider=None)


def _expectations(old: Check, new: Check, old_held: AbstractSet[VariableId]) -> Iterator[Change]:
    for name in dict.fromkeys((*old.expected, *new.expected)):
        was, now = old.expected.get(name), new.expected.get(name)
        if was != now:
            words = "is gone" if now is None else "is new" if was is None else "is another one"
            text = f"what the configuration says of its values {words}"
            # What the check says of a name may be said of a variable, too.
            said = [new.expectation_of(one) for one in old_held] if was is None else []
            if any(one is not None and one is now for one in said):
                text += ", and no golden counts for them"
                wider = now is None or not now.is_each
            else:
                wider = now is None or (was is not None and _allows_more(was, now))
            yield Change(new.name, name, "variable", text, wider=wider)


def _allows_more(was: Expectation, now: Expectation) -> bool:
    """Whether numbers may be allowed that were not before: of a range and a number either may. One
    number allows any count of matches, and a list asks for as many as it has.
    """
    if was.values is None or now.values is None:
        return was.values is not now.values or now.low < was.low or now.high > was.high
    return was.is_each and (not now.is_each or len(now.values) < len(was.values))


def _ignored(
    old: Check,
    new: Check,
    old_held: AbstractSet[VariableId],
    new_held: AbstractSet[VariableId],
    stated: list[str],
) -> Iterator[Change]:
    """What is ignored now; goldens tell of what they hold."""
    for pattern in new.ignore:
        if pattern in old.ignore:
            continue
        names = [
            name
            for name in stated
            if name_matches(pattern, VariableId(name)) and not old.is_ignored(VariableId(name))
        ]
        for name in names:
            yield Change(new.name, name, "ignore", "is ignored now", wider=True)
        if not names and not _matches_any(pattern, old_held | new_held):
            text = "is ignored now; no golden holds anything of that name"
            # What needs no golden may have a name that only the outputs tell.
            wider = None if stated or new.ensemble or not old_held else False
            yield Change(new.name, pattern, "ignore", text, wider=wider)


def _matches_any(pattern: str, variables: AbstractSet[VariableId]) -> bool:
    return any(name_matches(pattern, one) for one in variables)


_LOG = "log"
# What of a log is reported rule by rule, and what is a list of templates.
_GROUPS = ("values", "tables", "steps", "counts")
_LISTS = {"require": "asked of the log", "forbid": "forbidden in the log"}
# What an option, and a key of a rule, means where nobody says it.
_DEFAULTS: Mapping[str, Any] = {
    "skip_rows": 0,
    "comment": "#",
    "final_newline": None,
    "empty_is_nan": True,
    "header": "auto",
    "offset": 0,
    "ignore": (),
    "ignore_lines": (),
    "ignore_places": (),
    "attributes": MEANING,
}
# A text or a list of texts, in any order.
_SETS = ("comment", "ignore", "ignore_lines", "ignore_places", "attributes")
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
    return tuple(sorted(_all_of(value), key=str))


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


def _all_of(value: Any) -> set[Any]:
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
    "ignore_places": gains,
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


def timing_changes(old: Config, new: Config) -> Iterator[tuple[str, bool]]:
    """What differs, in words, and whether less is asked. How often runs are repeated is no change
    of what is asked.
    """
    was, now = old.timing, new.timing
    for key in ("command", "build"):
        before, after = (_text(one, key) for one in (old, new))
        if before != after:
            yield f"timing: {key}: {before} -> {after}", False
    if was.gate != now.gate:
        yield f"timing: a slower run {'fails' if now.gate else 'is only reported'} now", was.gate
    if was.margin != now.margin:
        yield f"timing: margin: {was.margin:g} -> {now.margin:g}", now.margin > was.margin
    if was.confidence != now.confidence:
        sides = [f"{one.confidence_used:g}" for one in (was, now)]
        is_surer = now.confidence_used > was.confidence_used
        if sides[0] != sides[1]:
            yield f"timing: confidence: {sides[0]} -> {sides[1]}", is_surer
    for key, words in (("max_seconds", "{:g} s".format), ("max_memory", size_text)):
        before, after = (getattr(one, key) for one in (was, now))
        if before != after:
            sides = ["none" if one is None else words(one) for one in (before, after)]
            is_wider = before is not None and (after is None or after > before)
            yield f"timing: {key}: {sides[0]} -> {sides[1]}", is_wider


def _text(config: Config, key: str) -> str:
    words = getattr(config.timing, key)
    return "none" if words is None else CommandSettings(words, config.root).text


_STRICT_WORDS = {"shape": "shape", "count": "number of steps"}
_STRICT_ORDER = (StrictVariables.BOTH, StrictVariables.ALLOW_NEW, StrictVariables.NONE)


def configuration_changes(old: State, new: State) -> Iterator[Change]:
    """From where configuration and goldens are read, and what is run for all checks."""
    if old.config_name != new.config_name:
        was, now = old.config_name or "nowhere", new.config_name or "nowhere"
        text = f"configuration read from: {was} -> {now}"
        yield Change(None, None, "check", text, wider=new.config_name is None)
    if old.problem is not None:
        text = f"the configuration before cannot be read: {old.problem}"
        yield Change(None, None, "check", text, wider=None)
    has_goldens = old.config is not None or bool(old.manifests)
    if old.golden_dir != new.golden_dir and has_goldens and new.config is not None:
        text = f"goldens read from: {old.golden_dir or '.'} -> {new.golden_dir or '.'}"
        yield Change(None, None, "check", text, wider=False)
    folders = [one.test_golden_dir or one.golden_dir for one in (old, new)]
    if (old.test_golden_dir or new.test_golden_dir) and folders[0] != folders[1]:
        text = f"goldens of tests read from: {folders[0] or '.'} -> {folders[1] or '.'}"
        yield Change(None, None, "check", text, wider=False)
    for text, less in (*setting_changes(old.pytest, new.pytest), *_inner_changes(old, new)):
        yield Change(None, None, "check", text, wider=less)
    if old.config is not None and new.config is not None:
        sides = (old.config, new.config)
        for text, wider in (*_commands(*sides), *timing_changes(*sides)):
            yield Change(None, None, "check", text, wider=wider)
        was, now = (one.repeat.reference for one in sides)
        if was != now:
            text = f"repeat: reference: {was} -> {now}"
            yield Change(None, None, "check", text, wider=was == "golden")


def _inner_changes(old: State, new: State) -> Iterator[tuple[str, bool | None]]:
    """What pytest's configuration in folders of tests says otherwise. One that is new takes the
    place of the one above it, with all that this says.
    """
    before = {one.name: one for one in old.inner}
    for one in new.inner:
        known = before.get(one.name)
        if known is not None:
            yield from setting_changes(known, one)
            if known.golden_dir != one.golden_dir:
                was, now = known.golden_dir or "as above", one.golden_dir or "as above"
                yield f"{one.name}: goldens of tests read from: {was} -> {now}", None
        elif new.config is None or one.says_anything or new.pytest.says_anything:
            where = one.golden_dir or _usual(new, one)
            text = f"{one.name} is new: a pytest started for the tests below it goes by it"
            yield f"{text}, with goldens in {where}", None


def _usual(state: State, inner: PytestFile) -> str:
    """Where goldens lie without a word in pytest's configuration."""
    if state.config is not None:
        return state.golden_dir
    return f"{inner.folder}/{DEFAULT_GOLDEN_DIR}"


def check_changes(old: State, new: State, renames: Mapping[str, str]) -> Iterator[Change]:
    """Checks that are gone, new or called otherwise, and what is different of those on both sides.

    renames: new name -> old name.
    """
    if old.config is None or new.config is None:
        return
    for name in old.checks:
        if name not in new.checks and name not in renames.values():
            held = _variable_count(old, name)
            lost = f", with {plural(held, 'variable')} of its golden" if held else ""
            text = f"the check is gone{lost}"
            yield Change(name, None, "check", text, wider=True)
    for name, check in new.checks.items():
        before = old.checks.get(renames.get(name, name))
        if before is None:
            yield Change(name, None, "check", "a new check", wider=False)
            continue
        if name in renames:
            yield renamed(name, before.name)
        yield from _parts(before, check)
        for text, is_none in _commands(before, check):
            wider = is_none and new.config.command is None  # which it has without one of its own
            yield Change(name, None, "check", text, wider=wider)
        yield from option_changes(before, check)
        yield from stated_changes(before, check, _variables(old, before), _variables(new, check))
        yield from _strictness(before, check)


def renamed(name: str, before: str, more: str = "") -> Change:
    """A check that is called otherwise now, and whose golden is the same."""
    text = f"called {before} before; its golden is the same{more}"
    return Change(name, None, "check", text, wider=False)


def _variables(state: State, check: Check) -> frozenset[VariableId]:
    """What the goldens and ensembles of a check hold, on all platforms."""
    of_goldens = {
        row.identity
        for place, manifest in state.manifests.items()
        if place.name == check.name and manifest is not None
        for row in manifest.variables
    }
    of_ensembles = {
        VariableId(name)
        for place, ensemble in state.ensembles.items()
        if place.name == check.name and ensemble is not None
        for name in ensemble.variables
    }
    return frozenset(of_goldens | of_ensembles)


def _variable_count(state: State, name: str) -> int:
    """How many variables the goldens of a check hold, by name."""
    return max(
        (
            len({row.name for row in manifest.variables})
            for place, manifest in state.manifests.items()
            if place.name == name and manifest is not None
        ),
        default=0,
    )


def _commands(old: Config | Check, new: Config | Check) -> Iterator[tuple[str, bool]]:
    """What is run otherwise: the command, its environment, its folder."""
    was, now = old.command, new.command
    before, after = (None if one is None else one.text for one in (was, now))
    if before != after:
        yield f"command: {before or 'none'} -> {after or 'none'}", after is None
    if was is None or now is None:
        return
    for name in sorted({*was.env, *now.env}):
        if was.env.get(name) != now.env.get(name):
            text = f"{_setting(was, name)} -> {_setting(now, name)}"
            yield f"environment of the command: {name}: {text}", False
    folders = [os.path.relpath(one.working_dir, of.root) for one, of in ((was, old), (now, new))]
    if folders[0] != folders[1]:
        yield f"folder of the command: {folders[0]} -> {folders[1]}", False


def _setting(command: CommandSettings, name: str) -> str:
    """A variable of the environment, as it may be shown."""
    if name not in command.env:
        return "none"
    return hide_secrets(command.env[name], secrets_of(command.env)) or "''"


def _parts(old: Check, new: Check) -> Iterator[Change]:
    for key, (word, takes_less) in _PARTS.items():
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            text = f"{word}: {words(was)} -> {words(now)}"
            yield Change(new.name, None, "check", text, wider=takes_less(was, now))
    before, after = old.until_iteration, new.until_iteration
    if before != after:
        wider = after is not None and (before is None or after < before)
        text = f"compared until iteration: {words(before)} -> {words(after)}"
        yield Change(new.name, None, "ignore", text, wider=wider)


# What a check is made of, in words, and where a change can mean that less is compared, whether it
# does.
_PARTS: dict[str, tuple[str, Callable[..., bool]]] = {
    "outputs": ("outputs", loses),
    "exclude": ("excluded files", gains),
    "layout": ("layout", lambda _was, _now: False),
    "format": ("format", lambda _was, _now: False),
    "duplicates": ("which of two copies counts", lambda was, _: was == "error"),
    # Statistics in place of numbers, or no statistics of some runs, or of any.
    "ensemble": ("ensemble", lambda was, now: not was or loses(was, now)),
}


# The strictest first.
_DTYPE_WORDS = {
    StrictDtype.STORED: "refused, also where values are stored otherwise",
    StrictDtype.OTHER: "refused",
    StrictDtype.NONE: "allowed",
}


def _strictness(old: Check, new: Check) -> Iterator[Change]:
    if old.strict.dtype is not new.strict.dtype:
        words = (_DTYPE_WORDS[old.strict.dtype], _DTYPE_WORDS[new.strict.dtype])
        order = [*_DTYPE_WORDS]
        wider = order.index(new.strict.dtype) > order.index(old.strict.dtype)
        yield Change(new.name, None, "strict", f"another dtype: {' -> '.join(words)}", wider=wider)
    for key in ("shape", "count"):
        was, now = getattr(old.strict, key), getattr(new.strict, key)
        if was != now:
            text = f"another {_STRICT_WORDS[key]} is {'refused' if now else 'allowed'} now"
            yield Change(new.name, None, "strict", text, wider=was)
    before, after = old.strict.variables, new.strict.variables
    if before is not after:
        wider = _STRICT_ORDER.index(after) > _STRICT_ORDER.index(before)
        text = f"variables on one side only: {_ONE_SIDED[before]} -> {_ONE_SIDED[after]}"
        yield Change(new.name, None, "strict", text, wider=wider)


_ONE_SIDED = {
    StrictVariables.BOTH: "refused",
    StrictVariables.ALLOW_NEW: "new ones allowed",
    StrictVariables.NONE: "allowed",
}
