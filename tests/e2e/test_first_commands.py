"""README's commands, in their order, in a fresh folder: each ends as it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from command_line import call
from e2e.cli_project import ROOT, environment

PROGRAM = """
import os
import numpy as np
os.makedirs("out", exist_ok=True)
x = 5 * np.sin(np.arange(60_000) / 300)
np.save("out/field.npy", x + SHIFT + np.random.default_rng().normal(size=x.size) * 1e-9)
np.save("out/count.npy", np.arange(50))
"""


def ciwrap(folder: Path, *words: str) -> tuple[int, str]:
    done = call(*words, folder=folder, environment=environment())
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def test_in_the_order_of_the_readme(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"^\$ ciwrap (\w+)", text[text.index("## Use") :], re.MULTILINE)
    assert names[:5] == ["init", "repeat", "accept", "run", "accept"]

    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("SHIFT", "0"))
    call_program = [sys.executable, "program.py"]
    config = tmp_path / "ciwrap.yaml"
    subprocess.run(call_program, cwd=tmp_path, check=True)
    assert ciwrap(tmp_path, "init", "--", *call_program)[0] == 0
    code, said = ciwrap(tmp_path, "repeat", "--write-bounds")
    assert code == 0, said
    assert re.search(r"field: \{atol: \S+\}", config.read_text())
    code, said = ciwrap(tmp_path, "accept")
    assert (code, "with residues" in said) == (0, True), said
    code, said = ciwrap(tmp_path, "run")
    assert (code, said.startswith("match")) == (0, True), said
    # New numbers, and they are right.
    program.write_text(PROGRAM.replace("SHIFT", "1e-3"))
    code, said = ciwrap(tmp_path, "run")
    assert (code, said.startswith("DIFFER")) == (1, True), said
    assert "in the means of all" in said
    assert ciwrap(tmp_path, "accept", "--reason", "a better scheme")[0] == 0
    assert ciwrap(tmp_path, "run")[0] == 0
    # Another command for once.
    program.with_name("other.py").write_text(program.read_text())
    assert ciwrap(tmp_path, "run", "--", sys.executable, "other.py")[0] == 0
    assert ciwrap(tmp_path, "run", "out", "--", sys.executable, "-c", "exit(4)")[0] == 3


def test_a_golden_of_digests_alone_says_that_no_bound_will_do(tmp_path: Path) -> None:
    """Before a bound is set, too large to keep: better to know that at once."""
    (tmp_path / "program.py").write_text(PROGRAM.replace("SHIFT", "0"))
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    assert ciwrap(tmp_path, "init")[0] == 0
    code, said = ciwrap(tmp_path, "accept")
    assert code == 0
    assert "  field is compared exactly, and a golden of digests alone can judge no other" in said
    assert "count" not in said


def test_the_program_is_no_output_of_its_own(tmp_path: Path) -> None:
    """The run has to come first where nothing but the command's own source is there."""
    (tmp_path / "program.py").write_text(PROGRAM.replace("SHIFT", "0"))
    code, said = ciwrap(tmp_path, "init", "--", sys.executable, "program.py")
    assert code == 3, said
    assert "run the program first, or name its outputs" in said
    assert not (tmp_path / "ciwrap.yaml").exists()
