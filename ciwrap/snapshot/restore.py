"""What is needed to build an environment again: files for pip, containers, Spack and the shell.

No file says more than the snapshot knows: what is missing is named in the file itself, and what no
file can bring back in `not_restorable`.
"""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

from ciwrap.base.secrets import HIDDEN
from ciwrap.snapshot.difference import pair_objects
from ciwrap.snapshot.records import PATH_LISTS, SEVERAL, LoadedObject, Snapshot

_SPACK = re.compile(
    r"\{spack\}/(?P<name>[a-z0-9][\w.-]*?)-(?P<version>\d[\w.]*)-(?P<hash>[a-z0-9]{32})/"
)
_RELEASE = re.compile(
    r"(?P<name>Debian|Ubuntu|Fedora|Rocky|AlmaLinux)\D*(?P<version>\d[\d.]*)", re.IGNORECASE
)
NOT_RESTORED = "NOT-RESTORED.txt"
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_SHOWN = {
    "cpu": "CPU",
    "cpu_flags": "CPU flags",
    "microcode": "microcode",
    "kernel": "kernel",
    "hypervisor": "hypervisor",
    "governor": "frequency governor",
    "turbo": "turbo",
    "smt": "SMT",
    "numa_nodes": "NUMA nodes",
    "huge_pages": "transparent huge pages",
    "aslr": "address space randomisation",
    "cgroup_cpus": "CPUs of the control group",
    "cgroup_memory": "memory of the control group",
    "affinity": "CPUs of the process",
}


class ObjectCheck(Struct, frozen=True):
    """How the objects of a second snapshot compare with those of a first, one by one.

    equal: builds that are the same. other: pairs that are not. missing: those of the first that the
    second does not have; extra: the other way round.
    """

    equal: tuple[LoadedObject, ...]
    other: tuple[tuple[LoadedObject, LoadedObject], ...]
    missing: tuple[LoadedObject, ...]
    extra: tuple[LoadedObject, ...]

    @property
    def is_same(self) -> bool:
        """Whether every object of the first is there again, and there was one at all."""
        return bool(self.equal) and not (self.other or self.missing or self.extra)


def check_objects(first: Snapshot, second: Snapshot) -> ObjectCheck:
    """Compares the objects of a rebuilt environment with those of the one it is to be."""
    pairs = pair_objects(first.objects, second.objects)
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    return ObjectCheck(
        tuple(a for a, b in both if a.same_bits(b)),
        tuple((a, b) for a, b in both if not a.same_bits(b)),
        tuple(a for a, b in pairs if a is not None and b is None),
        tuple(b for a, b in pairs if a is None and b is not None),
    )


