"""What a snapshot says of the processor, for machines that tell it in different ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ciwrap.snapshot import take as machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARM = """processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm crc32 atomics asimddp
CPU implementer\t: {maker}
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: {part}
CPU revision\t: 1

processor\t: 1
CPU implementer\t: 0x41
CPU part\t: 0xd08
"""


@pytest.fixture
def fresh() -> Iterator[None]:
    machine._cpu_info.cache_clear()
    yield
    machine._cpu_info.cache_clear()


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("model name\t: Xeon\nflags\t: avx2 fma\n", "Xeon"),
        (ARM.format(maker="0x41", part="0xd0c"), "Arm Neoverse N1 r3p1"),
        (ARM.format(maker="0x61", part="0x022"), "Apple part 0x022 r3p1"),
        (ARM.format(maker="0xc0", part="0xd0c"), "Ampere part 0xd0c r3p1"),
        (ARM.format(maker="0x99", part="0x001"), "maker 0x99 part 0x001 r3p1"),
        (ARM.format(maker="0x41", part="0xd0c") + "Model\t: Raspberry Pi\n", "Raspberry Pi"),
    ],
)
def test_the_processor_has_a_name(
    monkeypatch: pytest.MonkeyPatch, fresh: None, text: str, model: str
) -> None:
    read = machine._read

    def told(path: str | Path, most: int) -> bytes:
        return text.encode() if str(path) == "/proc/cpuinfo" else read(path, most)

    monkeypatch.setattr(machine, "_read", told)
    assert machine.machine_facts()["cpu"] == model


def test_a_processor_of_which_nothing_is_told(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.setattr(machine, "_read", lambda path, most: b"")
    assert machine.machine_facts()["cpu"] == (
        machine.platform.processor() or machine.platform.machine()
    )
