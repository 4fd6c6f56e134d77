"""What all tests share: import paths of the oracles, Hypothesis profiles, the long mode."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

pytest_plugins = ["pytester"]

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE / "property"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

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

LONG = os.environ.get("CIWRAP_LONG") == "1"

_common = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("quick", max_examples=60, **_common)
# The same examples every time: a red CI must be red for its change.
settings.register_profile("ci", max_examples=60, derandomize=True, **_common)
# For tools/mutate: a failure is all it wants to know, not the smallest one.
settings.register_profile(
    "mutation",
    settings.get_profile("ci"),
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.register_profile("long", max_examples=2000, **_common)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE")
    or ("long" if LONG else "ci" if os.environ.get("CI") else "quick")
)


# Elsewhere, and with PYTHONPATH=tests/without_linux, what Linux alone has is not tested.
IS_LINUX = sys.platform == "linux" and not hasattr(sys, "without_linux")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Deselected, not skipped: a skip is a test that was asked for and could not run.
    # Not its keywords: a folder that is called "long" is one, too.
    left_out = [*([] if LONG else ["long"]), *([] if IS_LINUX else ["linux"])]
    others = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, left_out))]


@pytest.fixture(scope="session")
def long_mode() -> bool:
    return LONG
