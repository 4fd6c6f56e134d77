"""Loading ciwrap.yaml: what it may say, where it is found, and its schema."""

from __future__ import annotations

import json
import math
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import jsonschema
import pytest
import yaml
from unit.config_texts import FULL, ROOT, check_with, load

from ciwrap.base.errors import ConfigError, ConfigMissingError
from ciwrap.model import ErrorBound, EvidencePolicy, VariableId
from ciwrap.model.settings import OWN_FORMATS
from ciwrap.project.config import READER_GROUP, find_config, load_config
from ciwrap.project.schema import LOG_KEYS, OPTIONS, json_schema

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "ciwrap/ciwrap.schema.json"


def test_everything_that_can_be_said() -> None:
    config = load(FULL)
    assert config.golden_dir == ROOT / "baselines"
    assert config.command is not None
    assert config.command.words == ("./simulate", "--fast")
    assert config.command.working_dir == ROOT / "build"
    assert config.command.timeout_seconds == 600
    assert config.command.env == {"OMP_NUM_THREADS": "2", "FLAG": "no"}
    mesh, raw, table = config.checks
    assert (mesh.name, mesh.line, mesh.config_path) == ("mesh", 13, ROOT / "ciwrap.yaml")
    assert mesh.outputs == ("out/iter_{iteration:d}/rank_{rank:d}/{name}.npy",)
    assert mesh.exclude == ("*.log",)
    assert (mesh.strict.dtype, mesh.strict.shape, mesh.strict.variables) == ("true", False, "true")
    assert mesh.is_ignored(VariableId("wall_time", 3))
    assert not mesh.is_ignored(VariableId("x"))
    assert raw.options == {"dtype": "float32", "shape": (-1, 3), "offset": 16, "byte_order": "big"}
    assert raw.command is not None
    assert raw.command.text == "./other"
    assert table.options == {
        "delimiter": "semicolon",
        "header": "no",
        "types": {"a": "int"},
        "final_newline": False,
    }
    settings = table.settings_for(VariableId("a"))
    assert settings.residues_budget_bytes == 3 << 19
    assert settings.data_budget_bytes == 64 << 10


def test_yaml_guesses_no_types() -> None:
    mesh = load(FULL).check("mesh")
    x = mesh.settings_for(VariableId("x"))
    assert x.bound == ErrorBound(atol=1e-3)
    assert x.equal_nan is False
    assert x.fill_values[0] == -1e18
    assert math.isnan(x.fill_values[1])
    assert mesh.settings_for(VariableId("no")).evidence is EvidencePolicy.TREE
    assert mesh.settings_for(VariableId("no")).mask == "dry"


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e-6", 1e-6), ("'1e-6'", 1e-6), ("1", 1.0), (".5", 0.5), ("1.", 1.0), ("+1E-3", 1e-3),
     ("010", 10.0), ("0", 0.0), ("-0", 0.0)],
)  # fmt: skip
def test_numbers_as_people_write_them(written: str, value: float) -> None:
    check = load(check_with(f"atol: {written}")).checks[0]
    assert check.settings_for(VariableId("x")).bound.atol == value


@pytest.mark.parametrize(
    ("written", "value"),
    [("4096", 4096), ("4 KiB", 4096), ("4KiB", 4096), ("64 kb", 64000), ("16 MiB", 16 << 20)],
)
def test_sizes_as_people_write_them(written: str, value: int) -> None:
    check = load(check_with(f"chunk_bytes: {written}")).checks[0]
    assert check.settings_for(VariableId("x")).chunk_bytes == value


def test_checks_as_a_list() -> None:
    config = load("checks:\n- name: a\n  outputs: x\n- {name: b, outputs: [y], atol: 1}\n")
    assert [check.name for check in config.checks] == ["a", "b"]


def test_options_of_foreign_readers_are_typed_as_yaml_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint("grib", "somewhere:Reader", READER_GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    text = check_with("format: grib\noptions: {group: /a, level: 3, eps: 1e-6, deep: [no, 'no']}")
    assert load(text).checks[0].options == {
        "group": "/a",
        "level": 3,
        "eps": 1e-6,
        "deep": [False, "no"],
    }


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "ciwrap.yaml"
    with pytest.raises(ConfigMissingError, match="fix the path"):
        load_config(path)
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(path)
    path.rmdir()
    path.write_bytes(b"version: 1\nchecks: \xff\n")
    with pytest.raises(ConfigError, match=r"ciwrap.yaml:2: is not UTF-8"):
        load_config(path)
    path.write_bytes(b"#" * (5 << 20))
    with pytest.raises(ConfigError, match="larger than 4 MiB"):
        load_config(path)
    path.write_bytes(b"\xef\xbb\xbfchecks: {a: {outputs: x}}\r\n")
    assert load_config(path).root == tmp_path


def test_the_nearest_configuration_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "ciwrap.yaml").write_text(FULL)
    assert find_config(inner) == tmp_path / "ciwrap.yaml"
    (tmp_path / "a" / ".git").mkdir()
    with pytest.raises(ConfigMissingError):
        find_config(inner)


def test_unknown_check_offers_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'mesh'"):
        load(FULL).check("mehs")


def test_schema_file_is_current() -> None:
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == json_schema()


def test_the_schema_can_be_asked_for_again() -> None:
    first = json_schema()
    first.clear()
    assert "properties" in json_schema()


def test_schema_accepts_what_loads() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    # The schema is for editors, which read YAML by its own rules.
    value = yaml.safe_load(
        FULL.replace("1e-6", "1.0e-6").replace("1e-3", "1.0e-3").replace("no:", "'no':")
    )
    value["run"]["env"]["FLAG"] = "no"
    assert [error.message for error in validator.iter_errors(value)] == []
    value["golden"] = 1
    assert not validator.is_valid(value)


@pytest.mark.parametrize(
    ("text", "wanted"), [("[units, made]", ("units", "made")), ("yes", True), ("false", False)]
)
def test_attributes_are_all_none_or_some(text: str, wanted: object) -> None:
    check = load(check_with(f"format: netcdf\noptions: {{attributes: {text}}}")).checks[0]
    assert check.options == {"attributes": wanted}


def test_options_are_those_of_the_readers() -> None:
    from ciwrap.formats.find_outputs import ENTRY_POINT_GROUP, reader_named

    assert ENTRY_POINT_GROUP == READER_GROUP
    names = {option for name in OWN_FORMATS for option in reader_named(name).option_names}
    # What a log is searched for stands in the check itself.
    assert names == {*OPTIONS.keys, *LOG_KEYS}
