"""Each setting of a variable is stated once, and whatever is made of the statements agrees."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ciwrap import api
from ciwrap.base.errors import InvalidBoundError, UsageError
from ciwrap.golden.trees import tree_parameters
from ciwrap.model import (
    SETTINGS,
    ErrorBound,
    SettingArguments,
    SettingsLayer,
    VariableId,
    VariableSettings,
)
from ciwrap.model.settings import OnTrees
from ciwrap.project.config import load_text
from ciwrap.project.schema import BOUND, CHECK, NAMED_CHECK
from ciwrap.pytest_plugin import fixture

ROOT = Path(__file__).resolve().parents[2]
# Of a check, not of a variable: they stand under `strict`.
OF_A_CHECK = {"strict_dtype", "strict_shape", "strict_count"}
# A value other than the default, as written and as a program hands it over.
OTHER: dict[str, tuple[str, Any]] = {
    "atol": ("1e-3", 1e-3),
    "rtol": ("1e-3", 1e-3),
    "ulps": ("4", 4),
    "residue_levels": ("31", 31),
    "chunk_bytes": ("64 KiB", 65536),
    "evidence": ("tree", "tree"),
    "data_budget_bytes": ("0", 0),
    "residues_budget_bytes": ("1 MiB", 1 << 20),
    "equal_nan": ("no", False),
    "fill_values": ("[-999, .nan]", (-999, float("nan"))),
    "mask": ("land", "land"),
    "align_by": ("id", "id"),
    "across_ranks": ("yes", True),
    "period": ("[10, 0]", (10, 0)),
    "mixed_precision": ("on", True),
    "combine": ("both", "both"),
    "up_to_sign": ("rows", "rows"),
}


def told(name: str, *, written: bool = False) -> VariableSettings:
    """The settings of a variable of which only this one is not the default."""
    if not written:
        return VariableSettings.of(SettingsLayer.from_arguments({name: OTHER[name][1]}, "here"))
    text = f"checks: {{c: {{outputs: x, {name}: {OTHER[name][0]}}}}}"
    return load_text(text, Path("/p/ciwrap.yaml")).checks[0].settings_for(VariableId("x"))


def test_every_field_is_stated_and_every_statement_tried() -> None:
    stated = {one.field for one in SETTINGS.values()}
    # `atol: 1e-12*max` is said by the statement of atol.
    assert stated | {"scale"} == set(VariableSettings.__struct_fields__) - OF_A_CHECK
    assert set(OTHER) == set(SETTINGS)


def test_what_type_checkers_see_are_the_settings() -> None:
    assert list(SettingArguments.__annotations__) == list(SETTINGS)
    check = inspect.signature(fixture.CiwrapFixture.check)
    assert check.parameters["settings"].annotation == "Unpack[SettingArguments]"
    others = [name for name in check.parameters if name not in ("self", "value", "settings")]
    assert others == list(fixture.OTHER_KEYWORDS)


def test_the_configuration_has_them_wherever_settings_may_stand() -> None:
    assert list(BOUND.keys) == list(SETTINGS)
    for section in (CHECK, NAMED_CHECK):
        assert list(section.keys)[: len(SETTINGS)] == list(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_written_and_what_is_handed_over_mean_the_same(name: str) -> None:
    handed, written = told(name), told(name, written=True)
    assert repr(handed) == repr(written)
    assert handed != VariableSettings()


@pytest.mark.parametrize("name", SETTINGS)
def test_defaults_read_as_they_are_documented(name: str) -> None:
    one = SETTINGS[name]
    if one.default_text != "none":
        assert one.form.from_text(one.default_text) == one.default
    assert one.help
    assert one.help.isprintable()


@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_setting_means_for_trees(name: str) -> None:
    """What decides digests changes the parameters that they are made with; nothing else does."""

    def made_with(settings: VariableSettings) -> Any:
        return tree_parameters("<f8", settings, residue_levels=settings.residue_levels)

    plain = VariableSettings(bound=ErrorBound(1.0))
    other = told(name)
    if SETTINGS[name].field != "bound":
        other = replace(other, bound=plain.bound)
    is_same = made_with(other) == made_with(plain)
    assert is_same == (SETTINGS[name].on_trees is not OnTrees.DECIDES)
    assert other.has_own_trees == (SETTINGS[name].on_trees is not OnTrees.BEYOND)


def test_rows_in_the_order_of_the_file_have_trees() -> None:
    layers = (SettingsLayer.of({"align_by": "id"}), SettingsLayer.of({"align_by": "none"}))
    assert not VariableSettings.of(layers[0]).has_own_trees
    assert VariableSettings.of(*layers).align_by is None
    assert VariableSettings.of(*layers).has_own_trees


def test_the_python_api_takes_those_of_single_arrays() -> None:
    taken: dict[str, list[Any]] = {}
    for name in api.__all__:
        function = getattr(api, name)
        for one in inspect.signature(function).parameters.values():
            if one.name in SETTINGS:
                taken.setdefault(one.name, []).append(one.default)
    assert set(taken) == {name for name, one in SETTINGS.items() if one.in_api}
    for name, defaults in taken.items():
        plain = {SETTINGS[name].default, None} if name == "period" else {SETTINGS[name].default}
        if name == "residue_levels":
            plain.add(1)  # of `build_tree`, whose trees are plain unless somebody asks
        assert set(defaults) <= plain, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"atoll": 1}, "here knows no 'atoll' (it knows atol, rtol, ulps, "),
        ({"atoll": 1}, "did you mean 'atol'"),
        ({"atol": "1e-6"}, "here: atol must be a number, not '1e-6'"),
        ({"atol": 10**400}, "is beyond the range of a double"),
        ({"rtol": -1}, "here: rtol must be finite and not negative, not -1"),
        ({"ulps": 1.5}, "here: ulps must be a whole number, not 1.5"),
        ({"ulps": 1, "rtol": 1}, "ulps excludes atol and rtol"),
        ({"residue_levels": 4}, "must be 1 or an odd number from 3 to 255, not 4"),
        ({"chunk_bytes": "4 KiB"}, "must be a whole number, not '4 KiB'"),
        ({"chunk_bytes": 63}, "must be from 64 to 16777216 bytes, not 63"),
        ({"evidence": "datum"}, "did you mean 'data'"),
        ({"evidence": 3}, "must be one of auto, data, residues, tree, not 3"),
        ({"equal_nan": 1}, "equal_nan must be true or false, not 1"),
        ({"fill_values": [1, "x"]}, "here: fill_values[1] must be a number, not 'x'"),
        ({"fill_values": range(17)}, "may hold 16 values at most"),
        ({"mask": ""}, "mask must not be empty"),
        ({"mask": 3}, "mask must be text, not 3"),
        ({"period": 0}, "must hold a number above 0"),
        ({"period": []}, "must be a number or a list of 1 to 16 numbers"),
    ],
)
def test_arguments_without_a_meaning(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        SettingsLayer.from_arguments(arguments, "here")
    assert message in str(caught.value)
    is_bound = next(iter(arguments)) in ("atol", "rtol", "ulps")
    assert isinstance(caught.value, InvalidBoundError) == is_bound


def test_the_reference_is_what_the_tool_writes() -> None:
    pages = runpy.run_path(str(ROOT / "tools/generate-config-reference"))["pages"]
    for page, text in pages().items():
        assert page.read_text(encoding="utf-8") == text, "run tools/generate-config-reference"
