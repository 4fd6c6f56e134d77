"""Whatever bytes a kernel, a linker or a packager left: snapshots read or refuse them."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from snapshots import snapshot

from ciwrap.base.documents import DocumentError
from ciwrap.base.processes import Process, parse_stat
from ciwrap.snapshot.records import build_id_of, find_build_id, mapped_files, packages_in
from ciwrap.snapshot.store import compressed, decoded, decompressed, encoded

if TYPE_CHECKING:
    from pathlib import Path

# What means something to one of the parsers, wherever it comes to stand.
PIECES = st.sampled_from(
    [
        *(b"\x7fELF", b"GNU\0", b"\0" * 8, b"\xff" * 8, b"\1\0\0\0", b"\3\0\0\0", b"\4\0\0\0"),
        *(b"7f00-7f10 r-xp 0 08:01 7 ", b"/usr/lib/libm.so.6", b" (deleted)", b"\\012", b"\n"),
        *(b"[[package]]\n", b'name = "a"\n', b'version = "1"\n', b"a==1\n", b" --hash=sha256:00"),
        *(b'{"default": {"a": {"version": "==1"}}}', b'{"install": [', b"[", b"{", b"}", b'"'),
        *(b"1 (a) S 1 1 1 ", b")", b"(", b" 5" * 20, b"\x28\xb5\x2f\xfd", b"\x78\x9c"),
    ]
)
BYTES = st.lists(PIECES | st.binary(max_size=12), max_size=12).map(b"".join)
NAME = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\0/"), min_size=1, max_size=12
).filter(lambda name: not name.endswith((" ", "(deleted)")))


@given(BYTES)
def test_maps_of_any_bytes(data: bytes) -> None:
    for one in mapped_files(data):
        assert one.path.startswith("/")
        assert not one.path.endswith(" (deleted)")


@given(st.lists(st.tuples(NAME, st.integers(1, 2**40), st.booleans()), max_size=8))
def test_maps_as_the_kernel_writes_them(files: list[tuple[str, int, bool]]) -> None:
    lines, expected = [], []
    for number, (name, inode, is_code) in enumerate(files):
        access = "r-xp" if is_code else "r--p"
        start = 0x7F0000000000 + number * 0x10000
        path = f"/lib/{name}"
        lines.append(f"{start:x}-{start + 4096:x} {access} 00001000 fd:0a {inode} {path:>40}")
        if is_code and (path, inode) not in expected:
            expected.append((path, inode))
    lines += ["7ffd000-7ffe000 r-xp 00000000 00:00 0                  [vdso]", "rubbish"]
    found = mapped_files("\n".join(lines).encode("utf-8"))
    assert [(one.path, one.inode) for one in found] == expected
    assert all(one.device == (0xFD, 0x0A) for one in found)


def test_a_line_break_in_a_name_is_one_file() -> None:
    line = b"7f00-7f10 r-xp 00000000 08:01 7    /tmp/a\\012b\\134c"
    assert [one.path for one in mapped_files(line)] == ["/tmp/a\nb\\134c"]


@given(BYTES, st.sampled_from([0, 4, 8, 1 << 40]))
def test_notes_of_any_bytes(data: bytes, align: int) -> None:
    found = find_build_id(data, align)
    assert found is None or bytes.fromhex(found) in data


@given(BYTES, st.binary(max_size=80))
@example(b"", b"\x7fELF\2\1" + b"\xff" * 74)
@example(b"", b"\x7fELF\1\2" + b"\0" * 46)
def test_files_of_any_bytes_have_a_build_id_or_none(data: bytes, head: bytes) -> None:
    for first in (head, b"\x7fELF" + head, b"\x7fELF\2\1" + head, b"\x7fELF\1\2" + head):
        found = build_id_of(io.BytesIO(first + data))
        assert found is None or 0 < len(found) <= 128


def elf(notes: bytes, *, bits: int, order: str) -> bytes:
    """The smallest ELF file with a segment of notes, by the tables of elf(5)."""
    head = 64 if bits == 64 else 52
    size = 56 if bits == 64 else 32
    at = head + 2 * size
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    word = "Q" if bits == 64 else "I"
    header = ident + struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH", 3, 62, 1, 0, head, 0, 0, head, size, 2, 0, 0, 0
    )
    if bits == 64:
        load = struct.pack(f"{order}IIQQQQQQ", 1, 5, 0, 0, 0, at, at, 4096)
        note = struct.pack(f"{order}IIQQQQQQ", 4, 4, at, at, at, len(notes), len(notes), 4)
    else:
        load = struct.pack(f"{order}8I", 1, 0, 0, 0, at, at, 5, 4096)
        note = struct.pack(f"{order}8I", 4, at, at, at, len(notes), len(notes), 4, 4)
    return header + load + note + notes


@given(
    st.binary(min_size=1, max_size=64),
    st.sampled_from([32, 64]),
    st.sampled_from(["<", ">"]),
    st.integers(0, 3),
)
def test_a_build_id_is_found_behind_other_notes(
    build_id: bytes, bits: int, order: str, others: int
) -> None:
    other = struct.pack(f"{order}III", 4, 5, 1) + b"GNU\0" + b"abcde\0\0\0"
    note = struct.pack(f"{order}III", 4, len(build_id), 3) + b"GNU\0" + build_id
    file = elf(other * others + note, bits=bits, order=order)
    is_read = bits == 64 and order == "<"
    assert build_id_of(io.BytesIO(file)) == (build_id.hex() if is_read else None)
    assert build_id_of(io.BytesIO(file[:-1])) is None  # cut off


@given(BYTES)
def test_process_states_of_any_bytes(data: bytes) -> None:
    found = parse_stat(data)
    assert found is None or min(found.pid, found.parent, found.group, found.session) >= 0


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_process_names_hold_anything(name: bytes) -> None:
    rest = b" ".join(str(number).encode() for number in range(5, 52))
    assert parse_stat(b"17 (" + name + b") S 3 4 " + rest) is not None
    data = b"17 (" + name + b") S 11 22 33 " + b" ".join([b"0"] * 15) + b" 777 0 0"
    assert parse_stat(data) == Process(17, "S", 11, 22, 33, 777)


@given(BYTES)
def test_snapshots_of_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DocumentError):
        decoded(data)


@given(st.data(), st.sampled_from(["zst", "z", ""]))
def test_a_damaged_snapshot_is_refused_or_the_same(data: st.DataObject, how: str) -> None:
    text = encoded(snapshot())
    packed, suffix = compressed(text, how)
    assert decompressed(packed) == text
    assert suffix == (f".{how}" if how else "")
    at = data.draw(st.integers(0, len(packed) - 1))
    broken = (
        packed[:at] + bytes([packed[at] ^ (1 << data.draw(st.integers(0, 7)))]) + packed[at + 1 :]
    )
    try:
        decoded(broken)
    except DocumentError:
        return
    # Only its name, a digest, can tell that a text is another one that is whole.


def test_packages_are_told_by_the_names_of_folders(tmp_path: Path) -> None:
    for name in (
        "numpy-2.1.0.dist-info",
        "Old_Name-1.0+local.egg-info",
        "x",
        "-1.dist-info",
        "a.dist-info",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "numpy-2.1.0.dist-info/direct_url.json").write_text("{}")
    (tmp_path / "of_conda-1.dist-info").mkdir()
    (tmp_path / "of_conda-1.dist-info/direct_url.json").write_text("{}")
    (tmp_path / "of_conda-1.dist-info/INSTALLER").write_text("conda\n")
    found = packages_in([tmp_path, tmp_path / "nowhere"])
    assert found.versions == {"numpy": "2.1.0", "of-conda": "1", "old-name": "1.0+local"}
    assert found.local == ("numpy",)
