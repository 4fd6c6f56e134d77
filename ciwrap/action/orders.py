"""The modes of the action: compare, `merge`, `comment` and `accept`.

`comment` and `accept` have the repository's own rights and may follow a stranger's run. The event
and the API alone decide which pull request and which commit are meant; artifacts give nothing but
results, which are parsed strictly and escaped, and pending goldens. No code of theirs is run here.
No mode fails the job by itself: the gate does, after the results have been uploaded.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ciwrap.action.github import (
    ERROR,
    GOOD,
    META,
    NO_COMMAND,
    NOT_COMPARABLE,
    PENDING,
    RESULT,
    STATUSES,
    Api,
    Clone,
    Inputs,
    Meta,
    Runner,
    child_environment,
    cut_markdown,
    fetch,
    plain_log,
    quoted,
    read_meta,
    refuse_outside,
    results_below,
    run_to_the_end,
    safe_branch,
    say,
    source_folder,
)
from ciwrap.action.outputs import (
    CHANGES,
    SUMMARY,
    StepOutcome,
    changes_of_results,
    changes_told,
    find_changes,
    place_of,
    publish,
    read_changes,
    read_result,
    revision_of,
    summary,
)
from ciwrap.base.documents import DocumentError, to_record
from ciwrap.base.errors import (
    CiwrapError,
    NotComparableError,
    RemoteError,
    UsageError,
    one_line,
)
from ciwrap.model import Message, MessageLevel, RunResult, VariableId, Verdict
from ciwrap.project.config import find_config, load_config
from ciwrap.project.settings import Config
from ciwrap.report.document import (
    from_document,
    load_document,
    merge_results,
    to_document,
    write_document,
)
from ciwrap.report.markdown import escaped, workflow_command
from ciwrap.report.text import bytes_text, percent_text, plural
from ciwrap.review.accept import AcceptDocument, AcceptedCheck, AcceptedVariable
from ciwrap.review.artifact import ALLOWED_WORDS

_MOST_ROWS = 100
_MOST_NAMES = 3
_WRITTEN = frozenset({"created", "replaced"})


class NothingMeantError(Exception):
    """A pattern that means none of the pending goldens."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was accepted. documents: of `ciwrap accept`, by platform key."""

    golden_dirs: tuple[Path, ...]
    documents: tuple[tuple[str, AcceptDocument], ...]

    @property
    def names(self) -> list[str]:
        found = [
            f"{key}/{check.name}" if key else check.name
            for key, document in self.documents
            for check in document.checks
            if check.status in _WRITTEN
        ]
        return list(dict.fromkeys(found))

    @property
    def title(self) -> str:
        """For a commit's first line."""
        names = self.names
        if len(names) > _MOST_NAMES:
            return plural(len(names), "check")
        return ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in names) or "none"

    @property
    def markdown(self) -> str:
        """What each golden was and is, for reviewers."""
        lines: list[str] = []
        for key, document in self.documents:
            for check in document.checks:
                lines += _check_lines(key, check)
        return "\n".join(lines) + "\n"


def take_pending(
    folders: Sequence[Path],
    root: Path,
    inputs: Inputs,
    reason: str,
    pattern: str = "",
    allowed: Sequence[str] = (),
) -> Taken:
    """Accepts the pending goldens of artifacts into the checkout at `root`; runs nothing of it.

    The folders' own descriptions say which platform's goldens they are, nothing else. allowed: in
    which ways goldens may check less, of `ciwrap.review.artifact.ALLOWED_WORDS`. Raises UsageError
    for a golden folder outside of `root`, NotComparableError where nothing could be accepted.
    """
    documents, golden_dirs, unmatched = [], [], []
    for folder in folders:
        meta = read_meta(folder)
        key = meta.platform_key
        golden_dir = golden_dir_below(root, inputs, key)
        golden_dirs.append(golden_dir)
        more = ["--from", str(folder / PENDING), "--commit", meta.commit]
        more += [f"--{word}" for word in allowed]
        # After `--`, a pattern is no option, whatever it begins with.
        more += ["--", pattern] if pattern else []
        try:
            documents.append((key, accept(root, inputs, golden_dir, more, reason)))
        except NothingMeantError as error:
            # A pattern may mean goldens of some platforms alone, but not of none.
            unmatched.append(error)
    if unmatched and not documents:
        raise UsageError(str(unmatched[0]))
    return Taken(tuple(golden_dirs), tuple(documents))


