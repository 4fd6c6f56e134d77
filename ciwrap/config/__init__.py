"""The configuration, ciwrap.yaml: loading it, and what it says of each variable.

Loading needs PyYAML, which is imported on first use only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.config.fill_values import fit_fill_values
from ciwrap.config.settings import (
    Check,
    CommandSettings,
    Config,
    VariableRule,
    name_matches,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.config.starter import FoundFile, Starter

CONFIG_NAME = "ciwrap.yaml"

__all__ = [
    "CONFIG_NAME",
    "Check",
    "CommandSettings",
    "Config",
    "VariableRule",
    "find_config",
    "fit_fill_values",
    "json_schema",
    "load_config",
    "name_matches",
    "make_starter",
]


def load_config(path: Path) -> Config:
    """Reads and validates a configuration file.

    Raises ConfigMissingError, or ConfigError with the line and key at fault.
    """
    from ciwrap.config.loading import load

    return load(path)


def find_config(start: Path) -> Path:
    """The ciwrap.yaml of `start` or of the nearest folder above it.

    The search ends at the top of a git work tree. Raises ConfigMissingError.
    """
    from ciwrap.config.loading import find

    return find(start)


def make_starter(found: Iterable[FoundFile], *, command: str | None = None) -> Starter:
    """The commented text of a first configuration (see `ciwrap.config.starter`)."""
    from ciwrap.config.starter import make_starter as make

    return make(found, command=command)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ciwrap.yaml, for editors; stable between releases of one version."""
    from ciwrap.config.editor_schema import json_schema as make

    return make()
