"""The action's own installation: which Python, which wheel, where to; without a network."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from action.act_runs import ROOT, bootstrap

if TYPE_CHECKING:
    from pathlib import Path

boot = bootstrap()


@pytest.fixture
def step(tmp_path: Path) -> dict[str, str]:
    """The environment of a step on a runner."""
    (tmp_path / "outputs").touch()
    (tmp_path / "temp").mkdir()
    return {
        "PATH": "/usr/bin:/bin",
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "RUNNER_TOOL_CACHE": str(tmp_path / "tools"),
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
    }


def told(step: dict[str, str]) -> dict[str, str]:
    from pathlib import Path

    lines = Path(step["GITHUB_OUTPUT"]).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_preparing(step: dict[str, str]) -> None:
    boot.prepare(step)
    outputs = told(step)
    assert outputs["how"] == "source"
    assert outputs["build"] == "true"
    assert outputs["key"].startswith(f"ciwrap-cp3{sys.version_info[1]}-")
    assert outputs["folder"].startswith(step["RUNNER_TOOL_CACHE"])


@pytest.mark.parametrize(
    ("mode", "opens", "has_token"),
    [
        ("comment", "false", True),
        ("accept", "", True),
        ("update", "true", True),
        ("update", "false", False),
        ("check", "true", False),
        ("", "", False),
    ],
)
def test_nothing_kept_is_run_where_there_is_a_token(
    step: dict[str, str], mode: str, opens: str, has_token: bool
) -> None:
    boot.prepare({**step, "CIWRAP_INPUT_MODE": mode, "CIWRAP_INPUT_PULL_REQUEST": opens})
    outputs = told(step)
    assert outputs["build"] == ("false" if has_token else "true")
    kept = step["RUNNER_TEMP"] if has_token else step["RUNNER_TOOL_CACHE"]
    assert outputs["folder"].startswith(kept)


def test_the_key_changes_with_what_is_built(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot, "source_root", lambda: tmp_path / "source")
    keys = set()
    (tmp_path / "source/csrc").mkdir(parents=True)
    for content in ("a", "b"):
        (tmp_path / "source/csrc/x.cpp").write_text(content)
        for extras in ("", "hdf5"):
            boot.prepare({**step, "CIWRAP_EXTRAS": extras})
            keys.add(told(step)["key"])
    assert len(keys) == 4
    (tmp_path / "source/notes.txt").write_text("no part of a wheel")
    boot.prepare({**step, "CIWRAP_EXTRAS": "hdf5"})
    assert told(step)["key"] in keys


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CIWRAP_VERSION", "1.0; id"), ("CIWRAP_VERSION", "--index-url=x"),
        ("CIWRAP_VERSION", "latest"), ("CIWRAP_EXTRAS", "a]b"), ("CIWRAP_EXTRAS", "../x"),
        ("CIWRAP_EXTRAS", "a,,b"), ("CIWRAP_PYTHON_VERSION", "3"),
        ("CIWRAP_PYTHON_VERSION", "../../bin/sh"), ("CIWRAP_PYTHON_VERSION", "3.99"),
    ],
)  # fmt: skip
def test_what_has_no_meaning(step: dict[str, str], name: str, value: str) -> None:
    with pytest.raises(boot.BootstrapError):
        boot.prepare({**step, name: value})


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"),
                                                 ("linux", "ppc64le")])  # fmt: skip
def test_other_platforms_are_told_what_to_do(
    step: dict[str, str], monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(boot.sys, "platform", system)
    monkeypatch.setattr(boot.platform, "machine", lambda: machine)
    with pytest.raises(boot.BootstrapError, match="Linux job"):
        boot.prepare(step)


def test_no_python_that_will_do(step: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "version_of", lambda _: ((3, 9), True))
    with pytest.raises(boot.BootstrapError, match="setup-python"):
        boot.find_python(step)
    monkeypatch.setattr(boot, "version_of", lambda python: ((3, 12), False) if python else None)
    with pytest.raises(boot.BootstrapError, match="python3-venv"):
        boot.find_python(step)


def test_a_python_of_the_tool_cache(step: dict[str, str], tmp_path: Path) -> None:
    version = f"3.{sys.version_info[1]}"
    there = tmp_path / f"tools/Python/{version}.99/x64/bin/python"
    there.parent.mkdir(parents=True)
    there.symlink_to(sys.executable)
    found = boot.find_python({**step, "CIWRAP_PYTHON_VERSION": version})
    assert boot.version_of(found)[0] == sys.version_info[:2]


def fake_wheel(folder: Path) -> None:
    """A ciwrap that only says where it is; it depends on nothing."""
    folder.mkdir(parents=True)
    files = {
        "ciwrap/__init__.py": b"where = __file__\n",
        "ciwrap-9.9.dist-info/METADATA": b"Metadata-Version: 2.1\nName: ciwrap\nVersion: 9.9\n",
        "ciwrap-9.9.dist-info/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    files["ciwrap-9.9.dist-info/RECORD"] = "".join(lines).encode()
    with zipfile.ZipFile(folder / "ciwrap-9.9-py3-none-any.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def fake_pins(folder: Path, monkeypatch: pytest.MonkeyPatch, digest: str | None = None) -> Path:
    """What the fake ciwrap needs, in a list of hashes; the folder where pip finds it."""
    name = "needed-1.0-py3-none-any.whl"
    (folder / "index").mkdir()
    text = "Metadata-Version: 2.1\nName: needed\nVersion: 1.0\n"
    wheel = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / "index" / name, "w") as archive:
        archive.writestr("needed.py", "x = 1\n")
        archive.writestr("needed-1.0.dist-info/METADATA", text)
        archive.writestr("needed-1.0.dist-info/WHEEL", wheel)
        archive.writestr("needed-1.0.dist-info/RECORD", "")
    digest = digest or hashlib.sha256((folder / "index" / name).read_bytes()).hexdigest()
    (folder / "pins.txt").write_text(f"needed==1.0 --hash=sha256:{digest}\n")
    monkeypatch.setattr(boot, "RUN_PINS", str(folder / "pins.txt"))
    return folder / "index"


def test_what_has_another_hash_is_not_installed(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_wheel(tmp_path / "wheels")
    index = fake_pins(tmp_path, monkeypatch, digest="0" * 64)
    folder = tmp_path / "tools/ciwrap/key"
    given = {
        **step, "CIWRAP_BASE_PYTHON": sys.executable, "CIWRAP_HOW": "source",
        "CIWRAP_FOLDER": str(folder), "CIWRAP_WHEELS": str(tmp_path / "wheels"),
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index),
    }  # fmt: skip
    with pytest.raises(boot.BootstrapError, match="failed with exit code"):
        boot.install(given)
    assert not (folder / "complete").exists()


def test_with_a_token_nothing_comes_from_an_index_but_by_hash(step: dict[str, str]) -> None:
    given = {**step, "CIWRAP_INPUT_MODE": "accept", "CIWRAP_EXTRAS": "hdf5"}
    boot.prepare(given)
    assert told(step)["extras"] == ""
    with pytest.raises(boot.BootstrapError, match="has no meaning in a job with a token"):
        boot.prepare({**given, "CIWRAP_VERSION": "1.2.3"})


def test_for_a_comment_nothing_is_built(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot.prepare({**step, "CIWRAP_INPUT_MODE": "comment"})
    assert (told(step)["how"], told(step)["build"]) == ("checkout", "false")
    index = fake_pins(tmp_path, monkeypatch)
    own = tmp_path / "checkout"
    (own / "ciwrap").mkdir(parents=True)
    (own / "ciwrap/__init__.py").write_text("where = __file__\n")
    monkeypatch.setattr(boot, "source_root", lambda: own)
    monkeypatch.setattr(boot, "build_wheel", lambda *_: pytest.fail("built"))
    given = {
        **step, "CIWRAP_BASE_PYTHON": sys.executable, "CIWRAP_HOW": "checkout",
        "CIWRAP_FOLDER": str(tmp_path / "environment"), "CIWRAP_WHEELS": str(tmp_path / "wheels"),
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index),
    }  # fmt: skip
    boot.install(given)
    code = "import ciwrap, needed; print(ciwrap.where)"
    python = told(step)["python"]
    said = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(str(own))


def test_installing_a_cached_wheel(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_wheel(tmp_path / "wheels")
    index = fake_pins(tmp_path, monkeypatch)
    folder = tmp_path / "tools/ciwrap/key"
    given = {
        **step,
        "CIWRAP_BASE_PYTHON": sys.executable,
        "CIWRAP_HOW": "source",
        "CIWRAP_EXTRAS": "",
        "CIWRAP_FOLDER": str(folder),
        "CIWRAP_WHEELS": str(tmp_path / "wheels"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        # What would lead it astray.
        "PYTHONPATH": str(ROOT),
        "PIP_TARGET": str(tmp_path / "astray"),
        "PIP_REQUIRE_VIRTUALENV": "1",
    }
    boot.install(given)
    python = told(step)["python"]
    said = subprocess.run(
        [python, "-I", "-c", "import ciwrap, needed; print(ciwrap.where)"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.startswith(str(folder))
    assert not (tmp_path / "astray").exists()
    # Again: it is there already.
    (tmp_path / "wheels/ciwrap-9.9-py3-none-any.whl").unlink()
    boot.install(given)


def test_a_half_made_environment_is_made_anew(step: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "tools/ciwrap/key"
    folder.mkdir(parents=True)
    (folder / "rest").touch()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/ciwrap-9.9-py3-none-any.whl").write_bytes(b"no zip")
    given = {
        **step, "CIWRAP_BASE_PYTHON": sys.executable, "CIWRAP_HOW": "source",
        "CIWRAP_FOLDER": str(folder), "CIWRAP_WHEELS": str(tmp_path / "wheels"),
        "PIP_NO_INDEX": "1",
    }  # fmt: skip
    with pytest.raises(boot.BootstrapError, match="failed with exit code"):
        boot.install(given)
    assert not (folder / "rest").exists()
    assert not (folder / "complete").exists()


def test_it_runs_on_a_python_that_is_too_old_for_ciwrap() -> None:
    """To say so, it must at least be read by one."""
    source = (ROOT / "ciwrap/action/bootstrap.py").read_text(encoding="utf-8")
    compile(source, "bootstrap.py", "exec", dont_inherit=True)
    import ast

    ast.parse(source, feature_version=(3, 8))


def test_without_a_compiler_it_says_so(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(boot.BootstrapError, match=r"g\+\+"):
        boot.build_wheel(step, tmp_path / "wheels")


@pytest.mark.parametrize("there", [True, False])
def test_a_release_installs_exactly_the_wheel_that_belongs_to_it(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    commands = []
    wheels = tmp_path / "wheels"

    def call(command: list[str], _: dict[str, str], *, check: bool = True) -> int:
        commands.append(command)
        found = "download" in command and there
        if found or "wheel" in command:
            (wheels / "ciwrap-1.2.3-cp312-cp312-manylinux_2_28_x86_64.whl").touch()
        return 0 if found or check else 1

    monkeypatch.setattr(boot, "call", call)
    given = {**step, "CIWRAP_BASE_PYTHON": "python3", "CIWRAP_HOW": "pinned"}
    boot.make_environment(given, tmp_path / "venv", wheels)
    download = next(one for one in commands if "download" in one)
    assert {"--require-hashes", "--only-binary=:all:", "--no-deps"} <= set(download)
    built = [one for one in commands if "wheel" in one]
    assert bool(built) is not there
    for one in commands:
        # Whatever else is asked of pip takes nothing from an index but what is known by its hash.
        is_safe = "--no-index" in one or {"--require-hashes", "--only-binary=:all:"} <= set(one)
        assert is_safe or "pip" not in one, one
    assert all("--no-build-isolation" in one for one in built)
    assert commands[-1][-1].startswith(str(wheels))


def test_a_version_is_never_built(
    step: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(boot, "call", lambda command, _: commands.append(command))
    given = {**step, "CIWRAP_BASE_PYTHON": "x", "CIWRAP_HOW": "1.2.3", "CIWRAP_EXTRAS": "hdf5"}
    boot.make_environment(given, tmp_path / "venv", tmp_path / "wheels")
    assert commands[-1][-2:] == ["--only-binary=ciwrap", "ciwrap[hdf5]==1.2.3"]


def test_all_that_a_build_reads_is_copied() -> None:
    pattern = re.compile(r"\$\{(?:PROJECT|CMAKE_CURRENT)_SOURCE_DIR\}/([A-Za-z][A-Za-z_.]*)")
    files = [
        ROOT / "CMakeLists.txt",
        *ROOT.glob("cmake/*.cmake"),
        *ROOT.glob("csrc/**/CMakeLists.txt"),
    ]
    named = {name for file in files for name in pattern.findall(file.read_text("utf-8"))}
    assert {"csrc", "golden", "ciwrap.yaml"} <= named
    assert named - {"tests"} <= set(boot.SOURCES)
