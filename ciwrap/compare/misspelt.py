"""What of a check's configuration has no effect on its outputs: perhaps it is misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.model import VariableId


def misspelt_words(
    check: Check, identities: Iterable[VariableId], catalog: Catalog | None = None
) -> list[str]:
    """A warning for each pattern and name of the configuration that has no effect on these.

    catalog: of the outputs, if they are files; of what could not be read nobody knows what it has.
    """
    identities = [*identities]
    found = [
        f"the pattern {pattern!r} under 'variables' or 'ignore' matches no variable; is it"
        " misspelt?"
        for pattern in (check.unused_rules(identities) if check.rules or check.ignore else ())
    ]
    if catalog is None or not catalog.errors:
        found += _idle_settings(check, identities)
    if catalog is not None and not catalog.errors:
        found += [_unused(key, pattern) for key, pattern in catalog.found.unused]
        if any(file.options for file in catalog.found.files):
            found += [
                f"'{option}: {name}' has no effect, since no file has iterations of its own; is it"
                " misspelt?"
                for option, name in _idle_options(catalog)
            ]
    return found


def _unused(key: str, pattern: str) -> str:
    if key == "layout":
        return "'layout' has no effect, since 'outputs' says where all of it stands"
    does = "leaves out" if key == "exclude" else "matches"
    return f"the pattern {pattern!r} under {key!r} {does} no file of the outputs; is it misspelt?"


def _idle_settings(check: Check, identities: Sequence[VariableId]) -> Iterator[str]:
    """Settings that none of the variables has what they need for."""
    until = check.until_iteration
    if until is not None and identities and all(one.iteration is None for one in identities):
        yield f"'until_iteration: {until}' has no effect, since no variable has an iteration"
    layers = (*check.layers, *(rule.settings for rule in check.rules))
    is_across, is_aligned = (
        any(one.said.get(name) for one in layers) for name in ("across_ranks", "align_by")
    )
    if is_across and not is_aligned:
        yield "'across_ranks' has no effect, since no variable has 'align_by'"


def _idle_options(catalog: Catalog) -> list[tuple[str, str]]:
    """The options on iterations inside files that name something, where no file has any."""
    asked: dict[tuple[str, str], bool] = {}
    for entry in catalog.entries.values():
        is_used = entry.file.iteration is None and entry.info.iteration is not None
        for option in ("iterations", "iteration_variable"):
            name = entry.file.options.get(option)
            if name not in (None, "auto", "none"):
                asked[option, name] = asked.get((option, name), False) or is_used
    return [one for one, is_used in asked.items() if not is_used]
