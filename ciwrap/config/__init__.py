"""The configuration, ciwrap.yaml, and what it says of each variable.

`ciwrap.config.loading` reads it, and `ciwrap.config.starter` writes a first one; both are imported
where they are used, since they need PyYAML or readers.
"""

from __future__ import annotations

from ciwrap.config.settings import (
    CONFIG_NAME,
    Check,
    CommandSettings,
    Config,
    Expectation,
    VariableRule,
    name_matches,
)

__all__ = [
    "CONFIG_NAME",
    "Check",
    "CommandSettings",
    "Config",
    "Expectation",
    "VariableRule",
    "name_matches",
]
