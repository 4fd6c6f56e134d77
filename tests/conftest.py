"""What all tests share: a home of their own, import paths of the oracles, tiers, profiles."""

from __future__ import annotations

import os
import shutil
import signal
import site
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from ciwrap.base.ci import CI_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["pytester"]

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE / "property"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from expected_texts import IS_REFRESH, Expected, file_of  # noqa: E402
from tiers import IS_FULL, IS_LONG, examples, slow_ones  # noqa: E402

# Helpers that assert say what was wrong as tests do.
pytest.register_assert_rewrite(
    "e2e.cli_project", "e2e.history_runs", "e2e.paired_runs", "unit.core_goldens"
)

# A shell that starts tests in the background, or under nohup, has them ignore these signals, and
# what the tests start would, too: an interrupt that shall end a command would never reach it.
for interrupt, handler in ((signal.SIGINT, signal.default_int_handler),
                           (signal.SIGHUP, signal.SIG_DFL)):  # fmt: skip
    if signal.getsignal(interrupt) is signal.SIG_IGN:
        signal.signal(interrupt, handler)

# Threads that multiply small matrices wait for each other, spinning: the same tests take up to ten
# times as long, above all beside other tests. Processes that are started from here inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def flush_nothing(descriptor: int) -> None:
    """In place of os.fsync, whose wait for the disk tells a test nothing; processes of their own
    flush. Raises OSError for what is no open file, as that does.
    """
    os.fstat(descriptor)


os.fsync = flush_nothing

# What tools keep in the real home, and tests may use: builds of Kokkos, packages, toolchains.
KEPT_AT_HOME = {
    "CIWRAP_CACHE_DIR": ".cache/ciwrap",
    "PIP_CACHE_DIR": ".cache/pip",
    "CCACHE_DIR": ".cache/ccache",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
}
# Variables that name folders or files of somebody's own settings.
OF_SOMEBODY = ("GIT_", "XDG_")


def move_out() -> Path:
    """Gives this process, and those it starts, an empty home, and git no settings but its own.

    Else tests would depend on the configuration of whoever runs them: signed commits, hooks, the
    filters of git-lfs, other names of branches.
    """
    old = Path.home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or old / ".cache")
    for name, place in KEPT_AT_HOME.items():
        kept = cache / place[7:] if place.startswith(".cache/") else old / place
        if kept.is_dir():
            os.environ.setdefault(name, str(kept))
    if site.ENABLE_USER_SITE:  # packages may be installed there
        os.environ.setdefault("PYTHONUSERBASE", site.getuserbase())
    for name in [name for name in os.environ if name.startswith(OF_SOMEBODY)]:
        del os.environ[name]
    # tools/run-tests makes one for all that it starts: what one finds out, the next need not.
    given = os.environ.get("CIWRAP_TESTS_HOME")
    home = Path(given or tempfile.mkdtemp(prefix="ciwrap-home-"))
    os.environ["HOME"] = str(home)
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    os.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    return home


# At once, not in a fixture: what is found out while tests are collected starts processes, too.
HOME = move_out()


def pytest_unconfigure() -> None:
    if "CIWRAP_TESTS_HOME" not in os.environ:
        shutil.rmtree(HOME, ignore_errors=True)


_common = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("quick", max_examples=examples(60), **_common)
# The same examples every time: a red CI must be red for its change.
settings.register_profile("ci", max_examples=examples(60), derandomize=True, **_common)
# For tools/mutate: a failure is all it wants to know, not the smallest one.
settings.register_profile(
    "mutation",
    settings.get_profile("ci"),
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.register_profile("long", max_examples=2000, **_common)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or (
    "long" if IS_LONG else "ci" if os.environ.get("CI") else "quick"
)
settings.load_profile(_PROFILE)
# Workers start with what is left: in CI, nothing may be accepted, and tests accept all the time.
os.environ["HYPOTHESIS_PROFILE"] = _PROFILE
for _name in CI_VARIABLES:
    os.environ.pop(_name, None)


# Elsewhere, and with PYTHONPATH=tests/without_linux, what Linux alone has is not tested.
IS_LINUX = sys.platform == "linux" and not hasattr(sys, "without_linux")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Deselected, not skipped: a skip is a test that was asked for and could not run.
    # Not its keywords: a folder that is called "long" is one, too.
    wanted = {"long": IS_LONG, "linux": IS_LINUX}
    left_out = [marker for marker, is_wanted in wanted.items() if not is_wanted]
    others = {item for item in items if any(map(item.get_closest_marker, left_out))}
    if IS_REFRESH:
        others |= {
            item for item in items if "expected_text" not in getattr(item, "fixturenames", ())
        }
    if not IS_FULL:
        others |= slow_ones(item for item in items if item not in others)
    if others:
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]


@pytest.fixture(scope="session")
def long_mode() -> bool:
    return IS_LONG


@pytest.fixture
def expected_text(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Expected]:
    """Call it with a text of the output: it has to be what stands in the file of the test."""
    failed_before = request.session.testsfailed
    texts = Expected(file_of(request.node.nodeid), tmp_path_factory.getbasetemp())
    yield texts
    if request.session.testsfailed == failed_before:
        texts.end()