def golden_dir_below(root: Path, inputs: Inputs, key: str) -> Path:
    """The folder of the goldens, which has to be within the checkout, links resolved."""
    path = root / inputs.config if inputs.config else find_config(root)
    base = root / inputs.golden_dir if inputs.golden_dir else load_config(path).golden_dir
    folder = base / key if key else base
    refuse_outside(folder, root)
    return folder


def accept(
    root: Path, inputs: Inputs, golden_dir: Path | None, more: Iterable[str], reason: str
) -> AcceptDocument:
    """`ciwrap accept` in the checkout; its document. Raises NotComparableError."""
    options = project_options(inputs, golden_dir)
    with tempfile.TemporaryDirectory() as name:
        target = Path(name, "accept.json")
        command = [sys.executable, "-I", "-m", "ciwrap", "accept", "--in-ci"]
        command += ["--json", str(target)]
        with plain_log("ciwrap accept"):
            done = subprocess.run(
                [*command, *options, "--reason", reason, *more],
                cwd=root,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                check=False,
            )
        try:
            document = load_document(target) if target.is_file() else None
            if done.returncode == 0:
                return to_record(document, AcceptDocument)
            messages = () if document is None else from_document(document).messages
        except (OSError, DocumentError) as error:
            raise NotComparableError(f"`ciwrap accept` left no document: {error}") from None
    said = "; ".join(one.text for one in messages)
    if any(one.slug == UsageError.slug for one in messages) and "--" in list(more):
        raise NothingMeantError(said)
    raise NotComparableError(
        f"nothing was accepted: {said or f'`ciwrap accept` ended with {done.returncode}'}"
    )


def _check_lines(key: str, check: AcceptedCheck) -> list[str]:
    name = escaped(f"{key}/{check.name}" if key else check.name)
    sizes = [bytes_text(count) for count in (check.old_bytes, check.new_bytes) if count]
    lines = [f"**{name}**: {check.status}, {' -> '.join(sizes)}", ""]
    loud = [one for one in check.variables if one.change not in ("equal", "within")]
    if loud:
        lines += ["| variable | change | |", "|---|---|---|"]
        lines += [_variable_row(variable) for variable in loud[:_MOST_ROWS]]
        if len(loud) > _MOST_ROWS:
            lines += ["", f"+{len(loud) - _MOST_ROWS} more"]
        lines.append("")
    return lines


def _variable_row(variable: AcceptedVariable) -> str:
    identity = VariableId(variable.name, variable.iteration, variable.rank)
    moved = variable.moved
    notes = []
    if variable.bound_widened:
        notes.append("**bound WIDER**")
    if variable.evidence_lowered:
        notes.append("**less evidence**")
    if variable.new is None:
        notes.append("**no longer checked**")
    if moved is not None and moved.differing_count:
        notes.append(f"{moved.differing_count} of {moved.element_count} values moved")
    share = None if moved is None else moved.max_bound_share
    if share is not None and math.isfinite(share):
        notes.append(
            f"up to {percent_text(share)} of the old bound"
            if share <= 1
            else f"up to {share:.3g} x the old bound"
        )
    elif moved is not None and moved.reason:
        notes.append(escaped(moved.reason))
    return f"| {escaped(identity.text)} | {escaped(variable.change)} | {', '.join(notes)} |"


def run_merge(inputs: Inputs, runner: Runner) -> None:
    """Reads what `actions/download-artifact` put into the input `source`."""
    if not inputs.source:
        raise UsageError("mode merge needs the input source: the folder of the results")
    folders = list(results_below(source_folder(inputs, runner)))
    outcome = merge_folders(folders, inputs)
    stage = fresh_stage(runner, inputs.artifact_name)
    if outcome.result is not None:
        write_document(to_document(outcome.result), str(stage / RESULT))
    publish(outcome, inputs, runner, stage, changes=changes_of_results(runner, folders))


