"""pytest's hooks, and nothing else: loaded at the start of every pytest run, so it is kept light.

Neither NumPy nor ciwrap's core is imported before a test asks for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.pytest_plugin.collect import (
    END_WRITING,
    LATE,
    OPEN,
    Collected,
    Results,
    after_first_run,
    hand_over,
    is_worker,
    raise_unreported,
)
from ciwrap.pytest_plugin.options import (
    MARKER,
    add_options,
    may_have_goldens,
    refuse_misread_files,
    refuse_nonsense,
    remove_earlier_results,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ciwrap.pytest_plugin.ending import Ending
    from ciwrap.pytest_plugin.fixture import CiwrapFixture

_SENT_LATE = "ciwrap_late"


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if not is_worker(config):
        refuse_misread_files(config)
        remove_earlier_results(config)
    refuse_nonsense(config)
    config.stash[LATE] = []
    config.stash[OPEN] = {}
    config.pluginmanager.register(SessionHooks(config), "ciwrap-session")


@pytest.fixture
def ciwrap(request: pytest.FixtureRequest) -> CiwrapFixture:
    """Compares arrays and files with goldens: `ciwrap.check(array, "velocity", atol=1e-6)`.

    The first run fails, for there is no golden yet, and its numbers wait: `ciwrap review` shows
    them, `ciwrap accept` makes them the golden. From then on a test fails if a number moves by more
    than its bound. In annotations: `ciwrap.pytest_plugin.CiwrapFixture`.
    """
    from ciwrap.base.errors import CiwrapError
    from ciwrap.pytest_plugin.fixture import make_fixture

    try:
        return make_fixture(request)
    except CiwrapError as error:
        pytest.fail(str(error), pytrace=False)


# Innermost, so that captured output, timeouts and the like know of the repeated runs.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    try:
        outcome = yield
        if item.get_closest_marker("ciwrap") is not None:
            after_first_run(item)
    except BaseException as error:
        raise_unreported(item, error, "call")
        raise
    raise_unreported(item, None, "call")
    return outcome


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    try:
        outcome = yield
    except BaseException as error:
        raise_unreported(item, error, "teardown")
        raise
    raise_unreported(item, None, "teardown")
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    hand_over(item, call, report)
    return report


class SessionHooks:
    """What is known of the whole session, of all its workers, too."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._collected = Collected()
        self._results = Results()
        self._ending: Ending | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        self._collected.before(items)
        yield
        self._collected.after(items, self._config)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._collected.note_part(str(self._config.rootpath / report.nodeid.split("::")[0]))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            self._collected.note_part(str(item.path))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._results.take(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._collected.take_from(node)
        self._config.stash[LATE] += getattr(node, "workeroutput", {}).get(_SENT_LATE, [])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._end_writing()
        if is_worker(self._config):
            self._collected.send(self._config)
            self._config.workeroutput[_SENT_LATE] = self._config.stash[LATE]  # type: ignore[attr-defined]  # pytest-xdist's
        elif self._results.has_any or self._config.stash[LATE] or may_have_goldens(self._config):
            from ciwrap.pytest_plugin.ending import finish

            self._ending = finish(session, self._results, self._collected)

    def _end_writing(self) -> None:
        for recorder in self._config.stash[OPEN].values():
            self._config.stash[LATE] += recorder.unreported()
        end = self._config.stash.get(END_WRITING, None)
        if end is None:
            return
        from ciwrap.base.errors import CiwrapError

        try:
            end()
        except CiwrapError as error:
            self._config.stash[LATE].append(str(error))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._ending is not None:
            self._ending.tell(terminalreporter)
