"""The same digests on every backend, thread count, CPU level and read engine, and in any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from core_side import parameters
from oracle import adversary, trees
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.cases import Case

from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CASES = [
    Case("<f4", 1, {"atol": 1e-3}),
    Case("<f4", 15, {"atol": 1e-3}, {"fill_values": (-1.0,)}),
    Case("<f4", 15, {"rtol": 1e-3}),
    Case("<f4", 3, {"ulps": 4}),
    Case("<f8", 1, {"atol": 1e-9}),
    Case(">f8", 15, {"atol": 1e-9}),
    Case("<f8", 255, {"atol": 1e-6, "rtol": 1e-6}, {"equal_nan": False}),
    Case("<f8", 5, {"rtol": 1e-12}),
    Case("<f2", 5, {"atol": 1e-2}),
    Case(">bf2", 3, {"rtol": 0.1}),
    Case("<c8", 15, {"atol": 1e-5, "rtol": 1e-5}),
    Case(">c16", 3, {"atol": 1e-5}),
    Case("<i8", 15, {"atol": 7.0}),
    Case("|u1", 1, {"atol": 2.0}),
    Case(">u4", 1, {}),
    Case("|b1", 1, {}),
    Case(">U3", 1, {}),
]
COUNT = 60_006  # enough for several blocks of chunks per thread, with a tail


class Prepared:
    """Bytes of golden and new, and what the oracle says of them."""

    def __init__(self, case: Case) -> None:
        self.case, self.plan, self.params = case, case.plan(), parameters(case)
        golden, new = adversary.pairs(self.plan, case.rng(9), COUNT)
        self.golden = sc.bytes_of(self.plan.layout, golden)
        self.new = sc.bytes_of(self.plan.layout, new)
        levels, codes = trees.build(self.plan, self.golden, 16)
        self.golden_digests = b"".join(d for level in levels for d in level)
        self.residues = b""
        if codes.residues is not None:
            self.residues = trees.pack_residues(self.plan, codes.residues).tobytes()
        levels, new_codes = trees.build(self.plan, self.new, 16, codes.residues)
        has_summaries = self.plan.kind != "exact"
        self.summaries = [
            trees.summaries(self.plan, one) if has_summaries else None for one in (codes, new_codes)
        ]
        self.new_digests = b"".join(d for level in levels for d in level)
        self.file = b""  # the golden file as the first of all combinations makes it

    def check(self, golden: _core.Tree, new: _core.Tree) -> None:
        assert golden.digests.tobytes() == self.golden_digests
        assert new.digests.tobytes() == self.new_digests
        if self.residues:
            assert golden.residues is not None
            assert golden.residues.tobytes() == self.residues
        shape = [COUNT // self.plan.layout.scalars_per_element]
        file = _core.encode_golden(
            [
                _core.GoldenVariable("tree", shape, golden),
                _core.GoldenVariable("with data", shape, golden, data=self.golden),
            ]
        )
        self.file = self.file or file
        assert file == self.file


@pytest.fixture(scope="module")
def prepared() -> list[Prepared]:
    return [Prepared(case) for case in CASES]


@pytest.fixture(params=[level["name"] for level in _core.cpu_levels()])
def cpu_level(request: pytest.FixtureRequest) -> Iterator[str]:
    known = {level["name"]: level for level in _core.cpu_levels()}
    if not known[request.param]["usable"]:
        pytest.skip(f"this CPU lacks level {request.param}")
    _core.set_cpu_level(request.param)
    active = [level["name"] for level in _core.cpu_levels() if level["active"]]
    assert active == [request.param]
    yield request.param
    _core.set_cpu_level("auto")


def usable(entries: list[dict[str, object]], name: str) -> None:
    for entry in entries:
        if str(entry["name"]).lower() == name.lower():
            if not entry["usable"]:
                pytest.skip(f"{name} is not usable here: {entry['reason']}")
            return
    pytest.skip(f"{name} is not compiled in")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", ["Serial", "OpenMP"])
def test_backends_threads_and_cpu_levels(
    prepared: list[Prepared], cpu_level: str, backend: str, threads: int
) -> None:
    usable(_core.backends(), backend)
    name = next(b["name"] for b in _core.backends() if b["name"].lower() == backend.lower())
    for one in prepared:
        golden = _core.build_tree(one.params, one.golden, backend=name, threads=threads)
        new = _core.build_tree(one.params, one.new, golden=golden, backend=name, threads=threads)
        one.check(golden, new)
        summarised(one, name, threads)


def summarised(one: Prepared, backend: str, threads: int) -> None:
    """The same trees, with summaries, which are those of the specification."""
    golden = None
    built = []
    for data, right in zip((one.golden, one.new), one.summaries, strict=True):
        builder = _core.TreeBuilder(
            one.params, COUNT, golden=golden, backend=backend, threads=threads, summaries=True
        )
        # Split anywhere.
        builder.update(data[:10_001])
        builder.update(data[10_001:])
        golden = builder.finish()
        built.append(golden)
        if right is None:
            assert builder.summaries is None
        else:
            assert builder.summaries is not None
            assert np.array_equal(builder.summaries, right)
    one.check(*built)


@pytest.mark.parametrize("chunk_bytes", [4096, 1536, 65536])
@pytest.mark.parametrize("levels", [1, 15])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_summaries_of_calm_numbers(
    cpu_level: str, dtype: str, levels: int, chunk_bytes: int
) -> None:
    """Codes of these never leave the registers, and neither do their sums."""
    case = Case(dtype, levels, {"atol": 1e-3}, chunk_bytes=chunk_bytes)
    plan, params = case.plan(), parameters(case)
    rng = np.random.default_rng(5)
    golden = (rng.normal(size=5 * plan.chunk_scalars + 3) * 30).astype(dtype)
    golden[2 * plan.chunk_scalars] = np.nan  # one chunk that goes the long way
    new = golden + rng.normal(size=golden.size).astype(dtype) / 100
    codes = cc.cell_codes(plan, golden.tobytes())
    right = trees.summaries(plan, codes)
    assert np.array_equal(_core.summarize_chunks(params, golden), right)
    theirs = cc.cell_codes(plan, new.tobytes(), codes.residues)
    tree = _core.build_tree(params, golden)
    found = _core.summarize_chunks(params, new, golden=tree)
    assert np.array_equal(found, trees.summaries(plan, theirs))
    # The digests are what they are without summaries.
    builder = _core.TreeBuilder(params, golden.size, summaries=True)
    builder.update(golden)
    assert builder.finish().root == tree.root


def test_summaries_beside_a_device(prepared: list[Prepared]) -> None:
    """The device's code, run by the host: summaries are made by the host's kernels."""
    for one in prepared:
        summarised(one, "portable", 1)


@pytest.mark.parametrize("slab_bytes", [0, 4096, 100_000])
@pytest.mark.parametrize("direct", ["always", "never"])
@pytest.mark.parametrize("engine", ["io_uring", "pread", "auto"])
def test_engines_at_odd_offsets(
    prepared: list[Prepared],
    tmp_path: Path,
    engine: str,
    direct: Literal["always", "never"],
    slab_bytes: int,
) -> None:
    if engine != "auto":
        usable(_core.io_engines(), engine)
    for number, one in enumerate(prepared):
        built = []
        for data, golden in ((one.golden, None), (one.new, one)):
            offset = (0, 1, 13, 511, 4096, 4097)[number % 6]
            path = tmp_path / f"{number}.bin"
            path.write_bytes(bytes(offset) + data + b"behind the end")
            against = built[0] if golden else None
            builder = _core.TreeBuilder(one.params, COUNT, golden=against)
            beside = _core.TreeBuilder(one.params, COUNT, golden=against)
            used = _core.update_builders(
                [builder, beside],
                str(path),
                offset,
                len(data),
                engine=engine,
                slab_bytes=slab_bytes,
                direct=direct,
            )
            assert used == engine or engine == "auto"
            built.append(builder.finish())
            assert beside.finish().root == built[-1].root
        one.check(built[0], built[1])


def test_files_and_memory_mixed(prepared: list[Prepared], tmp_path: Path) -> None:
    for one in prepared:
        data = one.golden
        path = tmp_path / "mixed.bin"
        path.write_bytes(b"x" * 7 + data)
        first, second = 1001, len(data) - 3333
        builder = _core.TreeBuilder(one.params, COUNT)
        builder.update(data[:first])
        _core.update_builders([builder], str(path), 7 + first, second - first)
        builder.update(data[second:])
        golden = builder.finish()
        one.check(golden, _core.build_tree(one.params, one.new, golden=golden))


def test_several_python_threads_at_once(prepared: list[Prepared]) -> None:
    def work(one: Prepared) -> None:
        golden = _core.build_tree(one.params, one.golden)
        one.check(golden, _core.build_tree(one.params, one.new, golden=golden))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, prepared * 3))


def test_a_file_that_ends_early_is_an_error(prepared: list[Prepared], tmp_path: Path) -> None:
    one = prepared[0]
    path = tmp_path / "short.bin"
    path.write_bytes(one.golden[:-1])
    for engine in ("io_uring", "pread"):
        if not any(e["name"] == engine and e["usable"] for e in _core.io_engines()):
            continue
        builder = _core.TreeBuilder(one.params, COUNT)
        with pytest.raises(_core.CoreError) as caught:
            _core.update_builders([builder], str(path), 0, len(one.golden), engine=engine)
        assert caught.value.code in ("io", "corrupt_file")
        assert "short.bin" in str(caught.value)


def test_what_is_no_builder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.bin"
    path.write_bytes(bytes(64))
    with pytest.raises(TypeError, match="not a TreeBuilder"):
        _core.update_builders([None], str(path), 0, 64)  # type: ignore[list-item]