def merge_folders(folders: Sequence[Path], inputs: Inputs) -> StepOutcome:
    """One outcome of those in the folders; the worst of them, and of their number."""
    outcomes = [(_key_of(folder), read_result(folder / RESULT)) for folder in folders]
    problems = [f"{key or 'result'}: {one.problem}" for key, one in outcomes if one.problem]
    results = [(key, one.result) for key, one in outcomes if one.result is not None]
    wanted = inputs.expect
    if not outcomes or (wanted is not None and len(outcomes) != wanted):
        count = plural(len(outcomes), "result")
        problems.append(f"{count} found, {'some' if wanted is None else wanted} expected")
    status = _worst([one.status for _, one in outcomes] + [NOT_COMPARABLE] * bool(problems))
    if not results:
        empty = RunResult(Verdict.NOT_COMPARABLE)
        results = [("", empty)]
    problem = "; ".join(problems) if status == ERROR else ""
    return StepOutcome(status, _merged(results, problems), problem)


def _merged(results: Sequence[tuple[str, RunResult]], problems: Sequence[str]) -> RunResult:
    """Nothing that is missing may look like a match, whoever renders this."""
    labels = [key or f"result {number}" for number, (key, _) in enumerate(results, 1)]
    merged = merge_results([result for _, result in results], labels)
    if not problems:
        return merged
    messages = tuple(Message(MessageLevel.ERROR, problem) for problem in problems)
    return replace(merged, verdict=Verdict.NOT_COMPARABLE, messages=(*messages, *merged.messages))


def _key_of(folder: Path) -> str:
    try:
        return read_meta(folder).platform_key
    except CiwrapError:
        return ""


def _worst(statuses: Sequence[str]) -> str:
    return max(statuses, key=STATUSES.index, default=NOT_COMPARABLE)


MARK = "<!-- ciwrap -->"
# GitHub refuses more than 65536 characters.
_COMMENT_BYTES = 60_000
_SHA = re.compile(r"[0-9a-f]{40}")


def comment_on_run(inputs: Inputs, runner: Runner, api: Api) -> str:
    """Makes, changes or leaves the comment; returns the status of the results."""
    run = runner.event.get("workflow_run")
    if not isinstance(run, dict):
        raise UsageError("mode comment needs the event workflow_run")
    if run.get("event") != "pull_request":
        say(f"the run was started by {run.get('event')!r}, not by a pull request: no comment")
        return ""
    number = find_pull_request(run, runner.repository, api)
    if number is None:
        say("no open pull request has this run's commit at its head: no comment")
        return ""
    with tempfile.TemporaryDirectory() as name:
        folders = fetch(api, runner.repository, int(run["id"]), Path(name))
        outcome = held_against(run, merge_folders(folders, inputs))
        # Of several artifacts, what they say alike is told once.
        of_checks = [one for one in folders if (one / META).is_file()]
        changes = changes_told(of_checks)
        can_accept = any((one / PENDING).is_dir() for one in folders)
    body = comment_body(
        summary(outcome, inputs, [changes]), run, runner, inputs, can_accept=can_accept
    )
    is_quiet = outcome.status in GOOD and not changes.changes
    put_comment(body, number, runner.repository, api, only_if_there=is_quiet)
    return outcome.status


def comment_on_this(inputs: Inputs, runner: Runner, api: Api) -> None:
    """The comment by the workflow that has compared, on a pull request of the repository itself;
    elsewhere the token may not write, which fails nothing.
    """
    event, environment = runner.event.get("pull_request"), runner.environment
    if environment.get("GITHUB_EVENT_NAME") != "pull_request" or not isinstance(event, dict):
        say("this is no pull request: no comment")
        return
    home = (event.get("head") or {}).get("repo") or {}
    if home.get("full_name") != runner.repository:
        say("the pull request is of a fork, whose jobs may not comment: use comment.yml, too")
        return
    stage = Path(environment.get("CIWRAP_SUMMARY_PATH", "")).parent
    text = (stage / SUMMARY).read_text(encoding="utf-8")
    run = {
        "head_sha": head_sha(runner),
        "id": environment.get("GITHUB_RUN_ID", "0"),
        "head_repository": home,
    }
    can_accept = (stage / PENDING).is_dir()
    body = comment_body(text, run, runner, inputs, can_accept=can_accept)
    changes = read_changes(stage / CHANGES)
    may_be_less = environment.get("CIWRAP_WIDER", "") not in ("", "0")
    is_other = bool(changes.changes or changes.problem or may_be_less)
    is_quiet = environment.get("CIWRAP_STATUS") in GOOD and not is_other
    try:
        put_comment(body, int(event["number"]), runner.repository, api, only_if_there=is_quiet)
    except RemoteError as error:
        text = f"no comment: {error}; the job needs `permissions: pull-requests: write`"
        print(workflow_command("warning", one_line(text), title="ciwrap"))


