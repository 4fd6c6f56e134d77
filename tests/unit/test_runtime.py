"""The core inside a host program: threads, forks, signals, forced backends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ciwrap import _core

PARAMETERS = _core.TreeParameters("<f8", atol=1e-6, residue_levels=15)


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    return np.random.default_rng(7).normal(size=1 << 18)


def test_several_python_threads_get_the_same_tree(data: np.ndarray) -> None:
    expected = _core.build_tree(PARAMETERS, data).root
    with ThreadPoolExecutor(8) as pool:
        roots = set(pool.map(lambda _: _core.build_tree(PARAMETERS, data).root, range(32)))
    assert roots == {expected}


def test_the_gil_is_released_while_hashing() -> None:
    """A Python thread goes on ticking during one long call; with the GIL held it would stand."""
    large = np.zeros(1 << 25)
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            done.wait(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    before = ticks
    _core.build_tree(_core.TreeParameters("<f8"), large, backend="serial")
    during = ticks - before
    done.set()
    ticker.join()
    assert during > 1


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_forked_child_works_after_the_parent_used_its_threads() -> None:
    result = run_python(
        """
        import os, numpy as np
        from ciwrap import _core
        p = _core.TreeParameters("<f4", atol=1e-3)
        a = np.arange(1 << 20, dtype="f4")
        root = _core.build_tree(p, a, backend="openmp").root
        child = os.fork()
        if child == 0:
            same = _core.build_tree(p, a).root == root
            usable = [b["usable"] for b in _core.backends() if b["name"] == "openmp"]
            os._exit(0 if same and not any(usable) else 9)
        _, status = os.waitpid(child, 0)
        assert _core.build_tree(p, a).root == root
        raise SystemExit(os.waitstatus_to_exitcode(status))
        """
    )
    assert result.returncode == 0, result.stderr


def test_ctrl_c_stops_a_long_call() -> None:
    program = textwrap.dedent(
        """
        import signal
        import numpy as np
        from ciwrap import _core
        # A test run in the background inherits that SIGINT is ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        a = np.zeros(1 << 24)
        p = _core.TreeParameters("<f8", rtol=1e-9, residue_levels=255)
        print("ready", flush=True)
        while True:
            _core.build_tree(p, a, backend="serial")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    try:
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in error


def test_unknown_and_impossible_requests_are_refused(data: np.ndarray) -> None:
    with pytest.raises(_core.CoreError, match="unknown backend 'gpu9'") as caught:
        _core.build_tree(PARAMETERS, data, backend="gpu9")
    assert caught.value.code == "invalid_argument"
    with pytest.raises(_core.CoreError, match="threads"):
        _core.build_tree(PARAMETERS, data, threads=-1)
    with pytest.raises(_core.CoreError, match="CPU level 'v9'"):
        _core.set_cpu_level("v9")


def test_flushing_subnormals_in_the_host_thread_changes_nothing(data: np.ndarray) -> None:
    """A library built with -ffast-math sets flush-to-zero for the thread that loads it."""
    code = """
        import ctypes, subprocess, sys, tempfile, pathlib, numpy as np
        from ciwrap import _core
        p = _core.TreeParameters("<f4", atol=1e-42, residue_levels=15)
        a = (np.arange(4096, dtype="u4") % 997).view("f4")
        root = _core.build_tree(p, a, backend="serial").root
        with tempfile.TemporaryDirectory() as d:
            source = pathlib.Path(d, "ftz.c")
            source.write_text(
                "#include <xmmintrin.h>\\n"
                "void ftz(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }\\n"
            )
            library = source.with_suffix(".so")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            ctypes.CDLL(str(library)).ftz()
            assert np.float32(1e-42) * np.float32(1) == 0, "flush-to-zero is not on"
            assert _core.build_tree(p, a, backend="serial").root == root
        """
    if os.uname().machine != "x86_64":
        pytest.skip("flush-to-zero is set through an x86 register here")
    result = run_python(code)
    assert result.returncode == 0, result.stderr
