"""JSON, TOML and YAML with results in them."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.errors import CiwrapError, CorruptFileError, UnsupportedDtypeError
from ciwrap.formats.find_outputs import reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


class TestJson(ReaderSuite):
    suffix = ".json"
    dtypes = ("<i8", "<f8", "|b1", "<U16")
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4), ())
    format_name = "json"

    def make_reader(self) -> Reader:
        return reader_named(self.format_name)

    def write(self, path: Path, variables: Arrays) -> None:
        values = {name: array.tolist() for name, array in variables.items()}
        path.write_text(json.dumps(values))


class TestYaml(TestJson):
    suffix = ".yaml"
    format_name = "yaml"
    fixed_size = False

    def write(self, path: Path, variables: Arrays) -> None:
        values = {name: array.tolist() for name, array in variables.items()}
        path.write_text(yaml.safe_dump(values))

    def test_garbage(self, tmp_path: Path) -> None:
        """A few letters are a document of YAML, so any bytes may be read."""
        path, arrays = self.example(tmp_path)
        for seed in range(20):
            path.write_bytes(random.Random(seed).randbytes(1 + seed * 50))
            self.read_or_refused(path, arrays)


class TestToml(TestJson):
    suffix = ".toml"
    format_name = "toml"
    fixed_size = False

    def write(self, path: Path, variables: Arrays) -> None:
        def text(value: Any) -> str:
            if isinstance(value, list):
                return "[" + ", ".join(map(text, value)) + "]"
            if isinstance(value, float):
                return repr(value)
            return json.dumps(value)

        lines = [f"{name} = {text(array.tolist())}\n" for name, array in variables.items()]
        path.write_text("".join(lines))


def found(path: Path, text: str, name: str) -> dict[str, Any]:
    path.write_text(text)
    with reader_named(name).open(path) as source:
        return {
            info.name: source.read(info.name, 0, info.element_count).reshape(info.shape).tolist()
            for info in source.variables
        }


def test_results_are_called_by_the_keys_that_lead_to_them(tmp_path: Path) -> None:
    values = {
        "scf": {"energies": [-1.5, -2, -2.25], "converged": True, "cycles": 3, "gap": None},
        "atoms": [{"symbol": "H", "xyz": [0, 0, 1]}, {"symbol": "O", "xyz": [0, 0, 2]}],
        "ragged": [[1, 2], [3]],
        "nothing": {},
        "none": [],
    }
    wanted = {
        "scf.energies": [-1.5, -2.0, -2.25],
        "scf.converged": True,
        "scf.cycles": 3,
        "scf.gap.is_null": True,
        "atoms.0.symbol": "H",
        "atoms.0.xyz": [0, 0, 1],
        "atoms.1.symbol": "O",
        "atoms.1.xyz": [0, 0, 2],
        "ragged.0": [1, 2],
        "ragged.1": [3],
        "nothing.": [],
        "none": [],
    }
    assert found(tmp_path / "r.json", json.dumps(values), "json") == wanted
    assert found(tmp_path / "r.yaml", yaml.safe_dump(values, sort_keys=False), "yaml") == wanted
    toml = "[scf]\nenergies = [-1.5, -2.0]\nday = 2024-01-02\n[[atoms]]\nsymbol = 'H'\n"
    assert (
        found(tmp_path / "r.toml", toml, "toml")
        == {
            "scf.energies": [-1.5, -2.0],
            "scf.day": "2024-01-02",
            "atoms.symbol": "H",
        }
        or found(tmp_path / "r.toml", toml, "toml")["atoms.0.symbol"] == "H"
    )


def test_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    """Python writes them, so a run that went wrong is compared and not refused."""
    values = found(tmp_path / "r.json", '{"e": [NaN, -Infinity, 1]}', "json")["e"]
    assert np.isnan(values[0])
    assert values[1:] == [-np.inf, 1.0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("json", '{"a": 1, "a": 2}', "has the key 'a' twice"),
        ("json", '{"a": [1, 2', "is not JSON"),
        ("json", "", "is empty"),
        ("json", '{"a.b": 1, "a": {"b": 2}}', "is in the file twice"),
        ("json", "[" * 90 + "{}" + "]" * 90, "is nested too deeply"),
        ("json", '{"a": 1e-400}', "a number that is too small: 1e-400"),
        ("yaml", "a: 1e400", "a number that is too large: 1e400"),
        ("yaml", "a: -0.01e-400", "a number that is too small: -0.01e-400"),
        ("toml", "a = 1e400", "a number that is too large: 1e400"),
        ("toml", "a = 1_0.0e-400", "a number that is too small: 1_0.0e-400"),
        ("yaml", "a: !!python/object/apply:os.getcwd []", "uses a tag"),
        ("yaml", "a: &x 1\nb: *x", "uses an anchor"),
        ("yaml", "", "is empty"),
        ("toml", "a = 1\na = 2\n", "is not TOML"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(CiwrapError) as caught:
        found(tmp_path / f"r.{name}", text, name)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_number_beyond_64_bits_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedDtypeError, match="does not fit 64 bits"):
        found(tmp_path / "r.json", '{"a": 18446744073709551616}', "json")


@given(data=st.binary(max_size=60) | st.text(max_size=60).map(lambda one: one.encode("utf-8")))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.doc"
    path.write_bytes(data)
    for name in ("json", "toml", "yaml"):
        message = ""
        try:
            with reader_named(name).open(path) as source:
                for info in source.variables:
                    if info.fault is None:
                        source.read(info.name, 0, info.element_count)
        except CiwrapError as error:
            message = str(error)
        assert message.isprintable()


def test_an_empty_file_of_any_format(tmp_path: Path) -> None:
    for name in ("json", "yaml"):
        with pytest.raises(CorruptFileError):
            found(tmp_path / "r", " \n", name)


@pytest.mark.parametrize("value", ["5", "[1, 2]", '[{"e": 1}]', "null", "{}"])
def test_a_document_is_not_one_with_a_key_called_like_the_file(tmp_path: Path, value: str) -> None:
    variables = []
    for text in (value, f'{{"x": {value}}}'):
        path = tmp_path / "x.json"
        path.write_text(text)
        with reader_named("json").open(path) as source:
            variables.append([(one.name, one.labels) for one in source.variables])
    assert [name for name, _ in variables[0]] == [name for name, _ in variables[1]]
    assert variables[0] != variables[1]