def held_against(run: dict[str, Any], outcome: StepOutcome) -> StepOutcome:
    """The outcome of the artifacts, which cannot be good where the run itself was not.

    A job that left no artifact, or whose artifact was lost, says so by the run's conclusion alone.
    """
    conclusion = str(run.get("conclusion") or "")
    if outcome.status not in GOOD or conclusion in ("", "success"):
        return outcome
    problem = (
        f"the results that were uploaded match, but the workflow run ended with {conclusion!r}:"
        " something in it failed that left no result"
    )
    # Without the results: a headline that says "match" would contradict the run.
    return StepOutcome.failed(problem)


def find_pull_request(run: dict[str, Any], repository: str, api: Api) -> int | None:
    """The open pull request whose head the run tested.

    `workflow_run.pull_requests` is empty for forks, so the head is looked up.
    """
    sha, branch = str(run.get("head_sha", "")), str(run.get("head_branch", ""))
    home = run.get("head_repository")
    home_name = str(home.get("full_name", "")) if isinstance(home, dict) else ""
    owner = home_name.partition("/")[0]
    if not _SHA.fullmatch(sha) or not branch or not owner:
        return None
    for found in api.pages(f"/repos/{repository}/pulls", state="open", head=f"{owner}:{branch}"):
        head = found.get("head", {})
        if head.get("sha") == sha and (head.get("repo") or {}).get("full_name") == home_name:
            return int(found["number"])
    return None


def comment_body(
    text: str,
    run: dict[str, Any],
    runner: Runner,
    inputs: Inputs,
    *,
    can_accept: bool,
) -> str:
    """The summary, the commit it is about, and how its goldens can be accepted."""
    sha = str(run["head_sha"])
    server = runner.environment.get("GITHUB_SERVER_URL", "https://github.com")
    link = f"{server}/{runner.repository}/actions/runs/{int(run['id'])}"
    foot = f"\nOf commit {sha}; [report and data]({link}).\n"
    same_repository = (run.get("head_repository") or {}).get("full_name") == runner.repository
    if can_accept and inputs.workflow and same_repository:
        foot += (
            "\nWith accept.yml set up, a maintainer accepts these numbers by the comment\n"
            f"\n```text\n/ciwrap accept {sha} -- WHY\n```\n"
        )
    return f"{MARK}\n" + cut_markdown(text, _COMMENT_BYTES - len(foot)) + foot


def put_comment(
    body: str, number: int, repository: str, api: Api, *, only_if_there: bool = False
) -> None:
    """Changes our comment if there is one and it says something else, or makes one."""
    for found in api.pages(f"/repos/{repository}/issues/{number}/comments"):
        # Anybody can write the mark; only a program's comment is ours to change.
        if (found.get("user") or {}).get("type") != "Bot":
            continue
        if not str(found.get("body", "")).startswith(MARK):
            continue
        if str(found["body"]).replace("\r\n", "\n").strip() == body.strip():
            say(f"the comment on #{number} says so already")
            return
        path = f"/repos/{repository}/issues/comments/{int(found['id'])}"
        api.send("PATCH", path, {"body": body})
        say(f"changed the comment on #{number}")
        return
    if only_if_there:
        say(f"everything matches, and #{number} has no comment of ours: none is made")
        return
    api.send("POST", f"/repos/{repository}/issues/{number}/comments", {"body": body})
    say(f"commented on #{number}")


