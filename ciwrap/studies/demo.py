"""What `ciwrap demo` shows: a noisy program that matches its golden, and a defect that does not."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from ciwrap.base.errors import GoldenMissingError
from ciwrap.base.late import numpy as np
from ciwrap.check.check import check_outputs
from ciwrap.check.two_sides import Work
from ciwrap.explain.across import explainer
from ciwrap.golden.store import GoldenStore
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources
from ciwrap.model import RunResult, Verdict
from ciwrap.project.config import load_config
from ciwrap.project.settings import CONFIG_NAME, Check
from ciwrap.report.words import headline
from ciwrap.studies.simulation import RANK_COUNT, Settings, run_simulation

CHECK = "particle-mesh"
# Where the configuration says the simulation writes.
_OUTPUT = Path("build") / "demo"


class Demonstration(Struct, frozen=True):
    """good: the unchanged program against its golden; defective: with the planted defect."""

    good: RunResult
    defective: RunResult

    @property
    def is_as_expected(self) -> bool:
        return (self.good.verdict, self.defective.verdict) == (Verdict.MATCH, Verdict.DIFFER)


def run_demo(
    folder: Path,
    *,
    say: Callable[[str], None],
    show: Callable[[RunResult], None],
    threads: int = 2,
    resources: Resources = DEFAULT_RESOURCES,
) -> Demonstration:
    """Runs the demonstration in an empty folder, and tells its story step by step.

    say: gets the story, some lines at a time. show: prints a result as `ciwrap check` does.
    threads: of the simulation. Raises GoldenMissingError if the demonstration's golden is not part
    of this installation, ValueError for impossible threads.
    """
    copy_project(folder)
    config = load_config(folder / CONFIG_NAME)
    check = config.check(CHECK)
    store = GoldenStore(config.golden_dir)
    output = folder / _OUTPUT
    settings = Settings(threads=threads)

    say(
        f"1. Run a particle-mesh simulation twice: {settings.iterations} steps, {RANK_COUNT} ranks,"
        f" {threads} threads that add charge to one mesh in whatever order they come."
    )
    started = time.perf_counter()
    files = run_simulation(output, settings)
    run_simulation(folder / "again", settings)
    seconds = time.perf_counter() - started
    byte_count = sum(path.stat().st_size for path in files)
    unequal, total = _count_unequal(output, folder / "again")
    say(
        f"   {len(files)} files, {byte_count / 1e6:.1f} MB a run, {seconds:.1f} s for both."
        f" The two runs disagree in {unequal:,} of {total:,} floating-point numbers."
    )

    golden_bytes = store.path(CHECK).stat().st_size
    say(
        f"\n2. Check the first run against the committed golden"
        f" ({golden_bytes / 1e3:.0f} kB, {100 * golden_bytes / byte_count:.0f} % of the data)."
    )
    good = _checked(check, store, resources)
    show(good)

    say(
        f"\n3. Plant a defect: from step {settings.defect_from} on, rank {settings.defect_rank}"
        " takes the field on the upper wall with the wrong sign. Check again."
    )
    shutil.rmtree(output)
    run_simulation(output, Settings(threads=threads, defect="boundary-sign"))
    defective = _checked(check, store, resources)
    show(defective)
    first = defective.checks[0].first_divergence
    if first is not None:
        earliest = first.variable
        say(f"\nThe earliest trace of it is {earliest.id.text}: {headline(earliest)}.")
    return Demonstration(good, defective)


def copy_project(folder: Path) -> None:
    """Copies the demonstration's configuration and golden into `folder`.

    Raises GoldenMissingError if they are not part of this installation.
    """
    here = Path(__file__).resolve().parents[1] / "demo"
    # Installed beside this file; in a work tree, at the root of the repository.
    for project in (here / "project", here.parent.parent):
        if (project / CONFIG_NAME).is_file() and (project / "golden").is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(project / CONFIG_NAME, folder)
            shutil.copytree(project / "golden", folder / "golden")
            return
    raise GoldenMissingError(
        "the demonstration's golden is not part of this installation",
        file=here / "project",
        remedy="install ciwrap from its repository or a wheel",
    )


def _checked(check: Check, store: GoldenStore, resources: Resources) -> RunResult:
    started = time.perf_counter()
    result = check_outputs(check, store, Work(resources, explain=explainer))
    return RunResult(result.verdict, (result,), kind="demo", seconds=time.perf_counter() - started)


def _count_unequal(one: Path, other: Path) -> tuple[int, int]:
    """Floating-point numbers that are not equal in two runs, and all there are."""
    unequal = total = 0
    for path in sorted(one.rglob("*.npy")):
        a = np.load(path, allow_pickle=False)
        b = np.load(other / path.relative_to(one), allow_pickle=False)
        if a.dtype.kind == "f":
            unequal += int(np.count_nonzero(a != b))
            total += a.size
    return unequal, total
