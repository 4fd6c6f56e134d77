"""`ciwrap.time(a, b)`: is the second of two calls slower than the first?"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from ciwrap.config.schema import TIMING
from ciwrap.errors import UsageError
from ciwrap.model.forms import Form, read_arguments
from ciwrap.statistics.pairs import PairedComparison, TimingVerdict, compare_pairs
from ciwrap.structs import Struct
from ciwrap.timing import wording
from ciwrap.timing.calls import time_calls
from ciwrap.timing.choices import chosen_timing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ciwrap.config import Config

_WHERE = "time()"
KEYWORDS = ("pairs", "margin", "confidence", "gate", "warm_up")


class TimedCalls(Struct, frozen=True):
    """What two calls' times came to. lines: in words, the verdict first. is_refused: whether the
    second takes longer and the gate was asked for.
    """

    comparison: PairedComparison
    lines: tuple[str, ...]
    is_refused: bool


def compare_calls(
    a: Callable[[], object],
    b: Callable[[], object],
    config: Config | None,
    given: Mapping[str, Any],
    *,
    is_shared: bool,
) -> TimedCalls:
    """Calls both in pairs. given: of KEYWORDS, None for what the configuration says. is_shared:
    whether other tests may run at the same time. Raises UsageError, and what the calls raise.
    """
    for call in (a, b):
        if not callable(call):
            raise UsageError(
                f"time() takes two functions without arguments, not {type(call).__name__}",
                remedy="ciwrap.time(lambda: old(x), lambda: new(x))",
            )
    forms = {name: form for name in KEYWORDS if isinstance(form := TIMING.keys[name].kind, Form)}
    settings = chosen_timing(config, read_arguments(given, forms, _WHERE))
    assert settings.confidence is not None
    first, second = time_calls(
        a, b, pairs=settings.pairs, warm_up=settings.warm_up, seed=secrets.randbelow(1 << 32)
    )
    found = compare_pairs(first, second, margin=settings.margin, confidence=settings.confidence)
    lines = [wording.headline(found), *wording.explanation(found, is_call=True)]
    if is_shared:
        lines.append("other tests may have run at the same time, in other processes")
    is_slower = found.verdict is TimingVerdict.CHANGED and found.change > 0
    return TimedCalls(found, tuple(lines), settings.gate and is_slower)