def reply(text: str, number: int, repository: str, api: Api) -> None:
    """A comment of its own, for an answer to somebody."""
    path = f"/repos/{repository}/issues/{number}/comments"
    api.send("POST", path, {"body": cut_markdown(text, _COMMENT_BYTES)})


_ORDER = re.compile(r"/ciwrap accept ([0-9a-f]{40})((?: [^\s`]{1,200})*?)(?: -- (\S.{0,499}))?\s*")
_WORDS = " ".join(f"[--{word}]" for word in ALLOWED_WORDS)
_FORM = f"/ciwrap accept SHA [PATTERN] {_WORDS} -- REASON"
_LONGEST_ANSWER = 900
_ASSOCIATIONS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_PERMISSIONS = frozenset({"admin", "maintain", "write"})


class RefusedError(Exception):
    """Why an order is not carried out, for the one who gave it."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a comment asks for, and who asks where.

    allowed: in which ways goldens may check less.
    """

    sha: str
    pattern: str
    allowed: tuple[str, ...]
    reason: str
    login: str
    number: int


def read_order(event: dict[str, Any]) -> Order | None:
    """The order in a new comment on a pull request; None if there is none.

    Raises RefusedError for an order that is malformed or by somebody it does not belong to.
    """
    comment, issue = event.get("comment"), event.get("issue")
    if event.get("action") != "created" or not isinstance(comment, dict):
        return None
    if not isinstance(issue, dict) or not issue.get("pull_request"):
        return None
    body = str(comment.get("body", ""))
    if not body.startswith("/ciwrap"):
        return None
    if comment.get("author_association") not in _ASSOCIATIONS:
        raise RefusedError("only members and collaborators of this repository can accept goldens")
    found = _ORDER.fullmatch(body.splitlines()[0])
    words = [] if found is None else found[2].split()
    allowed = tuple(word[2:] for word in words if word[:2] == "--" and word[2:] in ALLOWED_WORDS)
    patterns = [word for word in words if not word.startswith("--")]
    if found is None or len(patterns) > 1 or len(patterns) + len(allowed) != len(words):
        raise RefusedError(f"write `{_FORM}`, with all 40 digits of the commit you have seen")
    login = str((comment.get("user") or {}).get("login", ""))
    pattern = patterns[0] if patterns else ""
    return Order(found[1], pattern, allowed, found[3] or "", login, int(issue["number"]))


def carry_out(inputs: Inputs, runner: Runner, api: Api) -> bool:
    """Whether goldens were accepted. Answers the comment either way, unless it is not an order."""
    event = runner.event
    if "comment" not in event:
        raise UsageError("mode accept needs the event issue_comment")
    number = int((event.get("issue") or {}).get("number", 0))
    try:
        order = read_order(event)
        if order is None:
            say("the comment is not an order: nothing to do")
            return False
        text = _accept(order, inputs, runner, api)
    except RefusedError as refused:
        # A stranger gets no answer: nobody is to make this repository write comments.
        if (event.get("comment") or {}).get("author_association") in _ASSOCIATIONS:
            reply(f"Nothing was accepted: {refused}.", number, runner.repository, api)
        say(f"refused: {refused}")
        return False
    except (CiwrapError, OSError) as error:
        # Something else than its wording kept the order from being carried out.
        why = escaped(error, _LONGEST_ANSWER)
        reply(f"Nothing was accepted: {why}", number, runner.repository, api)
        raise
    reply(text, number, runner.repository, api)
    return True


