"""A GPU: trees and element comparison beside the copy bandwidths of the same run.

    python -m benchmarks.device [--json FILE] [--markdown FILE] [--bytes N] [--repeats N] [--quick]

Wants a build with CUDA and a device (tools/gpu-check makes and runs it); `--backend portable` runs
the same on the host, to see that the program works: its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import cuda_memory, measure
from benchmarks.measure import interleaved
from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Callable

BOUNDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("absolute, plain", {"atol": 1e-4}),
    ("absolute, residues k=15", {"atol": 1e-4, "residue_levels": 15}),
    ("relative, plain", {"atol": 1e-6, "rtol": 1e-4}),
)
DEVICE_COPY, LOCKED_COPY, PAGEABLE_COPY = (
    "copy, device to device",
    "copy, locked host memory to device",
    "copy, pageable host memory to device",
)


class Placed:
    """The same values in the three kinds of memory; on the host alone for `portable`."""

    def __init__(self, values: np.ndarray[Any, Any], backend: str) -> None:
        self.pageable = values
        self.is_real = backend == "cuda"
        if self.is_real:
            self._device = cuda_memory.DeviceArray(values)
            self._locked = cuda_memory.LockedArray(values)
            self.locked = self._locked.array
            address = self._device.memory.address
        else:
            self.locked = values
            address = values.ctypes.data
        self.resident = _core.DeviceArray.from_address(
            address, values.shape, None, values.dtype.str, owner=self
        )


def run(*, data_bytes: int, repeats: int, backend: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for dtype in ("<f4", "<f8"):
        rng = np.random.default_rng(1)
        count = data_bytes // np.dtype(dtype).itemsize
        values = rng.standard_normal(count, dtype=np.dtype(dtype).type)
        golden = Placed(values, backend)
        new = Placed(values + values.dtype.type(1e-5), backend)
        timings = interleaved(_cases(dtype, golden, new, backend), repeats)
        for name, timing in timings.items():
            copy = _yardstick(name)
            share = timing.ratio_of(timings[copy]) if copy in timings and copy != name else None
            # Of a copy within the device the bytes read and those written count, as both cost.
            sides = 2 if name.startswith("elements") or name == DEVICE_COPY else 1
            moved = 2 if copy == DEVICE_COPY else 1
            rows.append(
                {
                    "dtype": dtype,
                    "case": name,
                    "bytes": sides * values.nbytes,
                    "gb_per_second": sides * values.nbytes / timing.median / 1e9,
                    "beside": copy if share is not None else None,
                    "ratio": None if share is None else sides * share / moved,
                    **timing.as_json(),
                }
            )
        del golden, new
    return {"data_bytes": data_bytes, "chunk_bytes": 4096, "backend": backend, "rows": rows}


def _yardstick(name: str) -> str:
    """The copy that moves the same bytes over the same way."""
    if "locked" in name:
        return LOCKED_COPY
    return PAGEABLE_COPY if "pageable" in name else DEVICE_COPY


def _cases(
    dtype: str, golden: Placed, new: Placed, backend: str
) -> dict[str, Callable[[], object]]:
    cases: dict[str, Callable[[], object]] = dict(_copies(golden))
    for name, bound in BOUNDS:
        parameters = _core.TreeParameters(dtype, **bound)
        cases[f"tree, {name}, on the device"] = lambda p=parameters: _resident_tree(
            p, golden.resident, golden.pageable.size, backend
        )
        cases[f"tree, {name}, from locked memory"] = lambda p=parameters: _core.build_tree(
            p, golden.locked, backend=backend
        )
        cases[f"tree, {name}, from pageable memory"] = lambda p=parameters: _core.build_tree(
            p, golden.pageable, backend=backend
        )
    residues = _core.TreeParameters(dtype, **BOUNDS[1][1])
    tree = _core.build_tree(residues, golden.pageable)
    cases["tree, new run against residues k=15, on the device"] = lambda: _resident_tree(
        residues, new.resident, new.pageable.size, backend, tree
    )
    for name, bound in (BOUNDS[0], BOUNDS[2]):
        parameters = _core.TreeParameters(dtype, **bound)
        for kind, ours, theirs in (
            ("on the device", golden.resident, new.resident),
            ("from locked memory", golden.locked, new.locked),
            ("from pageable memory", golden.pageable, new.pageable),
        ):
            cases[f"elements, {name.split(',')[0]}, {kind}"] = (
                lambda p=parameters, a=ours, b=theirs: _elements(
                    p, a, b, golden.pageable.size, backend
                )
            )
    parameters = _core.TreeParameters(dtype, **BOUNDS[0][1])
    cases["tree, absolute, plain, host's own threads"] = lambda: _core.build_tree(
        parameters, golden.pageable, backend="auto"
    )
    return cases


def _copies(golden: Placed) -> dict[str, Callable[[], object]]:
    if not golden.is_real:
        target = np.empty_like(golden.pageable)
        return {
            name: lambda: np.copyto(target, golden.pageable)
            for name in (DEVICE_COPY, LOCKED_COPY, PAGEABLE_COPY)
        }
    byte_count = golden.pageable.nbytes
    from_device = cuda_memory.DeviceArray(golden.pageable).memory
    target = cuda_memory.DeviceMemory(byte_count)
    return {
        DEVICE_COPY: lambda: target.copy_from(from_device),
        LOCKED_COPY: lambda: target.fill(golden.locked.ctypes.data, byte_count),
        PAGEABLE_COPY: lambda: target.fill(golden.pageable.ctypes.data, byte_count),
    }


def _resident_tree(
    parameters: _core.TreeParameters,
    array: _core.DeviceArray,
    scalars: int,
    backend: str,
    golden: _core.Tree | None = None,
) -> _core.Tree:
    builder = _core.TreeBuilder(parameters, scalars, golden=golden, backend=backend)
    builder.update_device(array)
    return builder.finish()


def _elements(
    parameters: _core.TreeParameters, golden: Any, new: Any, count: int, backend: str
) -> _core.Comparison:
    comparer = _core.ElementComparer(parameters, backend=backend)
    comparer.update_device(golden, new, first_element=0, element_count=count)
    return comparer.finish()


def markdown(document: dict[str, Any]) -> str:
    """One row per case; `ratio`: bytes per second of the case over those of the copy beside it."""
    lines = [
        "| date | device | dtype | case | GB/s | beside | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in document["rows"]:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        lines.append(
            f"| {document['date']} | {document['device']} | {row['dtype']} | {row['case']} |"
            f" {row['gb_per_second']:.1f} | {row['beside'] or ''} | {ratio} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device")
    parser.add_argument("--backend", choices=("cuda", "portable"), default="cuda")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="of each array")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="small and few: does it work?")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.quick:
        options.bytes, options.repeats = 1 << 20, 2
    is_real = options.backend == "cuda"
    document = {
        "format_version": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": cuda_memory.device_name() if is_real else "none: the host played the device",
        "machine": measure.machine(),
        **run(data_bytes=options.bytes, repeats=options.repeats, backend=options.backend),
    }
    text = markdown(document)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
