"""Modes `repeat`, `time`, `trend` and `update`, and the last step, the gate.

The command line runs as a child; the job fails in the gate alone, after everything has been
uploaded. A step that left no status has failed. Of the two steps of `update`, the first may run
the program and has no token, the second has a token and runs nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ciwrap.action.github import (
    AUTHOR,
    DONE,
    ERROR,
    GOLDEN_SUFFIXES,
    GOOD,
    META,
    NO_COMMAND,
    NOT_COMPARABLE,
    PENDING,
    RESULT,
    STATUSES,
    Api,
    Clone,
    FailOn,
    Inputs,
    Runner,
    child_environment,
    cut_markdown,
    plain_log,
    results_below,
    run_to_the_end,
    safe_branch,
    say,
    source_folder,
)
from ciwrap.action.orders import (
    MARK,
    Call,
    Taken,
    accept,
    call_cli,
    finished,
    fresh_stage,
    golden_dir_below,
    golden_folder,
    job_config,
    own_arguments,
    project_options,
    take_pending,
    write_meta,
)
from ciwrap.action.orders import verb as checking_verb
from ciwrap.action.outputs import (
    MOST_ANNOTATIONS,
    REPORT,
    SUMMARY,
    copy_report,
    crash_of,
    publish,
    read_result,
    tell_files,
)
from ciwrap.base.documents import DocumentError
from ciwrap.base.errors import NotComparableError, RemoteError, UsageError
from ciwrap.project.settings import CONFIG_NAME
from ciwrap.report.document import load_document
from ciwrap.report.markdown import escaped, workflow_command
from ciwrap.report.text import safe_name
from ciwrap.review.artifact import ALLOWED_WORDS
from ciwrap.review.change import ci_job
from ciwrap.review.pending import PendingGoldens

# What a command says by exit code 1: bounds that do not hold, or that B takes longer.
_ONES = {"repeat": "differ", "time": "slower"}
_LONGEST = 1000
_NOT_COMPARED = 3


def run_measure(inputs: Inputs, runner: Runner) -> None:
    """Calls the command that the mode is named after. Raises UsageError for inputs that have no
    meaning in it.
    """
    arguments = [inputs.mode, *_arguments(inputs, runner)]
    stage = fresh_stage(runner, inputs.artifact_name)
    outputs = ["--markdown", str(stage / SUMMARY), "--report", str(stage / REPORT)]
    call = call_cli([*arguments, *outputs], runner, stage / RESULT)
    write_meta(inputs, runner, stage)
    if call.exit_code in (0, 1, 3) and (stage / SUMMARY).is_file():
        _tell(inputs, runner, stage, call)
    else:  # it came to nothing, and its document says why
        found = finished(call)
        has_crashed = found.result is not None and crash_of(found.result) is not None
        is_told = call.exit_code == _NOT_COMPARED and not has_crashed
        status = NOT_COMPARABLE if is_told else ERROR
        publish(replace(found, status=status), inputs, runner, stage)


def _arguments(inputs: Inputs, runner: Runner) -> list[str]:
    own = own_arguments(inputs)
    if inputs.mode == "time":
        return [*project_options(inputs, None), *own]
    folder = golden_folder(inputs, runner, job_config(inputs, runner))
    options = project_options(inputs, folder)
    if inputs.mode == "repeat":
        return [*options, *own, *inputs.checks]
    return [*options, *own, *_results(inputs, runner)]


def _results(inputs: Inputs, runner: Runner) -> list[str]:
    """The JSON results in the folder that `source` names."""
    if not inputs.source:
        raise UsageError("mode trend needs the input source: the folder of the results")
    folder = runner.workspace / inputs.source
    artifacts = {path.parent for path in folder.rglob(META) if path.with_name(RESULT).is_file()}
    found = sorted(
        path
        for path in folder.rglob("*.json")
        # Our artifacts have more beside their results, and pending goldens below.
        if path.is_file()
        and (
            artifacts.isdisjoint(path.parents) or (path.parent in artifacts and path.name == RESULT)
        )
    )
    if not found:
        raise UsageError("holds no results (*.json)", file=folder)
    here = runner.workspace
    return [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in found]


def keep_results(inputs: Inputs, runner: Runner, api: Api) -> None:
    """Mode `trend` with a store: adds the results to that branch and pushes it; where somebody was
    faster, once more on what they left. Only the default branch's results are kept.

    Raises RemoteError, UsageError, NotComparableError.
    """
    if not _is_default_branch(runner):
        say("nothing is kept: this is not the default branch")
        return
    here, stage = runner.workspace, fresh_stage(runner, inputs.artifact_name)
    config = here / (inputs.config or CONFIG_NAME)
    goldens = golden_folder(inputs, runner, job_config(inputs, runner))
    options = ["--config", str(config)] if config.is_file() else []
    options += ["--golden-dir", str(here / goldens)] if goldens else []
    options += [*own_arguments(inputs), *(str(here / one) for one in _results(inputs, runner))]
    outputs = ["--markdown", str(stage / SUMMARY), "--json", str(stage / RESULT)]
    command = [sys.executable, "-I", "-m", "ciwrap", "trend", "--store", inputs.store]
    with tempfile.TemporaryDirectory() as name:
        clone = Clone.empty(Path(name, "clone"), api.token)
        for key, value in zip(("user.name", "user.email"), AUTHOR, strict=True):
            clone.git("config", key, value)
        tip = None
        while True:
            before, tip = tip, clone.fetch_branch(inputs.store, runner)
            with plain_log("ciwrap trend"):
                words, env = [*command, *outputs, *options], child_environment()
                code = run_to_the_end(words, cwd=clone.folder, env=env)
            if code != 0:
                raise NotComparableError("`ciwrap trend` kept nothing: see the log")
            try:
                clone.remote(runner, "push", "--quiet", f"refs/heads/{inputs.store}")
                break
            except RemoteError:
                if tip == before:  # nobody has moved it, so trying again would not help
                    raise
    server = runner.environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    address = f"{server}/{runner.repository}/tree/{inputs.store}"
    text = (stage / SUMMARY).read_text(encoding="utf-8")
    runner.add_summary(f"{text}\n[All results on the branch {inputs.store}]({address})\n")
    for line in [*_annotations(inputs.mode, stage / RESULT)][:MOST_ANNOTATIONS]:
        print(line, flush=True)


def _is_default_branch(runner: Runner) -> bool:
    """Whether results of this job are of the default branch; where no event tells its name, every
    branch that was pushed is."""
    told = runner.event.get("repository")
    name = told.get("default_branch") if isinstance(told, dict) else None
    of_request = runner.environment.get("GITHUB_EVENT_NAME", "").startswith("pull_request")
    return not of_request and name in (None, runner.environment.get("GITHUB_REF_NAME"))


def _tell(inputs: Inputs, runner: Runner, stage: Path, call: Call) -> None:
    """Summary, annotations and outputs of a command that came to an end."""
    codes = {0: DONE, 1: _ONES.get(inputs.mode, ERROR), _NOT_COMPARED: NOT_COMPARABLE}
    runner.set_output("status", codes[call.exit_code])
    tell_files(inputs, runner, stage)
    runner.add_summary((stage / SUMMARY).read_text(encoding="utf-8"))
    for line in [*_annotations(inputs.mode, stage / RESULT)][:MOST_ANNOTATIONS]:
        print(line, flush=True)
    copy_report(stage / REPORT, inputs, runner)


def _annotations(mode: str, result: Path) -> Iterator[str]:
    """Warnings of a trend, and what went wrong in repeated runs."""
    try:
        document: Any = load_document(result)
    except (OSError, DocumentError):
        return
    for text in document.get("warnings", ()) if mode == "trend" else ():
        yield workflow_command("warning", safe_name(text, _LONGEST), title="ciwrap trend")
    for one in document.get("messages", ()) if mode == "repeat" else ():
        if one["level"] in ("error", "warning"):
            text = safe_name(one["text"], _LONGEST)
            yield workflow_command(one["level"], text, title="ciwrap repeat")


_BODY_BYTES = 60_000
_BRANCH_PREFIX = "ciwrap/refresh-"
_DEFAULT_REASON = "Refreshed by the workflow"
_TITLE = "Refresh goldens"


def run_update(inputs: Inputs, runner: Runner) -> None:
    """Accepts pending goldens (input `source`), or what the program writes now, here."""
    stage = fresh_stage(runner, inputs.artifact_name)
    reason = inputs.reason or _DEFAULT_REASON
    taken = _take(inputs, runner, reason) if inputs.source else _make(inputs, runner, stage, reason)
    changed = bool(taken.names)
    text = (
        f"### ciwrap: {'goldens changed' if changed else 'no golden changed'}\n\n{taken.markdown}"
    )
    summary = stage / SUMMARY
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
        refuse_unusable(one)
    folders = [one for one in results if (one / PENDING).is_dir()]
    # A pull request is made of it, in which all of this is told and reviewed.
    return take_pending(folders, runner.workspace, inputs, reason, inputs.pattern, ALLOWED_WORDS)


def refuse_unusable(folder: Path) -> None:
    """Raises NotComparableError for a result that no golden may be made of.

    Usable is one that matches, or all of whose other checks have left a golden that waits: a
    program that crashed, or outputs that could not be read, are no new numbers.
    """
    outcome = read_result(folder / RESULT)
    if outcome.status == ERROR or outcome.result is None:
        raise NotComparableError(
            f"the result is an error: {outcome.problem}",
            file=folder,
            remedy="no golden was changed",
        )
    waiting = {one.check for one in PendingGoldens(folder / PENDING).all()}
    for check in outcome.result.checks:
        if not check.verdict.is_good and check.name not in waiting:
            raise NotComparableError(
                f"check {check.name!r} is {check.verdict.words}, and has left no golden to accept",
                file=folder,
                remedy="no golden was changed; see the report of that run",
            )


def _make(inputs: Inputs, runner: Runner, stage: Path, reason: str) -> Taken:
    config = job_config(inputs, runner)
    verb = checking_verb(inputs, config)
    folder = golden_folder(inputs, runner, config)
    options = project_options(inputs, folder)
    if verb[0] == "run" and inputs.run != NO_COMMAND:
        call = call_cli([*verb, *options, *inputs.checks], runner, stage / RESULT)
        outcome = finished(call)
        if outcome.status == ERROR:
            raise NotComparableError(outcome.problem, remedy="no golden was changed")
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
        folder = clone.folder / ours.relative_to(runner.checkout)
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


# What fails, by the input. A status that is none of STATUSES counts as an error.
_FAILS = {
    FailOn.DIFFER: STATUSES[STATUSES.index("inconsistent") :],
    FailOn.NOT_COMPARABLE: (NOT_COMPARABLE, ERROR),
    FailOn.ERROR: (ERROR,),
    FailOn.NEVER: (),
}
_WORDS = {
    "match": "every number that was compared is within its error bound",
    "consistent": "no number differs, and the statistics of the runs are those of the ensemble",
    "done": "what was measured is in the job summary",
    "slower": "side B takes longer than side A, by the margin or more, or more than its budget",
    "inconsistent": "the statistics of the runs are not those of the ensemble",
    "undecided": "numbers may be beyond their error bounds: the goldens keep too little to tell",
    "differ": "numbers are beyond their error bounds",
    "not-comparable": "something was not compared, which is never a match",
    "error": "ciwrap came to no result",
}


_WIDER_WORDS = (
    "less is checked than before, or nobody knows whether it is (fail-on-wider): see the table of"
    " changes in the job summary"
)


def gate(status: str, fail_on: FailOn, environment: Mapping[str, str]) -> int:
    """The exit code of the job's last step."""
    known = status if status in STATUSES else ERROR
    compared = environment.get("CIWRAP_COMPARED", "")
    if known == "match" and not (compared.isdigit() and int(compared) > 0):
        # A match of nothing is none, whoever says so.
        known = NOT_COMPARABLE
    text = f"{known.replace('-', ' ')}: {_WORDS[known]}"
    is_asked = environment.get("CIWRAP_INPUT_FAIL_ON_WIDER", "").strip().lower() == "true"
    # '' is known of no pull request.
    is_refused = is_asked and environment.get("CIWRAP_WIDER", "") not in ("", "0")
    if is_refused:
        print(workflow_command("error", _WIDER_WORDS, title="ciwrap"))
    if known in _FAILS[fail_on]:
        print(workflow_command("error", text, title="ciwrap"))
        return 1
    if known not in GOOD:
        print(workflow_command("warning", f"{text}; fail-on: {fail_on.value}", title="ciwrap"))
    else:
        print(text)
    return int(is_refused)
