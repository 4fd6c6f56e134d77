"""Errors: exit codes, one-line texts, the builtins they also are, documentation of each."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from ciwrap.base import errors
from ciwrap.base.errors import CiwrapError, ConfigError, ExitCode, core_error

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md"
KINDS = list(errors.all_errors().values())


def test_exit_codes_are_those_of_the_contract() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3]
    for kind in KINDS:
        is_usage = issubclass(kind, errors.UsageError)
        assert kind.exit_code == (ExitCode.USAGE if is_usage else ExitCode.NOT_COMPARABLE)


def test_every_class_has_a_slug_of_its_own() -> None:
    classes = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, CiwrapError)
    }
    assert classes == set(KINDS)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.slug) for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.slug)
def test_text_is_one_line_and_survives_pickling(kind: type[CiwrapError]) -> None:
    error = kind("is\nbad", file="dir/na\nme\x1b[31m.npy", remedy="mend it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    for one in (error, again):
        assert str(one).isprintable()
        assert "is bad" in str(one)
        assert "na\\nme\\x1b[31m.npy" in str(one)
        assert str(one).endswith("; mend it")


def test_variable_stands_after_the_file() -> None:
    error = errors.ShapeMismatchError("has another shape", file="a.npy", variable="iter 1 / x")
    assert str(error) == "a.npy: iter 1 / x: has another shape"


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.GoldenMissingError, FileNotFoundError),
        (errors.OutputMissingError, FileNotFoundError),
        (errors.ConfigMissingError, FileNotFoundError),
        (errors.UnreadableFileError, OSError),
        (errors.CorruptGoldenError, ValueError),
        (errors.DtypeMismatchError, TypeError),
        (errors.VariableMissingError, KeyError),
        (errors.LockBusyError, TimeoutError),
        (errors.ReaderPluginError, ImportError),
        (errors.InvalidBoundError, ValueError),
    ],
)
def test_errors_are_the_builtins_they_resemble(
    kind: type[CiwrapError], builtin: type[Exception]
) -> None:
    with pytest.raises(builtin) as caught:
        raise kind("no", file="here")
    if isinstance(caught.value, OSError):
        assert caught.value.filename == "here"
        assert caught.value.errno is not None


def test_config_error_names_line_column_key_and_suggestion() -> None:
    error = ConfigError(
        "unknown key", file="c.yaml", line=3, column=5, key="checks.a.atoll", suggestion="atol"
    )
    assert str(error) == "c.yaml:3:5: checks.a.atoll: unknown key; did you mean 'atol'?"
    assert str(ConfigError("unknown key", key="format")) == "format: unknown key"
    assert str(ConfigError("is empty")) == "is empty"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_argument", errors.UsageError),
        ("io", errors.UnreadableFileError),
        ("corrupt_file", errors.CorruptFileError),
        ("unsupported", errors.UnsupportedFormatError),
        ("too_large", errors.FileLimitError),
        ("not_available", errors.NotAvailableError),
        ("interrupted", errors.InterruptedCallError),
        ("a code of the future", errors.NotComparableError),
    ],
)
def test_core_errors_become_ours(code: str, kind: type[CiwrapError]) -> None:
    error = core_error(code, "a/x.npy: broken")
    assert (type(error), error.code, str(error)) == (kind, code, "a/x.npy: broken")
    error.blame(file="a/x.npy", variable="x")
    error.blame(file="another", variable="y")
    assert str(error) == "a/x.npy: x: broken"


def test_every_error_is_documented() -> None:
    headings = re.findall(r"^### `([a-z-]+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(errors.all_errors())
