"""Importing ciwrap is quick and loads nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ciwrap


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


HEAVY = {"numpy", "msgspec", "yaml", "click", "rich", "jinja2", "ciwrap._core"}


@pytest.mark.parametrize(
    "statement",
    ["import ciwrap", "import ciwrap.model", "import ciwrap.errors", "import ciwrap.config"],
)
def test_imports_stay_light(statement: str) -> None:
    assert not loaded_by(statement) & HEAVY


def test_a_configuration_does_not_load_readers_or_the_core() -> None:
    loaded = loaded_by("import ciwrap.config.loading, ciwrap.config.starter")
    assert not loaded & {"numpy", "ciwrap._core", "ciwrap.readers"}


def test_every_public_name_exists() -> None:
    for name in ciwrap.__all__:
        assert getattr(ciwrap, name) is not None
        assert name in dir(ciwrap)


def test_the_whole_api_is_offered() -> None:
    from ciwrap import api

    assert set(api.__all__) == set(ciwrap._API)
    assert set(api.__all__) < set(ciwrap.__all__)
    assert ciwrap.build_tree is api.build_tree


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = ciwrap.no_such_name
