"""Facts of the machine: processor, kernel, limits. None of them can be restored elsewhere."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

_SYS = Path("/sys/devices/system")
_CPU = _SYS / "cpu"
# What kernels of numerical libraries choose by; all flags would be a hundred words.
_FLAGS = (
    *("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"),
    *("avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16"),
    *("asimd", "asimddp", "sve", "sve2", "bf16"),
)
_MOST_BYTES = 1 << 20
# arm64 kernels tell numbers instead of a name: who made the processor, and which one it is
# (MIDR_EL1 in the Arm Architecture Reference Manual, and each maker's manuals).
_ARM_MAKERS = {
    "0x41": "Arm", "0x42": "Broadcom", "0x43": "Cavium", "0x46": "Fujitsu", "0x48": "HiSilicon",
    "0x4e": "NVIDIA", "0x50": "Applied Micro", "0x51": "Qualcomm", "0x61": "Apple",
    "0xc0": "Ampere",
}  # fmt: skip
_ARM_CORES = {
    "0xd03": "Cortex-A53", "0xd07": "Cortex-A57", "0xd08": "Cortex-A72", "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2",
}  # fmt: skip


def machine_facts() -> dict[str, str]:
    """Facts by name, in a stable order; what this machine does not tell is left out."""
    facts = {
        "cpu": _cpu_info()[0],
        "cpu_count": str(usable_cpus()),
        "os": os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu_flags": _cpu_info()[2],
        "microcode": _cpu_info()[1],
        "hypervisor": _cpu_info()[3],
        "governor": _line(_CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "smt": _line(_CPU / "smt/control"),
        "numa_nodes": _line(_SYS / "node/online"),
        "huge_pages": _chosen(_line(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        "aslr": _line(Path("/proc/sys/kernel/randomize_va_space")),
        "affinity": _affinity(),
        "cgroup_cpus": _cgroup_cpus(),
        "cgroup_memory": _cgroup_memory(),
    }
    return {name: value for name, value in facts.items() if value}


def usable_cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def os_name() -> str:
    """The name and version of the distribution."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.platform(terse=True)
    return release.get("PRETTY_NAME") or platform.platform(terse=True)


@cache
def _cpu_info() -> tuple[str, str, str, str]:
    """Model, microcode, flags that matter, and whether it is virtual, of the first processor."""
    facts: dict[str, str] = {}
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    model = next(
        (facts[key] for key in ("model name", "Model", "cpu model") if facts.get(key)),
        _arm_model(facts)
        or _asked("machdep.cpu.brand_string")
        or platform.processor()
        or platform.machine(),
    )
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    vendor = _line(Path("/sys/hypervisor/type")) or ("yes" if "hypervisor" in flags else "")
    return model, facts.get("microcode", ""), " ".join(f for f in _FLAGS if f in flags), vendor


def _arm_model(facts: dict[str, str]) -> str:
    """As `Arm Neoverse N1 r3p1`; empty where /proc/cpuinfo tells no maker."""
    maker, part = facts.get("CPU implementer", ""), facts.get("CPU part", "")
    if not maker or not part:
        return ""
    core = _ARM_CORES.get(part) if maker == "0x41" else None
    variant = facts.get("CPU variant", "0x0").removeprefix("0x")
    stepping = f"r{variant}p{facts.get('CPU revision', '0')}"
    return f"{_ARM_MAKERS.get(maker, f'maker {maker}')} {core or f'part {part}'} {stepping}"


def _asked(name: str) -> str:
    """What macOS says of itself; nothing elsewhere."""
    if platform.system() != "Darwin":
        return ""
    try:
        told = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _turbo() -> str:
    off = _line(_CPU / "intel_pstate/no_turbo")
    if off:
        return "off" if off == "1" else "on"
    boost = _line(_CPU / "cpufreq/boost")
    return {"1": "on", "0": "off"}.get(boost, "")


def _affinity() -> str:
    """The processors that may be used, as `0-3,8`."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    ranges: list[list[int]] = []
    for core in sorted(os.sched_getaffinity(0)):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _cgroup_cpus() -> str:
    """Processors' worth of time that the control group allows; empty for no limit."""
    found = _line(Path("/sys/fs/cgroup/cpu.max")).split()
    if not found:
        folder = Path("/sys/fs/cgroup/cpu")
        found = [_line(folder / "cpu.cfs_quota_us"), _line(folder / "cpu.cfs_period_us")]
    if len(found) == 2 and found[0].isdecimal() and found[1].isdecimal() and int(found[1]):
        return f"{int(found[0]) / int(found[1]):g}"
    return ""


def _cgroup_memory() -> str:
    """Bytes that the control group allows; empty for no limit."""
    for path in ("memory.max", "memory/memory.limit_in_bytes"):
        found = _line(Path("/sys/fs/cgroup") / path)
        if found.isdecimal() and int(found) < 1 << 60:
            return found
    return ""


def _chosen(text: str) -> str:
    """The word in brackets: `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0]


def _line(path: Path) -> str:
    return _read(path).partition("\n")[0].strip()


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
