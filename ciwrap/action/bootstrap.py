"""Makes the action's private Python environment; needs nothing but Python 3.8 or newer.

    python bootstrap.py prepare     finds a Python; prints what to install and the cache's key
    python bootstrap.py install     makes the environment; prints where its Python is

action.yml runs this file by its path, before ciwrap is installed, so it imports none of ciwrap.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 10)
NEWEST_TRIED = 14
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
WHEEL_PINS = "action-wheels.txt"
# What ciwrap needs, and what builds it, by hash: tools/lock-requirements.
RUN_PINS, BUILD_PINS = "requirements/run.txt", "requirements/build.txt"
# Of the one extra that a job with a token may need.
STATS, STATS_PINS = "stats", "requirements/stats.txt"
# What a wheel is built from; everything else of the repository changes nothing.
SOURCES = (
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "ciwrap",
    "ciwrap.yaml",  # with golden: what `ciwrap demo` checks against
    "cmake",
    "csrc",
    "golden",
    "licenses",
    "pyproject.toml",
    "third_party",
)
SUPPORTED = (
    "the action runs on Linux (x86-64, arm64; glibc 2.28 or newer for wheels, else it is built from"
    " source). No runner with macOS has passed its tests yet, and Windows is not supported. Run the"
    " program there, upload what it wrote, and check it in a Linux job"
)
MODES_WITH_TOKEN = ("comment", "accept")
# It reads documents and writes a text: nothing of the core, so nothing is built.
MODE_WITHOUT_CORE = "comment"
CHECKOUT = "checkout"
# Settings of the surroundings that would lead a private environment astray.
MISLEADING = re.compile(r"PYTHON(?!UTF8|IOENCODING)|PIP_(USER|TARGET|PREFIX|REQUIRE_VIRTUALENV)$")


class BootstrapError(Exception):
    """What the user has to be told, in one line."""


def prepare(environment: dict[str, str]) -> None:
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        raise BootstrapError(
            f"{sys.platform} on {platform.machine()} is not supported: {SUPPORTED}"
        )
    extras, version = wanted_extras(environment), wanted_version(environment)
    if has_token(environment):
        # What reads files of other formats has nothing to do here, and is in no list of hashes.
        extras = STATS if mode_of(environment) == "trend" else ""
        if version not in ("", "source"):
            raise BootstrapError(
                "the input version has no meaning in a job with a token, which takes nothing from a"
                " package index that is not known by its hash: leave it out, and choose the version"
                " by what stands behind 'uses:'"
            )
    python = find_python(environment)
    root = source_root()
    how = version or ("pinned" if (root / WHEEL_PINS).is_file() else "source")
    if mode_of(environment) == MODE_WITHOUT_CORE:
        how = CHECKOUT
    tag = subprocess.run(
        [python, "-I", "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"],
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    libc = "-".join(platform.libc_ver()) or "libc"
    digest = hashlib.sha256(f"{how} {extras} {source_digest(root)}".encode()).hexdigest()[:20]
    key = f"ciwrap-{tag}-{platform.machine()}-{libc}-{digest}"
    folder = environments_folder(environment) / key
    can_cache = not has_token(environment)
    ready = (folder / "complete").is_file()
    wheels = Path(environment["RUNNER_TEMP"]) / "ciwrap-wheels" / key
    set_outputs(
        environment, python=python, key=key, how=how, extras=extras, folder=folder, wheels=wheels,
        build="true" if can_cache and how in ("source", "pinned") and not ready else "false",
    )  # fmt: skip


def install(environment: dict[str, str]) -> None:
    folder, wheels = Path(environment["CIWRAP_FOLDER"]), Path(environment["CIWRAP_WHEELS"])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").is_file():
            make_environment(environment, folder, wheels)
            (folder / "complete").touch()
    set_outputs(environment, python=folder / "bin" / "python")


def make_environment(environment: dict[str, str], folder: Path, wheels: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    call([environment["CIWRAP_BASE_PYTHON"], "-I", "-m", "venv", str(folder)], environment)
    python = str(folder / "bin" / "python")
    extras = environment.get("CIWRAP_EXTRAS", "")
    suffix = f"[{extras}]" if extras else ""
    how = environment["CIWRAP_HOW"]
    pip = [python, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    if how == CHECKOUT:
        call([*pip, *by_hash(RUN_PINS)], environment)
        own = Path(packages_folder(python)) / "ciwrap-checkout.pth"
        own.write_text(f"{source_root()}\n", encoding="utf-8")
        return
    if how not in ("source", "pinned"):
        call([*pip, "install", "--only-binary=ciwrap", f"ciwrap{suffix}=={how}"], environment)
        return
    wheels.mkdir(parents=True, exist_ok=True)
    wheel = next(iter(sorted(wheels.glob("ciwrap-*.whl"))), None)
    if wheel is None and how == "pinned":
        pins = str(source_root() / WHEEL_PINS)
        arguments = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", pins]
        if call([*pip, "download", "--dest", str(wheels), *arguments], environment, check=False):
            print("there is no wheel for this platform: building from source", flush=True)
        wheel = next(iter(sorted(wheels.glob("ciwrap-*.whl"))), None)
    if wheel is None:
        wheel = build_wheel(environment, wheels)
    call([*pip, *by_hash(RUN_PINS)], environment)
    call([*pip, "install", "--no-deps", "--no-index", str(wheel)], environment)
    if extras == STATS:
        call([*pip, *by_hash(STATS_PINS)], environment)
    elif extras:
        call([*pip, "install", f"{wheel}{suffix}"], environment)


def packages_folder(python: str) -> str:
    """Where the packages of an environment lie."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-I", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def by_hash(pins: str) -> list[str]:
    """The words that let pip install a list of files of known hashes, and build nothing."""
    only = ["--require-hashes", "--only-binary=:all:", "--no-deps"]
    return ["install", *only, "--requirement", str(source_root() / pins)]


