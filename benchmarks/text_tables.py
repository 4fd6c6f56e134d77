"""Tables of text: processor time of `ciwrap compare`, and of NumPy and pandas on the same files.

    python -m benchmarks.text_tables [--rows 500000] [--folder DIR]

8 columns of 17 digits; each case is a process of its own; pandas is left out where it is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.used import used

SEED = 20261129
_NAMES = "abcdefgh"
_OTHERS = {
    "numpy": "read = lambda path: np.loadtxt(path, delimiter=',', skiprows=1)",
    "pandas": "import pandas; read = pandas.read_csv",
}
_COMPARED = """
import sys; import numpy as np
{read}
assert np.allclose(read(sys.argv[1]), read(sys.argv[2]), rtol=1e-6)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to write the tables")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        paths = [Path(name) / one for one in ("a.csv", "b.csv")]
        values = np.random.default_rng(SEED).standard_normal((options.rows, len(_NAMES)))
        for path, factor in zip(paths, (1.0, 1 + 1e-9), strict=True):
            head = ",".join(_NAMES)
            np.savetxt(path, values * factor, "%.16e", ",", header=head, comments="")
        pair = [str(path) for path in paths]
        ours = used([sys.executable, "-m", "ciwrap", "compare", *pair, "--rtol", "1e-6"])
        assert ours.exit_code == 0
        print(f"ciwrap: {ours.cpu_seconds:.2f} s, {ours.peak >> 20} MiB")
        for module, read in _OTHERS.items():
            if importlib.util.find_spec(module) is None:
                print(f"{module} is not installed")
                continue
            other = used([sys.executable, "-c", _COMPARED.format(read=read), *pair])
            print(
                f"{module}: {other.cpu_seconds / ours.cpu_seconds:.2f} times ciwrap's processor"
                f" time, {other.peak >> 20} MiB"
            )


if __name__ == "__main__":
    main()
