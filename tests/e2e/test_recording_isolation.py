"""What a program is that records: the same program with one thread more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from recorded_runs import build, need_library, recording, roots, start

from ciwrap import _core
from ciwrap.recording.native import include_folder

if TYPE_CHECKING:
    from pathlib import Path

# With a pool of OpenMP's own, another rounding and a blocked signal. Prints the threads that came,
# and whether the rest is as it was; then the threads that are left in the end.
SOURCE = r"""
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <fenv.h>
#include <omp.h>
#include <signal.h>
#include <string.h>
#include <ciwrap/record.h>
static double x[200000];
static int threads(void) {
    int count = -2; /* . and .. */
    DIR* folder = opendir("/proc/self/task");
    while (readdir(folder)) ++count;
    closedir(folder);
    return count;
}
int main(void) {
    int i, n, before;
    long long count = 0;
    sigset_t mask, after;
#pragma omp parallel num_threads(3) reduction(+ : count)
    count += 1;
    before = threads();
    fesetround(FE_UPWARD);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = 77;
    ciwrap_run* run = ciwrap_open("isolated", 0, 1);
    ciwrap_array told = {sizeof told, CIWRAP_HOST, "x", "f8", x, 1, 0, {200000}, {0}, 1e-6, -1};
    ciwrap_add(run, &told);
    for (n = 0; n < 4; ++n) {
        for (i = 0; i < 200000; ++i) x[i] = 0.125 * i + n;
        if (n % 2) {
            ciwrap_prepare(run, n, "");
#pragma omp parallel num_threads(3)
            ciwrap_work(run);
            ciwrap_complete(run);
        } else {
            ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
        }
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    printf("%d %d %d %d ", threads() - before, errno, fegetround() == FE_UPWARD,
           sigismember(&after, SIGUSR1) && !sigismember(&after, SIGTERM));
    ciwrap_close(run);
    printf("%d %lld\n", threads() - before, count);
    return 0;
}
"""


@pytest.mark.parametrize("is_on", [True, False])
def test_one_thread_more_and_all_else_as_it_was(tmp_path: Path, is_on: bool) -> None:
    need_library()
    source = tmp_path / "main.c"
    source.write_text(SOURCE)
    program = build("cc", ["-fopenmp", f"-I{include_folder()}", source], tmp_path / "main")
    done = start([program], recording(tmp_path / "run" if is_on else None))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(int(is_on)), "77", "1", "1", "0", "3"]
    if not is_on:
        assert not (tmp_path / "run").exists()
        return
    parameters = _core.TreeParameters("<f8", atol=1e-6, residue_levels=1)
    expected = {
        f"iter {n} / rank 0 / x": _core.build_tree(
            parameters, (0.125 * np.arange(200000) + n).tobytes()
        ).root
        for n in range(4)
    }
    assert roots(tmp_path / "run") == expected
