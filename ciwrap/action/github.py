"""What a step needs of the runner and of GitHub: inputs, outputs, git, programs, artifacts, API.

A program is ended with all that it started. That prevents accidents, not malice: while it runs, it
can read the environment of its user's other processes (docs/explanation/security.md).
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import io
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import msgspec

from ciwrap.base.archive import copy_files, zip_files
from ciwrap.base.documents import DocumentError, load_json, to_record
from ciwrap.base.errors import (
    CorruptFileError,
    FileLimitError,
    RemoteError,
    UsageError,
    escape,
    one_line,
)
from ciwrap.base.processes import all_processes
from ciwrap.project.settings import CONFIG_NAME
from ciwrap.report.markdown import workflow_command

# A job summary of more is dropped as a whole; some room is left for other writers of the step.
SUMMARY_BYTES = 1024 * 1024 - 4096
_MOST_EVENT_BYTES = 32 << 20
# The step's own channels, which a program under test has no business with.
_CHANNELS = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


@dataclass(frozen=True, slots=True)
class Runner:
    """The environment of one step; tests hand in their own."""

    environment: Mapping[str, str]

    @staticmethod
    def here() -> Runner:
        return Runner(os.environ)

    def _folder(self, name: str) -> Path:
        folder = self.environment.get(name)
        if not folder:
            raise UsageError(f"{name} is not set; this command is a step of the GitHub Action")
        return Path(folder)

    @property
    def checkout(self) -> Path:
        """Where actions/checkout has put the repository."""
        return self._folder("GITHUB_WORKSPACE")

    @property
    def workspace(self) -> Path:
        """The folder to work in: the checkout, or the one in it that `working-directory` names."""
        return self.checkout / working_directory(self.environment)

    @property
    def stage(self) -> Path:
        """Where results are put together before they are uploaded; below the runner's own folder
        for temporary files, so outside of the checkout."""
        return self._folder("RUNNER_TEMP") / "ciwrap-results"

    @property
    def repository(self) -> str:
        return self.environment.get("GITHUB_REPOSITORY", "")

    @property
    def sha(self) -> str:
        return self.environment.get("GITHUB_SHA", "")

    @property
    def event(self) -> dict[str, Any]:
        """The event's payload; {} where there is none."""
        path = self.environment.get("GITHUB_EVENT_PATH")
        if not path or not Path(path).is_file():
            return {}
        with Path(path).open("rb") as stream:
            event = json.loads(stream.read(_MOST_EVENT_BYTES))
        return event if isinstance(event, dict) else {}

    @property
    def program_environment(self) -> dict[str, str]:
        """The environment for programs under test: without the channels of the step and its
        inputs, so that they can forge no outputs."""
        return {
            name: value
            for name, value in self.environment.items()
            if name not in _CHANNELS and not name.startswith("CIWRAP_")
        }

    def set_output(self, name: str, value: object) -> None:
        """Sets an output of the step; the value may hold anything, line breaks too."""
        path = self.environment.get("GITHUB_OUTPUT")
        if not path:
            return
        text = str(value)
        # Nobody can close a heredoc whose mark he cannot guess.
        mark = f"ciwrap_{secrets.token_hex(16)}"
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{name}<<{mark}\n{text}\n{mark}\n")

    def add_summary(self, markdown: str) -> None:
        """Adds to the job summary what fits into it."""
        path = self.environment.get("GITHUB_STEP_SUMMARY")
        if not path:
            return
        file = Path(path)
        used = file.stat().st_size if file.exists() else 0
        data = cut_markdown(markdown, SUMMARY_BYTES - used).encode("utf-8", "backslashreplace")
        with file.open("ab") as stream:
            stream.write(data)


_CUT = "\n\n_... cut here: the whole text is in the report of the artifact._\n"