def _accept(order: Order, inputs: Inputs, runner: Runner, api: Api) -> str:
    repository = runner.repository
    if not inputs.workflow:
        raise UsageError("mode accept needs the input workflow")
    said = order.reason or inputs.reason
    if not said:
        raise RefusedError(f"an order says why the numbers are right: `{_FORM}`")
    who = api.get(f"/repos/{repository}/collaborators/{quoted(order.login)}/permission")
    if not isinstance(who, dict) or who.get("permission") not in _PERMISSIONS:
        raise RefusedError("accepting needs write access to this repository")
    branch = _branch_of(order, repository, api)
    run_id = _run_of(order, inputs.workflow, repository, branch, api)
    with tempfile.TemporaryDirectory() as name:
        folders = fetch(api, repository, run_id, Path(name, "artifacts"))
        artifacts = [one for one in folders if (one / PENDING).is_dir()]
        if any(read_meta(one).sha != order.sha for one in artifacts):
            raise RefusedError("the pending goldens of the run are of another commit")
        if not artifacts:
            raise RefusedError("the workflow run has uploaded no pending goldens")
        clone = Clone.make(Path(name, "clone"), branch, runner, api.token)
        if clone.head != order.sha:
            raise RefusedError(f"the head of the pull request is `{clone.head}` by now")
        clone.refuse_lfs()
        by = f"Accepted by @{order.login} on #{order.number}"
        reason = f"{said} ({by})"
        root = clone.folder / inputs.working_directory
        taken = take_pending(artifacts, root, inputs, reason, order.pattern, order.allowed)
        message = f"Accept goldens: {taken.title}\n\n{reason}\nPending goldens of run {run_id}.\n"
        if not clone.commit_goldens(taken.golden_dirs, message):
            raise RefusedError("the goldens are the same already")
        clone.push(branch, runner)
        return f"Accepted in {clone.head}.\n\n{taken.markdown}"


def _branch_of(order: Order, repository: str, api: Api) -> str:
    pull = api.get(f"/repos/{repository}/pulls/{order.number}")
    head = pull.get("head", {})
    if pull.get("state") != "open":
        raise RefusedError("the pull request is not open")
    if head.get("sha") != order.sha:
        raise RefusedError(f"the head of the pull request is `{head.get('sha')}` by now")
    if (head.get("repo") or {}).get("full_name") != repository:
        raise RefusedError(
            "the branch is in a fork, which this job cannot push to; download the artifact and run"
            " `ciwrap accept --from ZIP` in a clone"
        )
    return safe_branch(str(head.get("ref", "")))


