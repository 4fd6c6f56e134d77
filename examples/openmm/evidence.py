"""What a golden of one run says of another run of the same program, by the evidence it holds.

    python evidence.py            prepares, runs twice with two threads, and prints a table
    python evidence.py --work DIR keeps everything in DIR, and reuses what is there

The two runs start from the same state and differ by floating-point noise alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EVIDENCE = ("tree", "residues", "data")


def program(work: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, str(HERE / "water_box.py"), *arguments], cwd=work, check=True)


def ciwrap(work: Path, *arguments: str) -> dict[str, Any]:
    """Runs a command and returns its JSON document; a verdict of any kind is fine."""
    target = work / "result.json"
    target.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ciwrap", *arguments, "--json", str(target)]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return json.loads(target.read_text())


def point_output_at(work: Path, run: str) -> None:
    (work / "run").unlink(missing_ok=True)
    (work / "run").symlink_to(run)


def judge(work: Path, evidence: str) -> tuple[dict[int, list[dict[str, Any]]], int]:
    """Checks run b against the golden of run a; its variables by frame, and the golden's bytes."""
    text = (HERE / "ciwrap.yaml").read_text()
    (work / "ciwrap.yaml").write_text(text.replace("evidence: residues", f"evidence: {evidence}"))
    golden = ["history", "--golden-dir", f"golden-{evidence}"]
    point_output_at(work, "a")
    ciwrap(work, "accept", *golden, "--force", "--reason", "run a")
    point_output_at(work, "b")
    (check,) = ciwrap(work, "check", *golden)["checks"]
    frames = defaultdict(list)
    for variable in check["variables"]:
        if variable["iteration"] is not None:
            frames[variable["iteration"]].append(variable)
    return frames, check["golden_bytes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, help="folder to keep runs and goldens in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        if not (work / "input").is_dir():
            program(work, "prepare", "input")
        for run in ("a", "b"):
            if not (work / run).is_dir():
                program(work, "run", "input", run, "--threads", "2")
        results = {evidence: judge(work, evidence) for evidence in EVIDENCE}
        data_bytes = sum(path.stat().st_size for path in (work / "a").rglob("*.npy"))

    frames = {evidence: found for evidence, (found, _) in results.items()}
    print("| frame | noise, of the bound | beyond the bound | plain tree | residues | data |")
    print("|---|---|---|---|---|---|")
    for frame, exact in sorted(frames["data"].items()):
        noise = max(variable["max_bound_share"] for variable in exact)
        beyond = sum(variable["differing_count"] for variable in exact)
        cells = [
            _verdict(frames["tree"][frame]),
            _verdict(frames["residues"][frame]),
            "differ" if beyond else "match",
        ]
        print(f"| {frame} | {100 * noise:.3g} % | {beyond} | {' | '.join(cells)} |")
    print()
    for evidence, (_, size) in results.items():
        print(f"{evidence}: golden of {size / 1024:.0f} KiB, {100 * size / data_bytes:.1f} %")


def _verdict(variables: list[dict[str, Any]]) -> str:
    suspects = sum(variable["suspect_chunks"] for variable in variables)
    chunks = sum(variable["chunk_count"] for variable in variables)
    proven = sum(variable["verdict"] == "differ" for variable in variables)
    differ = f", {proven} differ" if proven else ""
    return f"{suspects} of {chunks} chunks suspect{differ}" if suspects else "match"


if __name__ == "__main__":
    main()
