"""What of a check's configuration has no effect on its outputs: perhaps it is misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.model import VariableId


def misspelt_words(
    check: Check, identities: Iterable[VariableId], catalog: Catalog | None = None
) -> list[str]:
    """A warning for each pattern and name of the configuration that has no effect on these.

    catalog: of the outputs, if they are files; of what could not be read nobody knows what it has.
    """
    found = [
        f"the pattern {pattern!r} under 'variables' or 'ignore' matches no variable; is it"
        " misspelt?"
        for pattern in (check.unused_rules([*identities]) if check.rules or check.ignore else ())
    ]
    if catalog is not None and not catalog.errors:
        found += [
            f"the pattern {pattern!r} under {key!r} matches no file of the outputs; is it misspelt?"
            for key, pattern in catalog.unused
        ]
        found += [
            f"'{option}: {name}' has no effect, since no file has iterations of its own; is it"
            " misspelt?"
            for option, name in _idle_options(catalog)
        ]
    return found


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