def build_wheel(environment: dict[str, str], wheels: Path) -> Path:
    """Builds in a copy: with `uses: ./` the source is the user's checkout."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX") or "c++", "g++", "clang++")):
        raise BootstrapError(
            "there is no ciwrap wheel for this platform, and no C++ compiler to build one: install"
            " g++ 12 or newer before this step"
        )
    copy = wheels / "source"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in SOURCES:
        source = source_root() / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "_*.so")
            shutil.copytree(source, copy / name, ignore=ignore)
        elif source.is_file():
            shutil.copy2(source, copy / name)
    tools = copy / "build-environment"
    call([environment["CIWRAP_BASE_PYTHON"], "-I", "-m", "venv", str(tools)], environment)
    pip = [str(tools / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check"]
    call([*pip, *by_hash(BUILD_PINS)], environment)
    # Else pip would take what builds it from the index, by no hash.
    words = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(wheels)]
    call([*pip, *words, str(copy)], environment)
    shutil.rmtree(copy)
    (wheel,) = wheels.glob("ciwrap-*.whl")
    return wheel


def wanted_version(environment: dict[str, str]) -> str:
    version = environment.get("CIWRAP_VERSION", "").strip()
    if version and version != "source" and not re.fullmatch(r"[0-9]+(\.[0-9a-z]+)*", version):
        raise BootstrapError(
            f"the input version cannot be {version!r}; give a release, or 'source'"
        )
    return version


def wanted_extras(environment: dict[str, str]) -> str:
    extras = environment.get("CIWRAP_EXTRAS", "").replace(" ", "")
    if extras and not re.fullmatch(r"[a-z0-9]+([,-][a-z0-9]+)*", extras):
        raise BootstrapError(
            f"the input extras cannot be {extras!r}; give names such as 'hdf5,netcdf'"
        )
    return extras


def find_python(environment: dict[str, str]) -> str:
    """A Python that can make environments: the version asked for, or any that is new enough."""
    wanted = environment.get("CIWRAP_PYTHON_VERSION", "").strip()
    if wanted and not re.fullmatch(r"3\.[0-9]{1,2}", wanted):
        raise BootstrapError(
            f"the input python-version cannot be {wanted!r}; give, for example, '3.12'"
        )
    versions = [wanted] if wanted else [f"3.{n}" for n in range(NEWEST_TRIED, OLDEST[1] - 1, -1)]
    candidates = [sys.executable]
    for version in versions:
        candidates += [shutil.which(f"python{version}") or ""]
        tools = environment.get("RUNNER_TOOL_CACHE", "")
        if tools:
            candidates += sorted(map(str, Path(tools).glob(f"Python/{version}.*/*/bin/python")))
    bare = ""
    for candidate in candidates:
        found = version_of(candidate)
        if found is None or found[0] < OLDEST or (wanted and wanted != "{}.{}".format(*found[0])):
            continue
        if found[1]:
            return candidate
        bare = candidate
    if bare:
        raise BootstrapError(
            f"{bare} cannot make virtual environments: install python3-venv (Debian, Ubuntu), or"
            " put actions/setup-python before this step"
        )
    raise BootstrapError(
        f"there is no Python {wanted or '3.10 or newer'} on this runner: put actions/setup-python"
        " before this step, or install one in the container"
    )


def version_of(python: str) -> tuple[tuple[int, int], bool] | None:
    """Its version, and whether it can make environments; None if it does not run."""
    if not python:
        return None
    code = (
        "import sys, importlib.util as u;"
        "print(*sys.version_info[:2], int(bool(u.find_spec('venv') and u.find_spec('ensurepip'))))"
    )
    try:
        done = subprocess.run(
            [python, "-I", "-c", code], stdout=subprocess.PIPE, text=True, check=True
        )
        major, minor, complete = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return (major, minor), bool(complete)


def source_root() -> Path:
    return Path(__file__).resolve().parents[2]


def source_digest(root: Path) -> str:
    """Changes with anything a wheel is built from."""
    whole = hashlib.sha256()
    files = [root / name for name in (*SOURCES, WHEEL_PINS, RUN_PINS, BUILD_PINS, STATS_PINS)]
    for top in files:
        paths = [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file())
        for path in paths:
            if "__pycache__" in path.parts or path.suffix == ".so":
                continue
            whole.update(f"{path.relative_to(root)}\0".encode())
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def mode_of(environment: dict[str, str]) -> str:
    return environment.get("CIWRAP_INPUT_MODE", "").strip()


def has_token(environment: dict[str, str]) -> bool:
    """Whether the job goes on to write to the repository."""
    mode = mode_of(environment)
    opens = environment.get("CIWRAP_INPUT_PULL_REQUEST", "").strip().lower() == "true"
    keeps = bool(environment.get("CIWRAP_INPUT_STORE", "").strip())
    return mode in MODES_WITH_TOKEN or keeps or (mode == "update" and opens)


def environments_folder(environment: dict[str, str]) -> Path:
    """Kept between jobs where the runner keeps its tools, else as long as the job.

    With a token it is made anew by each job: nothing that another job could have written is run.
    """
    tools = "" if has_token(environment) else environment.get("RUNNER_TOOL_CACHE", "")
    writable = tools and os.access(tools if Path(tools).is_dir() else Path(tools).parent, os.W_OK)
    return Path(tools if writable else environment["RUNNER_TEMP"]) / "ciwrap"


def call(command: list[str], environment: dict[str, str], *, check: bool = True) -> int:
    clean = {name: value for name, value in environment.items() if not MISLEADING.match(name)}
    print("+", " ".join(command), flush=True)
    status = subprocess.run(command, env=clean, cwd=environment["RUNNER_TEMP"], check=False)
    if check and status.returncode != 0:
        words = [one for one in command[3:] if not one.startswith("-")][:2]
        raise BootstrapError(
            f"`{' '.join(words)} ...` failed with exit code {status.returncode}: see the log above"
        )
    return status.returncode


def set_outputs(environment: dict[str, str], **values: object) -> None:
    with Path(environment["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as stream:
        for name, value in values.items():
            text = str(value)
            if "\n" in text or "\r" in text:
                raise BootstrapError(f"a line break in {name}: {text!r}")
            stream.write(f"{name}={text}\n")


def main(arguments: list[str]) -> int:
    steps = {"prepare": prepare, "install": install}
    try:
        steps[arguments[0]](dict(os.environ))
    except BootstrapError as problem:
        text = str(problem).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        print(f"::error title=ciwrap::{text}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
