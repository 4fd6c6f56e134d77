"""Changes of whole checks: which there are, what of the outputs they take, how strict they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ciwrap.changes.document import Change
from ciwrap.changes.of_options import gains, loses, option_changes, words
from ciwrap.changes.of_runs import repeat_changes, timing_changes
from ciwrap.changes.of_stated import stated_changes
from ciwrap.hidden import hide_secrets, secrets_of
from ciwrap.model import StrictVariables, VariableId
from ciwrap.report.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ciwrap.changes.state import State
    from ciwrap.config import Check, Config
    from ciwrap.config.settings import CommandSettings

_STRICT_WORDS = {"dtype": "dtype", "shape": "shape", "count": "number of steps"}
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
    if old.config is not None and new.config is not None:
        sides = (old.config, new.config)
        of_all = (_commands, timing_changes, repeat_changes)
        for text, wider in (found for tell in of_all for found in tell(*sides)):
            yield Change(None, None, "check", text, wider=wider)


def check_changes(old: State, new: State, renames: Mapping[str, str]) -> Iterator[Change]:
    """Checks that are gone, new or called otherwise, and what is different of those on both sides.

    renames: new name -> old name.
    """
    if old.config is None or new.config is None:
        return
    for name in old.checks:
        if name not in new.checks and name not in renames.values():
            held = _held(old, name)
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


def _held(state: State, name: str) -> int:
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


def _never(was: object, now: object) -> bool:  # noqa: ARG001
    return False


def _is_lax(was: str, now: str) -> bool:
    return was == "error" and now != "error"


def _other_statistics(was: tuple[str, ...], now: tuple[str, ...]) -> bool:
    """Statistics in place of numbers, or no statistics of some runs, or of any."""
    return not was or loses(was, now)


# What a check is made of, in words, and where a change can mean that less is compared, whether it
# does.
_PARTS: dict[str, tuple[str, Callable[..., bool]]] = {
    "outputs": ("outputs", loses),
    "exclude": ("excluded files", gains),
    "layout": ("layout", _never),
    "format": ("format", _never),
    "duplicates": ("which of two copies counts", _is_lax),
    "ensemble": ("ensemble", _other_statistics),
}


def _strictness(old: Check, new: Check) -> Iterator[Change]:
    for key in ("dtype", "shape", "count"):
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
