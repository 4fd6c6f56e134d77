"""Mode `update`: goldens made anew in the workspace, and a pull request for them.

Two steps: the first may run the program and has no token, the second has one and runs nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.action import check as checking
from ciwrap.action.artifact import results_below, source_folder
from ciwrap.action.comment import MARK
from ciwrap.action.inputs import NO_COMMAND
from ciwrap.action.outcome import read_result
from ciwrap.action.repository import GOLDEN_SUFFIXES, Clone, safe_branch
from ciwrap.action.runner import cut_markdown, say
from ciwrap.action.status import ERROR
from ciwrap.action.take import Taken, accept, golden_dir_below, take_pending
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.report.markdown import escaped
from ciwrap.review.ci_job import ci_job
from ciwrap.review.pending_artifact import ALLOWED_WORDS
from ciwrap.review.pending_goldens import PendingGoldens

if TYPE_CHECKING:
    from ciwrap.action.api import Api
    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner

_BODY_BYTES = 60_000
_BRANCH_PREFIX = "ciwrap/refresh-"
_DEFAULT_REASON = "Refreshed by the workflow"
_TITLE = "Refresh goldens"


def run_update(inputs: Inputs, runner: Runner) -> None:
    """Accepts pending goldens (input `source`), or what the program writes now, here."""
    stage = checking.fresh_stage(runner, inputs.artifact_name)
    reason = inputs.reason or _DEFAULT_REASON
    taken = _take(inputs, runner, reason) if inputs.source else _make(inputs, runner, stage, reason)
    changed = bool(taken.names)
    text = (
        f"### ciwrap: {'goldens changed' if changed else 'no golden changed'}\n\n{taken.markdown}"
    )
    summary = stage / "summary.md"
    summary.write_text(text, encoding="utf-8", errors="backslashreplace")
    runner.add_summary(text)
    for name, value in {
        "status": "differ" if changed else "match",
        "changed": "true" if changed else "false",
        "summary-path": summary,
    }.items():
        runner.set_output(name, value)


def _take(inputs: Inputs, runner: Runner, reason: str) -> Taken:
    folder = source_folder(inputs, runner)
    results = list(results_below(folder))
    if not results:
        raise UsageError("holds no artifact of ciwrap", file=folder)
    for one in results:
        refuse_unfit(one)
    folders = [one for one in results if (one / "pending").is_dir()]
    # A pull request is made of it, in which all of this is told and reviewed.
    return take_pending(folders, runner.workspace, inputs, reason, inputs.pattern, ALLOWED_WORDS)


def refuse_unfit(folder: Path) -> None:
    """Raises NotComparableError for a result that no golden may be made of.

    Fit is one that matches, or all of whose other checks have left a golden that waits: a program
    that crashed, or outputs that could not be read, are no new numbers.
    """
    outcome = read_result(folder / checking.RESULT)
    if outcome.status == ERROR or outcome.result is None:
        raise NotComparableError(
            f"the result is an error: {outcome.problem}",
            file=folder,
            remedy="no golden was changed",
        )
    waiting = {one.check for one in PendingGoldens(folder / checking.PENDING).all()}
    for check in outcome.result.checks:
        if not check.verdict.is_good and check.name not in waiting:
            raise NotComparableError(
                f"check {check.name!r} is {check.verdict.words}, and has left no golden to accept",
                file=folder,
                remedy="no golden was changed; see the report of that run",
            )


def _make(inputs: Inputs, runner: Runner, stage: Path, reason: str) -> Taken:
    config = checking.load_config(inputs, runner)
    verb = checking.verb(inputs, config)
    options = checking.common_options(inputs, runner, config)
    if verb[0] == "run" and inputs.run != NO_COMMAND:
        result = stage / "result.json"
        outcome = checking.finished(
            checking.call_cli([*verb, *options, *inputs.checks], runner, result)
        )
        if outcome.status == ERROR:
            raise NotComparableError(outcome.problem, remedy="no golden was changed")
    folder = checking.golden_folder(inputs, runner, config)
    document = accept(runner.workspace, inputs, folder, inputs.checks, reason)
    golden_dir = folder or (config.golden_dir if config else None)
    dirs = () if golden_dir is None else (runner.workspace / golden_dir,)
    return Taken(dirs, ((inputs.platform_key, document),))


def open_pull_request(inputs: Inputs, runner: Runner, api: Api) -> str:
    """Pushes the workspace's goldens to a branch of their own, and opens a pull request for it or
    brings the one that is open up to date; returns its address, '' if there is nothing to do."""
    base = safe_branch(runner.environment.get("GITHUB_REF_NAME", ""))
    branch = _BRANCH_PREFIX + base
    text = Path(runner.environment.get("CIWRAP_SUMMARY_PATH", "")).read_text(encoding="utf-8")
    reason = inputs.reason or _DEFAULT_REASON
    with tempfile.TemporaryDirectory() as name:
        clone = Clone.make(Path(name, "clone"), base, runner, api.token)
        clone.refuse_lfs()
        ours = golden_dir_below(runner.workspace, inputs, "")
        folder = clone.folder / ours.relative_to(runner.workspace)
        copy_goldens(ours, folder)
        if not clone.commit_goldens([folder], f"{_TITLE}\n\n{reason}\n"):
            say("the branch has these goldens already: no pull request")
            return ""
        clone.push(branch, runner, over=True)
    return _put_pull_request(body_of(reason, text, runner), branch, base, runner, api)


def body_of(reason: str, text: str, runner: Runner) -> str:
    """What the pull request says: why, which run made the goldens, and what changed."""
    head = f"{MARK}\n{escaped(reason, 2000)}\n\n"
    run = ci_job(runner.environment).run
    if run is not None and run.startswith("https://"):
        head += f"Made by [this run]({run}).\n\n"
    return cut_markdown(f"{head}{text}", _BODY_BYTES)


def copy_goldens(source: Path, target: Path) -> None:
    """Makes the goldens of one folder those of the other; plain files only."""
    for path in sorted(source.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name.endswith(GOLDEN_SUFFIXES):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if copy.is_symlink():
                raise UsageError("is a symbolic link", file=copy)
            shutil.copyfile(path, copy)


def _put_pull_request(body: str, branch: str, base: str, runner: Runner, api: Api) -> str:
    owner = runner.repository.partition("/")[0]
    pulls = f"/repos/{runner.repository}/pulls"
    known = next(iter(api.pages(pulls, state="open", head=f"{owner}:{branch}", base=base)), None)
    if known is not None:
        api.send("PATCH", f"{pulls}/{int(known['number'])}", {"body": body})
        return str(known.get("html_url", ""))
    made = api.send("POST", pulls, {"title": _TITLE, "head": branch, "base": base, "body": body})
    return str(made.get("html_url", ""))