def _run_of(order: Order, workflow: str, repository: str, branch: str, api: Api) -> int:
    """The newest finished run of the workflow for this commit of this pull request."""
    path = f"/repos/{repository}/actions/workflows/{quoted(workflow)}/runs"
    found = [
        run
        for run in api.pages(path, "workflow_runs", head_sha=order.sha, event="pull_request")
        if run.get("head_sha") == order.sha
        and run.get("event") == "pull_request"
        and run.get("head_branch") == branch
        and (run.get("head_repository") or {}).get("full_name") == repository
    ]
    if not found:
        raise RefusedError(f"there is no run of {workflow} for this commit")
    newest = max(found, key=lambda run: int(run["id"]))
    if newest.get("status") != "completed":
        raise RefusedError("the workflow run has not finished yet")
    return int(newest["id"])


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the command line and what it left: its exit code and its JSON result."""

    exit_code: int
    result_path: Path


def run_check(inputs: Inputs, runner: Runner) -> None:
    """Mode `check`: the program if there is one to run, then the comparison; or two paths."""
    stage = fresh_stage(runner, inputs.artifact_name)
    if inputs.result:
        words = ["compare", inputs.reference, inputs.result, *inputs.bounds]
        call = call_cli([*words, *own_arguments(inputs)], runner, stage / RESULT)
        publish(finished(call), inputs, runner, stage)
        return
    config = job_config(inputs, runner)
    options = project_options(inputs, golden_folder(inputs, runner, config))
    # Before the program runs: afterwards the files may be what it made of them.
    changes = find_changes(
        runner,
        # Goldens of a platform lay where the configuration of the base says, and below that folder
        # all of them are looked at.
        project_options(inputs, inputs.golden_dir),
        lambda words, path: call_cli(words, runner, path).exit_code,
    )
    if inputs.base:
        # Without goldens: none is compared with, and none waits.
        options = project_options(inputs, None)
        words = [*verb(inputs, config, "run"), "--base", revision_of(inputs.base, runner)]
    else:
        words = [*verb(inputs, config), "--pending", str(stage / PENDING)]
    call = call_cli([*words, *options, *inputs.checks], runner, stage / RESULT)
    # From memory: the program could have changed a file.
    (stage / CHANGES).unlink(missing_ok=True)
    if changes.document:
        (stage / CHANGES).write_bytes(changes.document)
    write_meta(inputs, runner, stage)
    place = place_of(config, runner.checkout)
    publish(finished(call), inputs, runner, stage, place, changes)


def fresh_stage(runner: Runner, name: str) -> Path:
    """The folder of this call's results, empty. That of an earlier step of the job, whose outputs
    name it, stays.
    """
    count = itertools.count(2)
    stage = runner.stage / name
    while stage.exists():
        stage = runner.stage / f"{name}~{next(count)}"
    stage.mkdir(parents=True)
    return stage


def job_config(inputs: Inputs, runner: Runner) -> Config | None:
    """The configuration; None if it cannot be used, which the command line tells better."""
    try:
        here = runner.workspace
        return load_config(here / inputs.config if inputs.config else find_config(here))
    except CiwrapError:
        return None


def own_arguments(inputs: Inputs) -> list[str]:
    """The input `arguments`, word by word. Raises UsageError."""
    try:
        return shlex.split(inputs.arguments)
    except ValueError as error:
        raise UsageError(f"the input arguments cannot be read: {error}") from None


def verb(inputs: Inputs, config: Config | None, default: str = "check") -> list[str]:
    """`check`, or `run` where there is a command: the input's, else the configuration's. default:
    where there is none.
    """
    if inputs.run == NO_COMMAND:
        return ["check"]
    if inputs.run:
        # As a step's own script: its first failing line ends it.
        several = "set -e\n" if "\n" in inputs.run else ""
        return ["run", "--command", several + inputs.run]
    if config is None:
        return [default]
    wanted = inputs.checks or [check.name for check in config.checks]
    own = any(check.command for check in config.checks if check.name in wanted)
    return ["run"] if config.command is not None or own else [default]


def project_options(inputs: Inputs, golden_dir: Path | str | None) -> list[str]:
    """Which configuration and which folder of goldens; none for those that are found anyway."""
    options = ["--config", inputs.config] if inputs.config else []
    return [*options, "--golden-dir", str(golden_dir)] if golden_dir else options


def golden_folder(inputs: Inputs, runner: Runner, config: Config | None) -> Path | None:
    """The folder of the goldens where it is not the configuration's own: one below it for each
    platform key."""
    base = Path(inputs.golden_dir) if inputs.golden_dir else None
    if not inputs.platform_key:
        return base
    if base is None:
        if config is None:
            return None
        base = config.golden_dir
        if base.is_relative_to(runner.workspace):
            base = base.relative_to(runner.workspace)
    return base / inputs.platform_key


def call_cli(arguments: list[str], runner: Runner, result_path: Path) -> Call:
    """Runs ciwrap as a child: if it crashes, there still is somebody to say so."""
    command = [sys.executable, "-I", "-m", "ciwrap", *arguments, "--json", str(result_path)]
    with plain_log(f"ciwrap {arguments[0]}"):
        done = run_to_the_end(command, cwd=runner.workspace, env=runner.program_environment)
    return Call(done, result_path)


def finished(call: Call) -> StepOutcome:
    """What came of a call; a result that is at odds with the exit code is an error."""
    if not call.result_path.is_file():
        how = f"signal {-call.exit_code}" if call.exit_code < 0 else f"exit code {call.exit_code}"
        return StepOutcome.failed(f"ciwrap ended with {how} and left no result: see the log")
    return read_result(call.result_path, exit_code=call.exit_code)


def write_meta(inputs: Inputs, runner: Runner, stage: Path) -> None:
    """What whoever takes up the artifact later has to know: where its goldens belong."""
    meta = Meta(
        platform_key=inputs.platform_key,
        config=inputs.config,
        golden_dir=inputs.golden_dir,
        artifact_name=inputs.artifact_name,
        repository=runner.repository,
        sha=head_sha(runner),
        commit=runner.sha,
    )
    text = json.dumps(msgspec.to_builtins(meta), indent=1)
    (stage / META).write_text(text + "\n", encoding="utf-8")


def head_sha(runner: Runner) -> str:
    """The commit that was pushed; of a pull request its head, not the merge that is tested."""
    head = runner.event.get("pull_request")
    if isinstance(head, dict) and isinstance(head.get("head"), dict):
        return str(head["head"].get("sha", ""))
    return runner.sha
