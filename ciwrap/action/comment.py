"""Mode `comment`: one comment on a pull request that says what a workflow run found.

Runs on `workflow_run`, with the repository's own rights, after a run that may have been a
stranger's. Which pull request is commented on follows from the event and the API alone; the
artifacts give nothing but results, which are parsed strictly and escaped.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.action.artifact import fetch
from ciwrap.action.changes import CHANGES, Found, read_changes
from ciwrap.action.merge import merge_folders
from ciwrap.action.outcome import Outcome, summary
from ciwrap.action.runner import cut_markdown, say
from ciwrap.action.status import GOOD
from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.action.api import Api
    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner

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
        changes = changes_of(folders)
        can_accept = any((one / "pending").is_dir() for one in folders)
    body = comment_body(
        summary(outcome, inputs, changes), run, runner, inputs, can_accept=can_accept
    )
    is_quiet = outcome.status in GOOD and not any(one.markdown for one in changes)
    put_comment(body, number, runner.repository, api, only_if_there=is_quiet)
    return outcome.status


def held_against(run: dict[str, Any], outcome: Outcome) -> Outcome:
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
    return Outcome.failed(problem)


def changes_of(folders: Sequence[Path]) -> list[Found]:
    """What is checked otherwise, as the artifacts say; what several of them say alike is told
    once."""
    found = [read_changes(folder / CHANGES) for folder in folders]
    return list({one.markdown: one for one in found if one.markdown}.values())


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
