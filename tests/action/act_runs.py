"""Runs workflows under act, in host mode and in an empty network namespace; reads act's JSON.

Never act's exit code: it is 0 for a job that was skipped for want of a platform.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ciwrap import _core

ROOT = Path(__file__).resolve().parents[2]
STUBS = Path(__file__).resolve().parent / "stubs"
_API_PORT = 8123  # in a namespace of its own, so it is always free
ACTION_REF = "YOUR_ORGANISATION/ciwrap@v1"
_NO_TOOL_CACHE = '"" if has_token(environment) else '
_USES = re.compile(r"uses: *(actions/[a-z/-]+)@([0-9a-f]{40})")


@cache
def missing_tool() -> str:
    """Why act cannot run here, '' if it can."""
    if act_path() is None:
        return "act is not installed (tools/act-tests installs it)"
    tried = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "network namespaces are forbidden here"


def act_path() -> str | None:
    return os.environ.get("CIWRAP_ACT") or shutil.which("act")


@cache
def bootstrap(root: Path = ROOT) -> Any:
    path = root / "ciwrap/action/bootstrap.py"
    spec = importlib.util.spec_from_file_location("ciwrap_bootstrap", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Step:
    """What act tells of one step: its lines, workflow commands and result."""

    name: str
    result: str = ""
    lines: list[str] = field(default_factory=list)
    commands: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Job:
    """One job (of a matrix: one leg)."""

    result: str = ""
    matrix: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)

    def step(self, name: str) -> Step:
        """The step whose id is, or whose name holds, that text."""
        found = [s for key, s in self.steps.items() if name == key or name in s.name]
        assert len(found) == 1, (name, list(self.steps), [s.name for s in self.steps.values()])
        return found[0]

    @property
    def annotations(self) -> list[tuple[str, dict[str, str], str]]:
        return [
            (one["command"], one.get("kvPairs") or {}, one["arg"])
            for step in self.steps.values()
            for one in step.commands
            if one["command"] in ("error", "warning", "notice")
        ]

    @property
    def summary(self) -> str:
        return "".join(
            one["content"]
            for step in self.steps.values()
            for one in step.commands
            if one["command"] == "summary"
        )

    @property
    def text(self) -> str:
        return "".join(line for step in self.steps.values() for line in step.lines)


@dataclass
class Run:
    """One call of act."""

    jobs: dict[str, list[Job]]
    log: str
    artifacts: Path

    def job(self, name: str) -> Job:
        (job,) = self.jobs[name]
        # Printed by pytest if the test fails.
        print("".join(f"{line}\n" for line in self.log.splitlines()[-60:]))
        return job


class Act:
    """A machine of its own for act: home, tool cache, artifacts; shared by runs that follow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.artifacts = folder / "artifacts"
        self.caches = folder / "caches"
        self.action = folder / "action"
        for one in (self.artifacts, self.caches, folder / "home"):
            one.mkdir(parents=True)
        # What git would fetch from and push to https://github.com lies here.
        self.server = folder / "server"
        self._copy_action()

    def _copy_action(self) -> None:
        """The action as another repository gets it: what git would check out."""
        for name in ("action.yml", "requirements", *bootstrap().SOURCES):
            source = ROOT / name
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "_*.so")
                shutil.copytree(source, self.action / name, ignore=ignore)
            elif source.exists():
                self.action.mkdir(exist_ok=True)
                shutil.copy2(source, self.action / name)
        # Each job with a token installs anew; here, where nothing can be fetched, it may not.
        script = self.action / "ciwrap/action/bootstrap.py"
        text = script.read_text()
        assert text.count(_NO_TOOL_CACHE) == 1
        script.write_text(text.replace(_NO_TOOL_CACHE, ""))

    @property
    def tool_cache(self) -> Path:
        return self.folder / "home/.cache/act/tool_cache"

    def seed_environment(self) -> None:
        """An installed action, so that only tests of the installation pay for one."""
        # Comments are made by an environment of their own, without the core, and results are kept
        # by one with SciPy.
        for mode, store in (("", ""), ("comment", ""), ("trend", "a-branch")):
            self._seed(mode, store)

    def _seed(self, mode: str, store: str) -> None:
        outputs = self.folder / "outputs.txt"
        outputs.write_text("")
        self.tool_cache.mkdir(parents=True, exist_ok=True)
        bootstrap(self.action).prepare(
            {
                **self.environment,
                "CIWRAP_INPUT_MODE": mode,
                "CIWRAP_INPUT_STORE": store,
                "GITHUB_OUTPUT": str(outputs),
                "RUNNER_TEMP": str(self.folder),
                "RUNNER_TOOL_CACHE": str(self.tool_cache),
            }
        )
        told = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        folder = Path(told["folder"])
        venv.create(folder, symlinks=True)
        # Where this process has it from: a source tree has a core only if it was built there.
        package = Path(str(_core.__file__)).parents[1]
        installed = (p for p in sys.path if p.endswith("site-packages"))
        places = dict.fromkeys([str(package), *installed])
        site = (
            sysconfig.get_path(
                "purelib", vars={"base": str(folder), "platbase": str(folder)}, scheme="venv"
            )
            if "venv" in sysconfig.get_scheme_names()
            else str(folder / f"lib/python3.{sys.version_info[1]}/site-packages")
        )
        Path(site, "shared.pth").write_text("\n".join(places) + "\n")
        (folder / "complete").touch()

    def forget_environment(self) -> None:
        shutil.rmtree(self.tool_cache)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "ACT_DISABLE_VERSION_CHECK": "1",
        }

    def run_with_api(
        self, repository: Path, state: dict[str, Any], **more: Any
    ) -> tuple[Run, dict[str, Any]]:
        """Runs workflows beside a fake API; returns what became of its state, too."""
        file = self.folder / "github.json"
        file.write_text(json.dumps(state))
        server = Path(__file__).with_name("fake_github.py")
        prelude = f"""
            {sys.executable} {server} {file} {_API_PORT} >/dev/null 2>&1 &
            trap "kill $!" EXIT
            for _ in {{1..100}}; do
                (exec 3<>/dev/tcp/127.0.0.1/{_API_PORT}) 2>/dev/null && break
                sleep 0.05
            done
        """
        env = {"GITHUB_API_URL": f"http://127.0.0.1:{_API_PORT}", **more.pop("env", {})}
        run = self.run(repository, env=env, prelude=prelude, **more)
        return run, json.loads(file.read_text())

    def run(
        self,
        repository: Path,
        *arguments: str,
        event: str = "push",
        payload: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        prelude: str = "",
        online: bool = False,
    ) -> Run:
        """Runs the workflows of a repository. prelude: shell lines to run first, within the
        namespace (a fake API server, say). online: without a namespace.
        """
        # Artifacts are a run's own.
        shutil.rmtree(self.artifacts)
        self.artifacts.mkdir()
        local = {ACTION_REF: self.action}
        texts = [p.read_text() for p in (repository / ".github/workflows").glob("*.yml")]
        texts.append((self.action / "action.yml").read_text())
        for name, ref in {found for text in texts for found in _USES.findall(text)}:
            owner, project = name.split("/")[:2]
            if project != "checkout":
                local[f"{owner}/{project}@{ref}"] = STUBS / project
        command = [
            str(act_path()), event, "--json", "--no-cache-server", "-s", "GITHUB_TOKEN=secret",
            "-P", "ubuntu-latest=-self-hosted", "-P", "ubuntu-24.04=-self-hosted",
            "-P", "ubuntu-24.04-arm=-self-hosted",
        ]  # fmt: skip
        for key, path in local.items():
            # act looks for actions where it believes GitHub to be.
            command += ["--local-repository", f"file://{self.server}/{key}={path}"]
        given = {
            "ACT_ARTIFACTS": str(self.artifacts),
            "ACT_CACHES": str(self.caches),
            "GITHUB_SERVER_URL": f"file://{self.server}",
            **(env or {}),
        }
        for name, value in given.items():
            command += ["--env", f"{name}={value}"]
        if payload is not None:
            file = self.folder / "event.json"
            file.write_text(json.dumps(payload))
            command += ["-e", str(file)]
        alone = [] if online else ["unshare", "-rn"]
        script = ("" if online else "ip link set lo up\n") + prelude + '\n"$@"'
        done = subprocess.run(
            [*alone, "bash", "-c", script, "act", *command, *arguments],
            cwd=repository,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=3000 if online else 300,
            check=False,
        )
        return Run(_jobs_of(done.stdout), done.stdout + done.stderr, self.artifacts)


