"""Configurations as text, for the tests that load them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.project.config import load_text

if TYPE_CHECKING:
    from ciwrap.project.settings import Config

ROOT = Path("/project")


FULL = """
version: 1
golden_dir: baselines
defaults:
  rtol: 1e-6
  data_budget_bytes: 64 KiB
run:
  command: [./simulate, --fast]
  working_dir: build
  timeout_seconds: 600
  env: {OMP_NUM_THREADS: 2, FLAG: no}
checks:
  mesh:
    outputs: out/iter_{iteration:d}/rank_{rank:d}/{name}.npy
    exclude: ["*.log"]
    atol: 1e-6
    chunk_bytes: 64 KiB
    equal_nan: no
    fill_values: [-1e18, .nan]
    ignore: wall_time
    strict: {shape: off}
    variables:
      "*": {atol: 1e-3, residue_levels: 31}
      vx: {ulps: 4}
      no: {evidence: tree, mask: dry}
  raw:
    outputs: [out/x.bin, out/y.bin]
    format: raw
    options: {dtype: float32, shape: [-1, 3], offset: 16, byte_order: big}
    run: ./other
  table:
    outputs: out/t.csv
    residues_budget_bytes: 1.5 MiB
    options: {delimiter: semicolon, header: no, types: {a: int}, final_newline: false}
"""


def load(text: str) -> Config:
    return load_text(text, ROOT / "ciwrap.yaml")


def check_with(lines: str) -> str:
    """A configuration of one check with these further lines."""
    return "checks:\n  a:\n    outputs: x.npy\n" + "".join(f"    {x}\n" for x in lines.split("\n"))
