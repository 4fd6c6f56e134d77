"""How each mistake in ciwrap.yaml is reported, and that any text loads or is such a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.config_texts import FULL, check_with, load

from ciwrap.base.errors import ConfigError, ConfigMissingError, ExitCode
from ciwrap.model import VariableId
from ciwrap.project.config import find_config

# Each: what is written, then parts that the message must hold, the place first.
MISTAKES = {
    "empty": ("", "ciwrap.yaml: is empty"),
    "comment only": ("# nothing\n", "is empty"),
    "no checks": ("version: 1\n", "checks: is required"),
    "no check": ("checks: {}\n", "1:9: checks: holds no check"),
    "null checks": ("checks:\n", "1:1: checks: is empty"),
    "list on top": ("[1, 2]\n", "1:1: must be a mapping of keys to values, not a list"),
    "text on top": ("hello\n", "not 'hello'"),
    "unknown key": (
        "golden: x\nchecks: {a: {outputs: x}}\n",
        "1:1: golden: unknown key",
        "'golden_dir'",
    ),
    "unknown key in check": (check_with("atoll: 1"), "4:5: checks.a.atoll: unknown key", "'atol'"),
    "unknown key without a near one": (check_with("zzz: 1"), "zzz: unknown key (known here: atol"),
    "unknown key in rule": (
        check_with("variables:\n  x: {rtoll: 1}"),
        "5:11: checks.a.variables.x.rtoll",
        "'rtol'",
    ),
    "key twice": (
        check_with("atol: 1\natol: 2"),
        "5:5: checks.a.atol: is given twice (first in line 4)",
    ),
    "check twice": (
        "checks:\n  a: {outputs: x}\n  a: {outputs: y}\n",
        "3:3: checks.a: is given twice",
    ),
    "name twice": (
        "checks:\n- {name: a, outputs: x}\n- {name: a, outputs: y}\n",
        "3:3: checks.1: is the second check named 'a' (first in line 2)",
    ),
    "no outputs": ("checks:\n  a:\n    atol: 1\n", "checks.a.outputs: is required"),
    "outputs empty": (
        "checks:\n  a:\n    outputs: []\n",
        "3:14: checks.a.outputs: names no outputs",
    ),
    "outputs a mapping": (
        "checks:\n  a:\n    outputs: {b: c}\n",
        "must be a text or a list of texts",
    ),
    "outputs not text": (
        "checks:\n  a:\n    outputs: [x, [y]]\n",
        "3:18: checks.a.outputs.1: must be text",
    ),
    "negative bound": (
        check_with("atol: -1e-6"),
        "4:11: checks.a.atol: must be finite and not negative, not -1e-6",
    ),
    "nan bound": (check_with("rtol: .nan"), "4:11: checks.a.rtol: must be finite"),
    "inf bound": (check_with("rtol: inf"), "4:11: checks.a.rtol: must be finite"),
    "huge bound": (check_with("atol: 1e400"), "1e400 is beyond the range of a double"),
    "huge whole bound": (
        check_with("atol: 1" + "0" * 400),
        "000... is beyond the range of a double",
    ),
    "bound a word": (check_with("atol: small"), "must be a number, not 'small'"),
    "bound with underscore": (check_with("atol: 1_0"), "must be a number, not '1_0'"),
    "bound nothing": (
        check_with("variables: {x: {atol: }}"),
        "4:21: checks.a.variables.x.atol: is empty",
    ),
    "command nothing": (check_with("run: {command: [a, [b]]}"), "must be text, not a list"),
    "ulps and atol": (
        check_with("variables:\n  x:\n    ulps: 3\n    atol: 1e-6"),
        "6:9: checks.a.variables.x.ulps: ulps excludes atol and rtol, but atol is given in line 7",
    ),
    "ulps fraction": (check_with("ulps: 1.5"), "must be a whole number, not '1.5'"),
    "even residue levels": (
        check_with("residue_levels: 4"),
        "must be 1 or an odd number from 3 to 255, not 4",
    ),
    "residue levels": (check_with("residue_levels: 257"), "must be from 1 to 255, not 257"),
    "chunk too small": (check_with("chunk_bytes: 63"), "must be from 64 to 16777216 bytes, not 63"),
    "size unit": (check_with("chunk_bytes: 4 KiBs"), "such as 4096 or '4 KiB', not '4 KiBs'"),
    "size fraction": (check_with("data_budget_bytes: 0.3 KiB"), "not a whole number of bytes"),
    "evidence": (
        check_with("evidence: residue"),
        "must be one of auto, data, residues, tree",
        "'residues'",
    ),
    "boolean": (check_with("equal_nan: maybe"), "must be true or false, not 'maybe'"),
    "fill value": (check_with("fill_values: [1, x]"), "must be a number, not 'x'"),
    "fill values": (check_with(f"fill_values: {list(range(17))}"), "may hold 16 values at most"),
    "rule empty": (check_with("variables:\n  x:"), "5:7: checks.a.variables.x: is empty"),
    "rule not a mapping": (
        check_with("variables: {x: 1e-6}"),
        "must be a mapping of keys to values, not '1e-6'",
    ),
    "strict": (check_with("strict: yes"), "must be a mapping"),
    "strict variables": (
        check_with("strict: {variables: new-allowed}"),
        "4:25: checks.a.strict.variables: must be true, false or allow-new, not 'new-allowed'",
        "did you mean 'allow-new'",
    ),
    "called elsewhere": (check_with("tolerance: 1e-6"), "unknown key", "did you mean 'atol'"),
    "strict key": (check_with("strict: {variable: no}"), "4:14", "did you mean 'variables'"),
    "run empty": (check_with("run: {}"), "checks.a.run.command: is required"),
    "run list empty": (check_with("run: []"), "4:10: checks.a.run: must hold at least one word"),
    "timeout": (
        check_with("run: {command: a, timeout_seconds: -1}"),
        "must be a positive number of seconds",
    ),
    "timeout key": (
        check_with("run: {command: a, timeout: 1}"),
        "unknown key",
        "'timeout_seconds'",
    ),
    "field": (
        "checks:\n  a:\n    outputs:\n    - x\n    - out/{step:d}.npy\n",
        "5:7: checks.a.outputs.1: 'out/{step:d}.npy' has an unknown field {step:d}",
        "the fields are {iteration:d}, {rank:d}, {name} and {*}",
    ),
    "field in one output": (
        "checks:\n  a:\n    outputs: out/{}\n",
        "3:14: checks.a.outputs: 'out/{}' has an unknown field",
    ),
    "layout": (check_with("layout: '{name}{name}'"), "4:13: checks.a.layout: ", "{name} twice"),
    "format": (
        check_with("format: txt"),
        "4:13: checks.a.format: there is no reader 'txt' (known: npy, npz, raw, spice, text",
        "did you mean 'text'",
    ),
    "option": (
        check_with("options: {dtyp: f4}"),
        "4:15: checks.a.options.dtyp: unknown key",
        "'dtype'",
    ),
    "option value": (
        check_with("options: {shape: [2, x]}"),
        "4:26: checks.a.options.shape.1: must be a whole",
    ),
    "attributes": (
        check_with("options: {attributes: units}"),
        "4:27: checks.a.options.attributes: must be true or false, not 'units'",
    ),
    "column type": (
        check_with("options: {types: {a: str}}"),
        "must be one of int, float, text, not 'str'",
    ),
    "version": ("version: 2\nchecks: {a: {outputs: x}}\n", "1:10: version: version 2 is not known"),
    "tab": ("checks:\n\ta: 1\n", "2:1:", "indent with spaces, not tabs"),
    "unquoted glob": ("checks:\n  a:\n    outputs: *.npy\n", "3:15:", "must stand in quotes"),
    "open quote": ("a: 'b\n", "unexpected end"),
    "two documents": ("a: 1\n---\nb: 2\n", "2:1:"),
    "merge key": ("<<: {a: b}\n", "merge keys are not supported"),
    "alias of itself": ("a: &x [*x]\n", "unfolds to more"),
    "tag": ("!!python/object:os.system x\n", "means nothing here"),
    "own tag": ("checks: !odd {}\n", "means nothing here"),
    "control character": ("checks: \x00\n", "ciwrap.yaml:1: has a character"),
    "no text": (
        check_with('mask: "a\\0"'),
        "4:11: checks.a.mask: has a character that no name, path or command can have (U+0000)",
    ),
    "half a character": (check_with('ignore: ["\\uD83D"]'), "checks.a.ignore.0", "(U+D83D)"),
    "no name": ('checks: {"a\\0": {outputs: x}}\n', "1:10:", "(U+0000)"),
    "binary": (check_with("mask: !!binary MQ=="), "4:11: checks.a.mask", "means nothing here"),
    "variable with a sign": (
        check_with("run: {command: a, env: {A=B: c}}"),
        "4:29: checks.a.run.env.A=B: is not a variable name",
    ),
    "variable without a name": (
        check_with("run: {command: a, env: {'': c}}"),
        "4:29: checks.a.run.env.: is not a variable name",
    ),
    "null in a command": (
        check_with("run: [solve, --with, null]"),
        "4:26: checks.a.run.2: must be text, not nothing; put it in quotes",
    ),
    "bound next to nothing": (
        check_with("atol: 1e-400"),
        "4:11: checks.a.atol: 1e-400 is too close to 0 for a double",
    ),
    "no folders of runs": (
        check_with("ensemble: []"),
        "4:15: checks.a.ensemble: names no folders",
    ),
    "list as key": ("? [a]\n: b\n", "a key must be plain text"),
    "several mistakes": (
        "checks:\n  a: {outputs: x, ulps: x}\n  b: {outputs: y, atol: z}\n",
        ":2:25: checks.a.ulps",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    text, place, *rest = MISTAKES[name]
    with pytest.raises(ConfigError) as caught:
        load(text)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith("/project/ciwrap.yaml:")
    for part in (place, *rest):
        assert part in message
    assert caught.value.exit_code is ExitCode.USAGE


def test_aliases_cannot_unfold_without_end() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for one, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{one}: &{one} [{', '.join(['*' + before] * 9)}]")
    with pytest.raises(ConfigError, match="unfolds to more"):
        load("\n".join(lines))


def test_aliases_may_be_used() -> None:
    text = check_with("variables: {x: &loose {atol: 1}, y: *loose}")
    assert load(text).checks[0].settings_for(VariableId("y")).bound.atol == 1


def test_names_of_files_may_be_of_any_bytes() -> None:
    """Python's own notation for what is not UTF-8 is let through."""
    assert load('checks: {a: {outputs: "out/\\uDCE9.npy"}}').checks[0].outputs == (
        "out/\udce9.npy",
    )


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ConfigError):
        load("[" * 5000)


@given(st.text(max_size=80))
def test_any_text_loads_or_is_a_config_error(text: str) -> None:
    try:
        load(text)
    except ConfigError as error:
        message = str(error)
        assert message.isprintable()


@given(st.data())
def test_mutated_configurations_load_or_are_config_errors(data: st.DataObject) -> None:
    lines = FULL.split("\n")
    number = data.draw(st.integers(0, len(lines) - 1))
    line = lines[number]
    position = data.draw(st.integers(0, len(line)))
    inserted = data.draw(
        st.sampled_from(["", "x", ":", "-", "{", "]", "'", "&a ", "*", "\t", "#", "!"])
    )
    lines[number] = line[:position] + inserted + line[position + data.draw(st.integers(0, 2)) :]
    try:
        load("\n".join(lines))
    except ConfigError as error:
        message = str(error)
        assert message.isprintable()


@pytest.mark.parametrize("name", ["ciwrap.yml", ".ciwrap.yaml"])
def test_a_configuration_that_is_called_otherwise(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("checks: {}\n")
    (tmp_path / "below").mkdir()
    with pytest.raises(ConfigMissingError, match=rf"{name}: is not called ciwrap.yaml; rename it"):
        find_config(tmp_path / "below")
