"""Runs the tests beside it under several thread counts and prints what the goldens saw move.

python examples/scipy/noise.py [THREADS]...
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def checks_under(threads: int) -> list:
    """All checks of a run with so many threads; ends the program if one does not match."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "result.json")
        command = [sys.executable, "-m", "pytest", "-q", str(HERE), f"--ciwrap-json={target}"]
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, str(threads))}
        done = subprocess.run(command, cwd=HERE.parents[1], env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout)
        return json.loads(target.read_text())["checks"]


def noise(variable: dict) -> tuple[str, str]:
    """The largest difference from the golden, and the share of the bound it is."""
    share, largest = variable.get("max_drift_share"), variable.get("max_abs_difference")
    if largest is None:  # the golden keeps residues: known to within one of their steps
        step = 2 / (variable["residue_levels"] + 1)
        return "?", f"< {100 * (share + step):.3g} %"
    if not largest:
        return "0", "0 %"
    return f"{largest:.1e}", f"{100 * share:.2g} %"


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]] or [1, 2]
    runs = [checks_under(threads) for threads in counts]
    print(
        "| check | bound |"
        + "".join(f" {count} thread{'s' if count > 1 else ''} | |" for count in counts)
    )
    print("| --- | --- |" + " ---: | ---: |" * len(counts))
    for same_check in zip(*runs, strict=True):
        for same_variable in zip(*(check["variables"] for check in same_check), strict=True):
            name = same_check[0]["name"].partition("::")[2]
            bound = same_variable[0]["bound"]
            words = " ".join(f"{key} {bound[key]:g}" for key in ("atol", "rtol") if bound[key])
            cells = [cell for variable in same_variable for cell in noise(variable)]
            variable = same_variable[0]["name"]
            label = name if variable == "array" else f"{name} {variable}"
            print(f"| {label} | {words or 'equal'} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