def cut_markdown(text: str, most_bytes: int) -> str:
    """The text if it fits, else its first lines with a note that it was cut."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= most_bytes:
        return text
    room = most_bytes - len(_CUT.encode())
    if room <= 0:
        return ""
    head = data[:room].decode("utf-8", "ignore")
    return head.rpartition("\n")[0] + _CUT


def say(text: str) -> None:
    """Prints lines of the log, control characters escaped, in their place among a child's output.

    A line of a log that begins with `::` or holds `##[` is an order to the runner, so text from
    outside is printed within `plain_log`.
    """
    print("\n".join(escape(line) for line in text.split("\n")), flush=True)


@contextlib.contextmanager
def plain_log(title: str) -> Iterator[None]:
    """A folded part of the log in which nothing is an order to the runner, whatever it says."""
    token = secrets.token_hex(16)
    print(workflow_command("group", title), flush=True)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        sys.stderr.flush()
        print(f"\n::{token}::", flush=True)
        print("::endgroup::", flush=True)


PREFIX = "CIWRAP_INPUT_"
MEASURES = ("repeat", "time", "trend")
MODES = ("check", "update", "merge", "comment", "accept", *MEASURES)
NO_COMMAND = "none"
ARTIFACT_PREFIX = "ciwrap"

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_LONGEST_CONFIG = 40
_PLAIN = re.compile(r"[A-Za-z0-9_./-]*")
# As the conditions in action.yml read them.
_FLAGS = {"true": True, "false": False, "": False}


class FailOn(str, Enum):
    """From which status on the gate fails the job."""

    DIFFER = "differ"
    NOT_COMPARABLE = "not-comparable"
    ERROR = "error"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Inputs:
    """See action.yml for what each input means; '' or () for one that is not given."""

    mode: str = "check"
    config: str = ""
    golden_dir: str = ""
    platform_key: str = ""
    checks: tuple[str, ...] = ()
    run: str = ""
    report: str = ""
    fail_on: FailOn = FailOn.DIFFER
    fail_on_wider: bool = False
    upload: bool = True
    artifact_name: str = ARTIFACT_PREFIX
    source: str = ""
    pattern: str = ""
    reason: str = ""
    expect: int | None = None
    pull_request: bool = False
    workflow: str = ""
    arguments: str = ""
    working_directory: str = ""
    base: str = ""
    result: str = ""
    reference: str = ""
    bounds: tuple[str, ...] = ()
    comment: bool = False
    store: str = ""


def working_directory(environment: Mapping[str, str]) -> str:
    """The input of that name, a folder in the checkout. Raises UsageError for another one."""
    text = environment.get(f"{PREFIX}WORKING_DIRECTORY", "").strip()
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise _wrong("working-directory", text, "a folder in the checkout")
    return text


def read_inputs(environment: Mapping[str, str] | None = None) -> Inputs:
    """The inputs of this step. Raises UsageError for one that has no meaning."""
    given = os.environ if environment is None else environment

    def text(name: str) -> str:
        return given.get(PREFIX + name.upper().replace("-", "_"), "").strip()

    mode = text("mode") or "check"
    if mode not in MODES:
        raise _wrong("mode", mode, f"one of {', '.join(MODES)}")
    key = safe_key(text("platform-key"), "platform-key") if text("platform-key") else ""
    pull_request = _flag("pull-request", text("pull-request"))
    _refuse_contradictions(mode, text)
    if mode == "update" and pull_request and not text("source"):
        # A program that runs in the job of the token can read it from another process.
        raise UsageError(
            "mode update with pull-request needs the input source: no program is run in the job"
            " that holds the token",
            remedy="use two jobs, as examples/workflows/refresh.yml does",
        )
    store = safe_branch(text("store")) if text("store") else ""
    if store and mode != "trend":
        # The same as with update: no program is run in the job that holds the token.
        raise UsageError(
            "the input store is for mode trend, in a job of its own",
            remedy="see examples/workflows/store.yml",
        )
    return Inputs(
        mode=mode,
        config=text("config"),
        golden_dir=text("golden-dir"),
        platform_key=key,
        checks=tuple(text("checks").split()),
        run=text("run"),
        report=text("report"),
        fail_on=_fail_on(text("fail-on")),
        fail_on_wider=_flag("fail-on-wider", text("fail-on-wider")),
        upload=_flag("upload", text("upload") or "true"),
        artifact_name=safe_key(
            text("artifact-name") or _default_name(key, text("config")), "artifact-name"
        ),
        source=text("source"),
        pattern=text("pattern"),
        reason=text("reason"),
        expect=_count("expect", text("expect")),
        pull_request=pull_request,
        workflow=text("workflow"),
        arguments=text("arguments"),
        working_directory=working_directory(given),
        base=text("base"),
        result=text("result"),
        reference=text("reference"),
        bounds=tuple(
            word for name in ("atol", "rtol") if text(name) for word in (f"--{name}", text(name))
        ),
        comment=_flag("comment", text("comment")),
        store=store,
    )


def _refuse_contradictions(mode: str, text: Callable[[str], str]) -> None:
    """Raises UsageError for inputs that have no meaning in a mode, or without each other."""
    for name in ("base", "result", "reference", "comment"):
        modes = ("check", "merge") if name == "comment" else ("check",)
        if text(name) not in ("", "false") and mode not in modes:
            raise UsageError(f"the input {name} has no meaning in mode {mode}")
    is_two = bool(text("result"))
    if is_two != bool(text("reference")):
        raise UsageError("the inputs result and reference name two files or folders: give both")
    for name in ("base", "run", "config", "checks", "golden-dir"):
        if is_two and text(name):
            raise UsageError(f"the input {name} cannot be used with result and reference")
    for name in ("atol", "rtol"):
        if text(name) and not is_two:
            raise UsageError(
                f"the input {name} needs result and reference", remedy="bounds stand in ciwrap.yaml"
            )
    if text("base") and text("run") == NO_COMMAND:
        raise UsageError("the input base runs the program, so it cannot be used with run: none")


def safe_key(text: str, name: str) -> str:
    """A text that may be a folder, an artifact and a branch name. Raises UsageError."""
    if not _KEY.fullmatch(text) or ".." in text or text.endswith((".", ".lock")):
        raise _wrong(name, text, "letters, digits, '.', '_' and '-', at most 100 of them")
    return text


def _default_name(key: str, config: str) -> str:
    """The artifact's name: another one for each platform and each configuration of a workflow."""
    own = "" if config in ("", CONFIG_NAME) else config.removesuffix(f"/{CONFIG_NAME}")
    is_told = _PLAIN.fullmatch(own) is not None and ".." not in own and len(own) <= _LONGEST_CONFIG
    own = re.sub(r"[^A-Za-z0-9_.-]+", "-", own).replace("..", "-").strip(".-")
    if not is_told:  # others would be called the same
        digest = hashlib.sha256(config.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        own = "-".join(part for part in (own[-_LONGEST_CONFIG:].lstrip(".-"), digest) if part)
    return "-".join(part for part in (ARTIFACT_PREFIX, key, own) if part)


def _fail_on(text: str) -> FailOn:
    try:
        return FailOn(text or "differ")
    except ValueError:
        words = ", ".join(one.value for one in FailOn)
        raise _wrong("fail-on", text, f"one of {words}") from None


def _flag(name: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise _wrong(name, text, "true or false")
    return _FLAGS[text.lower()]


def _count(name: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise _wrong(name, text, "a whole number")
    return int(text)


def _wrong(name: str, text: str, wanted: str) -> UsageError:
    return UsageError(f"the input {name} cannot be {text[:200]!r}", remedy=f"give {wanted}")


_REQUEST_SECONDS = 60
_ATTEMPTS = 3
_PAGE = 100
_MOST_PAGES = 30
_MOST_JSON_BYTES = 32 << 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Api:
    """url: without a slash at its end. The token goes to that host alone, never along redirects."""

    url: str
    token: str

    @staticmethod
    def of(environment: Mapping[str, str]) -> Api:
        """Raises UsageError where there is no token, or the address is not safe to send one to."""
        token = environment.get("CIWRAP_TOKEN", "")
        url = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise UsageError(f"GITHUB_API_URL must be https, not {url!r}")
        if not token:
            raise UsageError("this mode needs the input token")
        return Api(url, token)

    def get(self, path: str, **query: object) -> Any:
        return self._json("GET", path, query=query)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        return self._json(method, path, body=body)

    def pages(self, path: str, key: str | None = None, **query: object) -> Iterator[Any]:
        """All items of a list, or of the list under `key` of each page."""
        for page in range(1, _MOST_PAGES + 1):
            found = self.get(path, **{**query, "per_page": _PAGE, "page": page})
            items = found.get(key, []) if key is not None and isinstance(found, dict) else found
            if not isinstance(items, list):
                raise RemoteError(f"{path}: the answer is not a list")
            yield from items
            if len(items) < _PAGE:
                return

    def download(self, path: str, most_bytes: int) -> bytes:
        """The bytes behind a path. Raises RemoteError for more than `most_bytes`."""
        return self._request("GET", self.url + path, None, most_bytes)

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        url = self.url + path
        if query:
            url += "?" + urllib.parse.urlencode({name: str(v) for name, v in query.items()})
        data = None if body is None else json.dumps(body).encode()
        text = self._request(method, url, data, _MOST_JSON_BYTES)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise RemoteError(f"{method} {path}: the answer is not JSON") from None

    def _request(self, method: str, url: str, data: bytes | None, most_bytes: int) -> bytes:
        request = urllib.request.Request(url, data=data, method=method)
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        request.add_header("User-Agent", "ciwrap")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        # Not sent on to wherever an artifact is stored.
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        what = f"{method} {url.removeprefix(self.url)}"
        for attempt in range(_ATTEMPTS):
            last = attempt + 1 == _ATTEMPTS
            try:
                with urllib.request.urlopen(request, timeout=_REQUEST_SECONDS) as answer:
                    content: bytes = answer.read(most_bytes + 1)
            except urllib.error.HTTPError as error:
                # Only what changes nothing is asked again.
                if error.code < 500 or last or method != "GET":
                    raise RemoteError(_refusal(what, error)) from None
            except (OSError, urllib.error.URLError) as error:
                if last or method != "GET":
                    reason = getattr(error, "reason", error)
                    raise RemoteError(f"{what}: {self.url} cannot be reached: {reason}") from None
            else:
                if len(content) > most_bytes:
                    raise RemoteError(f"{what}: more than {most_bytes} bytes")
                return content
            time.sleep(2**attempt)
        raise AssertionError("unreachable")


def _refusal(what: str, error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read(1 << 16)).get("message", "")
    except (ValueError, AttributeError, OSError):
        said = ""
    more = f": {said}" if said else ""
    hint = " (do the job's permissions allow it?)" if error.code in (401, 403, 404) else ""
    return f"{what}: {error.code} {error.reason}{more}{hint}"


def quoted(text: object) -> str:
    """A text as one part of a path."""
    return urllib.parse.quote(str(text), safe="")


_GIT_SECONDS = 300
AUTHOR = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")
GOLDEN_SUFFIXES = (".golden", ".golden.yaml", ".goldens")
_MOST_ASKED = 1000
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@-]{0,200}")


@dataclass(frozen=True, slots=True)
class Clone:
    """A checkout whose contents may be a stranger's: no hooks, no filters, no links, no modules."""

    folder: Path
    token: str

    @staticmethod
    def empty(folder: Path, token: str) -> Clone:
        """A repository that has nothing yet. Raises RemoteError."""
        clone = Clone(folder, token)
        folder.mkdir(parents=True)
        clone.git("init", "--quiet", "--template=")
        return clone

    @staticmethod
    def make(folder: Path, branch: str, runner: Runner, token: str) -> Clone:
        """Clones the tip of a branch. Raises RemoteError."""
        clone = Clone.empty(folder, token)
        clone.remote(runner, "fetch", "--quiet", "--depth=1", f"refs/heads/{branch}")
        clone.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
        return clone

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def fetch_branch(self, branch: str, runner: Runner) -> str:
        """Makes a branch here what it is there; its tip, or '' where there is none."""
        listed = self.remote(runner, "ls-remote", f"refs/heads/{branch}")
        if listed:
            refs = f"+refs/heads/{branch}:refs/heads/{branch}"
            self.remote(runner, "fetch", "--quiet", "--depth=1", refs)
        return listed.partition("\t")[0]

    def remote(self, runner: Runner, verb: str, *arguments: str) -> str:
        """Runs `git fetch`, `ls-remote` or `push`, which alone get the token, for this host."""
        *options, what = arguments
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        server = runner.environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
        header = {f"http.{server}/.extraHeader": f"Authorization: Basic {basic}"}
        words = (verb, *options, f"{server}/{runner.repository}.git", what)
        return self._run(words, header if self.token else {})

    def git(self, *arguments: str) -> str:
        """Runs git without the token and without any configuration but ours. Raises RemoteError."""
        return self._run(arguments, {})

    def refuse_lfs(self) -> None:
        """Raises UsageError where goldens are kept in Git LFS.

        What is checked out without its filter are pointers, and a golden that is committed without
        it is an object that nobody has uploaded.
        """
        names = self.git("ls-files", "-z", "--", "*.golden", "*.goldens").split("\0")
        asked = [name for name in names if name][:_MOST_ASKED]
        if not asked:
            return
        said = self.git("check-attr", "-z", "filter", "--", *asked).split("\0")
        for name, value in zip(said[::3], said[2::3], strict=False):
            if value == "lfs":
                raise UsageError(
                    "the goldens are in Git LFS, which this job does not write to",
                    file=name,
                    remedy="download the artifact, run `ciwrap accept --from ZIP` in a clone with"
                    " git-lfs installed, and push from there",
                )

    def _run(self, arguments: Sequence[str], more: Mapping[str, str]) -> str:
        settings = {**_SAFE, "user.name": AUTHOR[0], "user.email": AUTHOR[1]}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=_environment({**settings, **more}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            said = one_line(done.stderr.decode("utf-8", "replace"))[-500:]
            raise RemoteError(f"git {arguments[0]} failed: {said}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def commit_goldens(self, golden_dirs: Sequence[Path], message: str) -> bool:
        """Commits what changed of the goldens and nothing else; whether anything did.

        Raises UsageError for a folder outside of the clone.
        """
        for folder in golden_dirs:
            refuse_outside(folder, self.folder)
            if folder.exists():
                self.git("add", "--force", "--", str(folder.resolve()))
        changed = [
            name for name in self.git("diff", "--cached", "--name-only", "-z").split("\0") if name
        ]
        for name in changed:
            if not name.endswith(GOLDEN_SUFFIXES):
                # An accept leaves nothing else; whatever this is, it does not get in.
                self.git("reset", "--quiet", "--", name)
        goldens = [name for name in changed if name.endswith(GOLDEN_SUFFIXES)]
        if goldens:
            self.git("commit", "--quiet", "--no-verify", "-m", message)
        return bool(goldens)

    def push(self, branch: str, runner: Runner, *, over: bool = False) -> None:
        """Pushes HEAD to a branch; `over` replaces what is there (for a branch of our own)."""
        target = f"{'+' if over else ''}HEAD:refs/heads/{safe_branch(branch)}"
        self.remote(runner, "push", "--quiet", target)


def refuse_outside(golden_dir: Path, root: Path) -> None:
    """Raises UsageError for a folder of goldens that is not within a checkout, links resolved."""
    if not golden_dir.resolve().is_relative_to(root.resolve()):
        raise UsageError("the goldens' folder is outside of the repository", file=golden_dir)


def safe_branch(name: str) -> str:
    """A branch name that git cannot take for anything else. Raises UsageError."""
    strange = ("..", "//", "@{", "/.", ".lock")
    if not _BRANCH.fullmatch(name) or any(one in name for one in strange) or name[-1] in "/.":
        raise UsageError(f"the branch name {name[:200]!r} is not supported")
    return name


# Settings of git, whatever a checkout says.
_SAFE = {
    "core.hooksPath": os.devnull,
    "core.symlinks": "false",
    "core.fsmonitor": "false",
    "core.autocrlf": "false",
    "protocol.ext.allow": "never",
    "safe.directory": "*",
    "commit.gpgSign": "false",
}
# What children of steps that have a token are told: where things are, and which job this is. No
# name of a secret is among them.
_ALLOWED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"}
    | {"LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "CI"}
    | {"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
)
_ALLOWED_STARTS = ("LC_", "GITHUB_", "RUNNER_")


def _allowed() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if (name in _ALLOWED or name.startswith(_ALLOWED_STARTS))
        and "TOKEN" not in name
        and name not in _CHANNELS
    }


def child_environment() -> dict[str, str]:
    """The environment of a ciwrap that is started beside a token: without it, and with a git that
    reads no configuration of the user or the system, so that no filter of theirs runs.
    """
    return _environment(_SAFE)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Settings travel in the environment, which a command line does not show; those of the user and
    the system are not read, so no filter, helper or address of theirs has a part in it.
    """
    environment = _allowed() | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_COUNT": str(len(given)),
    }
    for number, (name, value) in enumerate(given.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = name
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment


_PR_SET_CHILD_SUBREAPER = 36
_MOST_ROUNDS = 1000


def run_to_the_end(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Runs a program to its end, and ends all processes that it leaves; its exit code.

    Its output goes to stdout, whatever it was printed to.
    """
    with contextlib.suppress(OSError, AttributeError):  # not Linux: no orphans are adopted
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
    )
    _end_children()
    return done.returncode


def _end_children() -> None:
    """Ends all children, and those that come to us as their parents end."""
    own = os.getpid()
    for _ in range(_MOST_ROUNDS):
        children = [one.pid for one in all_processes() if one.parent == own and one.state != "X"]
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


# What an artifact holds, beside its page: the result, what it says of itself, goldens to accept.
RESULT = "result.json"
META = "meta.json"
PENDING = "pending"

MOST_ZIP_BYTES = 256 << 20
MOST_ARTIFACTS = 200
_MOST_META_BYTES = 64 << 10

# '' where there is none.
Commit = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40})?$", max_length=40)]


class Meta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an artifact says of itself. Somebody else wrote it: it names, it never decides.

    platform_key: where its goldens belong. sha: the commit that was pushed. commit: what was
    checked out; of a pull request, its merge with the base.
    """

    version: Literal[1] = 1
    platform_key: str
    config: str = ""
    golden_dir: str = ""
    artifact_name: str = ""
    repository: str = ""
    sha: Commit
    commit: Commit


def unpack(data: bytes, folder: Path, name: str) -> None:
    """Unpacks a zip into an empty folder.

    Raises ArtifactError for anything but plain files in plain folders, before any is written, and
    FileLimitError for more than `ciwrap.base.archive` lets through.
    """
    with zip_files(io.BytesIO(data), name) as files:
        copy_files(files, folder, name)


def read_meta(folder: Path) -> Meta:
    """Raises CorruptFileError for a description that is not one of ours."""
    path = folder / META
    try:
        with path.open("rb") as stream:
            meta = to_record(load_json(stream.read(_MOST_META_BYTES)), Meta)
        if meta.platform_key:
            safe_key(meta.platform_key, "platform_key")
    except (OSError, DocumentError, UsageError) as error:
        raise CorruptFileError(f"does not describe an artifact: {error}", file=path) from None
    return meta


def source_folder(inputs: Inputs, runner: Runner) -> Path:
    """The folder that the input `source` names. Raises UsageError if there is none."""
    folder = runner.workspace / inputs.source
    if not folder.is_dir():
        raise UsageError(
            "is not a folder", file=folder, remedy="download the artifacts to it first"
        )
    return folder


def results_below(folder: Path) -> Iterator[Path]:
    """The folders of artifacts in a folder: itself, or those in it, sorted by name."""
    for one in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (one / RESULT).is_file() or (one / META).is_file():
            yield one


def fetch(api: Api, repository: str, run_id: int, folder: Path) -> list[Path]:
    """Unpacks all of our artifacts of a workflow run, each into a folder of its own name."""
    path = f"/repos/{repository}/actions/runs/{run_id}/artifacts"
    newest: dict[str, Any] = {}
    for found in api.pages(path, "artifacts"):
        name = str(found.get("name", ""))
        if found.get("expired") or not _is_ours(name):
            continue
        if name not in newest or int(newest[name]["id"]) < int(found["id"]):
            newest[name] = found
        if len(newest) > MOST_ARTIFACTS:
            raise FileLimitError(f"the run has more than {MOST_ARTIFACTS} artifacts")
    folders = []
    for name, found in sorted(newest.items()):
        data = api.download(
            f"/repos/{repository}/actions/artifacts/{int(found['id'])}/zip", MOST_ZIP_BYTES
        )
        target = folder / name
        target.mkdir(parents=True)
        unpack(data, target, name)
        folders.append(target)
    return folders


def _is_ours(name: str) -> bool:
    if name != ARTIFACT_PREFIX and not name.startswith(f"{ARTIFACT_PREFIX}-"):
        return False
    try:
        return safe_key(name, "name") == name
    except UsageError:
        return False


DONE, NOT_COMPARABLE, ERROR = "done", "not-comparable", "error"
# The worse, the later. `done` and `slower` are of the modes that judge no golden.
STATUSES = (
    *("match", DONE, "consistent"),
    *("inconsistent", "slower", "undecided", "differ", NOT_COMPARABLE, ERROR),
)
GOOD = STATUSES[:3]
