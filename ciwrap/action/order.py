"""Mode `accept`: a maintainer's comment `/ciwrap accept SHA [PATTERN] [-- REASON]` is carried out.

What is accepted are the pending goldens that the pull request's own workflow run has uploaded, for
exactly the commit that the comment names. None of its code is run here.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.action.api import quoted
from ciwrap.action.artifact import fetch, read_meta
from ciwrap.action.comment import reply
from ciwrap.action.repository import Clone, safe_branch
from ciwrap.action.runner import say
from ciwrap.action.take import take_pending
from ciwrap.errors import CiwrapError, UsageError
from ciwrap.report.markdown import escaped
from ciwrap.review.pending_artifact import ALLOWED_WORDS

if TYPE_CHECKING:
    from ciwrap.action.api import Api
    from ciwrap.action.inputs import Inputs
    from ciwrap.action.runner import Runner

_ORDER = re.compile(r"/ciwrap accept ([0-9a-f]{40})((?: [^\s`]{1,200})*?)(?: -- (\S.{0,499}))?\s*")
_WORDS = " ".join(f"[--{word}]" for word in ALLOWED_WORDS)
_FORM = f"/ciwrap accept SHA [PATTERN] {_WORDS} [-- REASON]"
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
    who = api.get(f"/repos/{repository}/collaborators/{quoted(order.login)}/permission")
    if not isinstance(who, dict) or who.get("permission") not in _PERMISSIONS:
        raise RefusedError("accepting needs write access to this repository")
    branch = _branch_of(order, repository, api)
    run_id = _run_of(order, inputs.workflow, repository, branch, api)
    with tempfile.TemporaryDirectory() as name:
        folders = fetch(api, repository, run_id, Path(name, "artifacts"))
        artifacts = [one for one in folders if (one / "pending").is_dir()]
        if any(read_meta(one).sha != order.sha for one in artifacts):
            raise RefusedError("the pending goldens of the run are of another commit")
        if not artifacts:
            raise RefusedError("the workflow run has uploaded no pending goldens")
        clone = Clone.make(Path(name, "clone"), branch, runner, api.token)
        if clone.head != order.sha:
            raise RefusedError(f"the head of the pull request is `{clone.head}` by now")
        clone.refuse_lfs()
        by = f"Accepted by @{order.login} on #{order.number}"
        said = order.reason or inputs.reason
        reason = f"{said} ({by})" if said else by
        taken = take_pending(artifacts, clone.folder, inputs, reason, order.pattern, order.allowed)
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
