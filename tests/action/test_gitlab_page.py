"""What the page on GitLab and plain shells says, done."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from action.act_runs import ROOT, commit, git, make_repository
from action.conftest import CONFIG, SIMULATE

PAGE = (ROOT / "docs/how-to/gitlab-and-shell.md").read_text(encoding="utf-8")
TEMPLATE = (ROOT / "ciwrap/cli/templates/gitlab.yml").read_text(encoding="utf-8")
INPUTS = yaml.safe_load(TEMPLATE.partition("\n---\n")[0])["spec"]["inputs"]
DEFAULTS = {name: str(one["default"]) for name, one in INPUTS.items()}
JOB = yaml.safe_load(
    re.sub(
        r"\$\[\[ inputs\.(\w+) \]\]", lambda one: DEFAULTS[one[1]], TEMPLATE.partition("---\n")[2]
    )
)["numbers"]
SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def folder(tmp_path: Path, golden_files: dict[str, bytes]) -> Path:
    files = {"simulate.py": SIMULATE, "ciwrap.yaml": CONFIG, ".gitignore": "out/\n.ciwrap/\n"}
    made = make_repository(tmp_path / "project", {}, files)
    (made / "golden").mkdir()
    for name, data in golden_files.items():
        (made / "golden" / name).write_bytes(data)
    commit(made)
    return made


def shell(folder: Path, script: str) -> int:
    """Runs a script with ciwrap on PATH; what would be installed is here already."""
    kept = [
        line for line in script.splitlines() if "pip install" not in line and "-m venv" not in line
    ]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    text = "\n".join(kept).replace(".ciwrap-venv/bin/", "")
    done = subprocess.run(
        ["sh", "-c", text], cwd=folder, env={**os.environ, "PATH": path}, check=False
    )
    return done.returncode


def break_it(folder: Path) -> None:
    config = (folder / "ciwrap.yaml").read_text().replace("simulate.py", "simulate.py 0.5")
    (folder / "ciwrap.yaml").write_text(config)
    commit(folder)


def test_plain_shell(folder: Path) -> None:
    assert shell(folder, SHELL) == 0
    break_it(folder)
    assert shell(folder, SHELL) == 1
    for name in ("ciwrap-result.json", "ciwrap-report.html", ".ciwrap/pending/mesh.golden"):
        assert (folder / name).is_file(), name


def test_gitlab_and_back(folder: Path, tmp_path: Path) -> None:
    break_it(folder)
    assert shell(folder, "\n".join(JOB["script"])) == 1
    assert (folder / JOB["artifacts"]["reports"]["junit"]).is_file()
    # As GitLab zips what the job names.
    with zipfile.ZipFile(tmp_path / "artifacts.zip", "w") as archive:
        for name in JOB["artifacts"]["paths"]:
            top = folder / name
            assert top.exists(), name
            for path in [top] if top.is_file() else sorted(top.rglob("*")):
                archive.write(path, path.relative_to(folder))
    git(folder, "clean", "-qfdx")
    accept = f"ciwrap accept --from {tmp_path / 'artifacts.zip'} --reason x"
    assert shell(folder, accept) == 0
    assert shell(folder, "\n".join(JOB["script"])) == 0


def test_several_platforms(folder: Path) -> None:
    for key in ("linux-x64", "linux-arm64"):
        assert shell(folder, f"ciwrap run --golden-dir golden/{key} --json {key}.json") == 3
        assert shell(folder, f"ciwrap accept --golden-dir golden/{key}") == 0
        assert shell(folder, f"ciwrap run --golden-dir golden/{key} --json {key}.json") == 0
    command = re.search(r"\$ (ciwrap report .*)", PAGE)
    assert command is not None
    assert shell(folder, command[1]) == 0
    assert (folder / "report.html").is_file()


def test_another_command(folder: Path) -> None:
    assert shell(folder, "ciwrap run --command 'python3 simulate.py 0.5'") == 1
    assert shell(folder, "ciwrap run --command ' '") == 2
    assert shell(folder, "ciwrap run --command 'exit 3'") == 3
    assert shell(folder, "ciwrap run --command 'python3 simulate.py'") == 0


def test_a_merge_request_against_its_target(folder: Path) -> None:
    script = "\n".join(JOB["script"]).replace("--pending", "--base main")
    git(folder, "switch", "-q", "-c", "work")
    assert shell(folder, script) == 0
    text = (folder / "simulate.py").read_text()
    (folder / "simulate.py").write_text(text.replace("i / 7", "i / 8"))
    commit(folder)
    assert shell(folder, script) == 1
    assert (folder / "ciwrap-junit.xml").is_file()