def paths_of_programs(command: str) -> list[str]:
    """The words of a command that are paths: what they name does not depend on PATH."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return [word for word in words if "/" in word and "=" not in word and "://" not in word]


def recipes(snapshot: Snapshot) -> dict[str, str]:
    """Texts by file name."""
    found = {"restore.sh": _script(snapshot), "Containerfile": _containerfile(snapshot)}
    if snapshot.packages:
        lines = [f"# Packages of a snapshot, {snapshot.versions.get('python', 'Python unknown')}."]
        lines += [f"# {one} did not come from an index" for one in _local(snapshot)]
        lines += [f"{name}=={version}" for name, version in snapshot.index_packages.items()]
        found["requirements.txt"] = "\n".join(lines) + "\n"
    spack = _spack(snapshot)
    if spack:
        found["spack.yaml"] = spack
    found[NOT_RESTORED] = "".join(f"{line}\n" for line in not_restorable(snapshot))
    return found


def not_restorable(snapshot: Snapshot) -> list[str]:
    """What no recipe brings back, each in a line."""
    lines = [
        f"{words}: {snapshot.machine[name]}"
        for name, words in _SHOWN.items()
        if name in snapshot.machine
    ]
    hidden = [name for name, value in snapshot.variables.items() if _is_hidden(value)]
    if hidden:
        lines.append(f"variables whose values are not kept whole: {', '.join(hidden)}")
    paths = paths_of_programs(snapshot.command or "")
    if paths:
        lines.append(f"what the command names by a path: {', '.join(paths)}")
    commit = snapshot.repository.get("commit")
    lines.append(f"the program itself{f' (commit {commit})' if commit else ''}")
    own = [one.path for one in snapshot.objects if one.path.startswith((".../", "./"))]
    if own:
        more = f" and {len(own) - 5} more" if len(own) > 5 else ""
        lines.append(f"objects that belong to no package: {', '.join(own[:5])}{more}")
    if _local(snapshot):
        lines.append(f"packages that did not come from an index: {', '.join(_local(snapshot))}")
    if snapshot.repository.get("dirty") == "yes":
        lines.append(f"changes that were not committed, on top of {snapshot.repository['commit']}")
    return lines


def _local(snapshot: Snapshot) -> list[str]:
    return [
        f"{name} {version}"
        for name, version in snapshot.packages.items()
        if name in snapshot.local_packages
    ]


def _containerfile(snapshot: Snapshot) -> str:
    lines = ["# Made of a snapshot. Build it beside requirements.txt and restore.sh."]
    base, remark = _base_image(snapshot)
    lines += [f"# {remark}"] if remark else []
    lines.append(f"FROM {base}")
    if snapshot.system_packages:
        pins = " \\\n    ".join(
            f"{name}={version}" for name, version in snapshot.system_packages.items()
        )
        lines += [
            "# What the distribution's archive no longer has is on its snapshot server.",
            f"RUN apt-get update && apt-get install -y --allow-downgrades \\\n    {pins}",
        ]
    else:
        lines.append("# Packages of system libraries: `ciwrap snapshot save` looks them up.")
    if snapshot.packages:
        lines += [
            "WORKDIR /restored",
            "COPY requirements.txt ./",
            "RUN python3 -m venv venv && venv/bin/pip install -r requirements.txt",
            'ENV PATH="/restored/venv/bin:$PATH"',
        ]
    else:
        lines += ["WORKDIR /restored"]
    lines += ["# restore.sh, and the program: copy its folder beside this file first.", "COPY . ."]
    return "\n".join([*lines, 'CMD ["sh", "restore.sh"]']) + "\n"


def _base_image(snapshot: Snapshot) -> tuple[str, str]:
    """An image, and a word on how sure it is."""
    known = snapshot.container or ""
    if _DIGEST.search(known):
        return known, ""
    release = _RELEASE.search(snapshot.machine.get("os", ""))
    python = snapshot.versions.get("python", "").rpartition(" ")[2]
    if snapshot.packages and python and release and release["name"].lower() == "debian":
        codename = snapshot.machine["os"].partition("(")[2].partition(")")[0]
        remark = "The image's digest is not known: its name is a guess."
        return f"python:{python}-{codename or 'slim'}", remark
    if release:
        image = {"almalinux": "almalinux", "rocky": "rockylinux"}.get(release["name"].lower())
        name = f"{image or release['name'].lower()}:{release['version']}"
        return name, "The image's digest is not known: its name is that of the distribution."
    return "debian:stable", "Neither image nor distribution is known: put in what it was."


def _spack(snapshot: Snapshot) -> str:
    """An environment of Spack with what the objects belong to; empty without any."""
    specs = {
        f"{found['name']}@{found['version']}/{found['hash']}"
        for one in snapshot.objects
        if (found := _SPACK.match(one.path)) is not None
    }
    if not specs:
        return ""
    lines = ["spack:", "  specs:", *(f"  - {spec}" for spec in sorted(specs)), "  view: true"]
    return "\n".join(lines) + "\n"


def _script(snapshot: Snapshot) -> str:
    lines = [
        "#!/bin/sh",
        "# Sets what a snapshot knows of variables, and runs its command.",
        "set -e",
    ]
    lines += [f"module load {shlex.quote(name)}" for name in snapshot.modules]
    for name, value in snapshot.variables.items():
        if name in PATH_LISTS or _is_hidden(value):
            lines.append(f"# {name} is not set here: it was {_comment(value)}")
        else:
            lines.append(f"export {name}={shlex.quote(value)}")
    if snapshot.command is None:
        lines.append('# No command is known.\nexec "$@"')
    elif HIDDEN in snapshot.command:
        lines.append(f"# The command is not known whole: {_comment(snapshot.command)}\nexit 2")
    else:
        lines.append(snapshot.command)
    return "\n".join(lines) + "\n"


def _is_hidden(value: str) -> bool:
    """Whether a text is not what it was: something was taken out, or processes did not agree."""
    return HIDDEN in value or SEVERAL in value


def _comment(text: str) -> str:
    return " ".join(text.split())
