"""Several results (legs of a matrix, shards of one run) as one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.model import RunResult, Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.model import CheckResult


def merge_results(results: Sequence[RunResult], labels: Sequence[str] = ()) -> RunResult:
    """One result with the checks of all, in order; the verdict is the worst.

    labels: what to call each result (default: 1, 2, ...). Checks of the same name are told apart by
    the label of their result, and each keeps its own environment where they are not all the same.
    A single result stays as it is; the same call twice gives the same. Raises ValueError without
    results, or with labels that do not fit them.
    """
    if not results:
        raise ValueError("there is no result to merge")
    names = list(labels) or [str(position) for position in range(1, len(results) + 1)]
    if len(names) != len(results):
        raise ValueError(f"{len(results)} results, but {len(names)} labels")
    if len(results) == 1:
        return results[0]
    uses = Counter(check.name for result in results for check in result.checks)
    same_environment = all(result.environment == results[0].environment for result in results)
    kinds = {result.kind for result in results}
    commands = [result.command for result in results]
    return RunResult(
        # Worse than the worst check where a result came to no verdict at all.
        verdict=Verdict.worst(result.verdict for result in results),
        checks=tuple(
            _labelled(check, result, name if uses[check.name] > 1 else None, same_environment)
            for result, name in zip(results, names, strict=True)
            for check in result.checks
        ),
        kind=kinds.pop() if len(kinds) == 1 else "check",
        messages=tuple(
            replace(message, text=f"{name}: {message.text}")
            for result, name in zip(results, names, strict=True)
            for message in result.messages
        ),
        command=next((one for one in commands if one is not None and one.exit_code != 0), None),
        environment=results[0].environment if same_environment else {},
        ciwrap_version=results[0].ciwrap_version,
        started_at=min(result.started_at for result in results),
        seconds=sum(result.seconds for result in results),
    )


def _labelled(
    check: CheckResult, result: RunResult, name: str | None, same_environment: bool
) -> CheckResult:
    label = check.label
    if name is not None:
        label = f"{name}, {label}" if label else name
    environment = check.environment
    if not environment and not same_environment:
        environment = dict(result.environment)
    return replace(check, label=label, environment=environment)