def _jobs_of(output: str) -> dict[str, list[Job]]:
    legs: dict[tuple[str, str], Job] = {}
    for line in output.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "jobID" not in entry:
            continue
        matrix = entry.get("matrix") or {}
        job = legs.setdefault(
            (entry["jobID"], json.dumps(matrix, sort_keys=True)), Job(matrix=matrix)
        )
        if "jobResult" in entry:
            job.result = entry["jobResult"]
        identity = entry.get("stepID")
        if not identity or entry.get("stage") != "Main":
            continue
        step = job.steps.setdefault("/".join(identity), Step(entry.get("step", "")))
        if "stepResult" in entry:
            step.result = entry["stepResult"]
        if entry.get("raw_output"):
            step.lines.append(entry["msg"])
        if "command" in entry:
            step.commands.append(entry)
        if entry.get("msg", "").startswith("⭐ Run Main"):
            step.name = entry["msg"].removeprefix("⭐ Run Main ").strip()
    found: dict[str, list[Job]] = {}
    for (name, _), job in legs.items():
        found.setdefault(name, []).append(job)
    return found


def make_repository(folder: Path, workflows: dict[str, str], files: dict[str, str]) -> Path:
    """A git repository with these workflows and files, all committed."""
    for name, text in {
        **{f".github/workflows/{name}": text for name, text in workflows.items()},
        **files,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "https://github.com/o/r.git")
    commit(folder)
    return folder


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    return subprocess.run(
        ["git", *identity, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def workflow_of(page: Path, title: str) -> str:
    """The YAML of a how-to page that begins with `name: TITLE`."""
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [one for one in blocks if yaml.safe_load(one).get("name") == title]
    return found
