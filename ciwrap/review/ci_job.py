"""Which CI job this process runs in, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class CiJob(Struct, frozen=True):
    """actor: the account that started the job. run: the job's address. None where nobody says."""

    actor: str | None = None
    run: str | None = None


def ci_job(environment: Mapping[str, str]) -> CiJob:
    """The job as GitHub Actions, GitLab CI or Jenkins describe it to the programs they run."""
    if environment.get("GITHUB_ACTIONS") == "true":
        parts = [environment.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY")]
        number = environment.get("GITHUB_RUN_ID")
        run = "/".join([*map(str, parts), "actions/runs", str(number)])
        is_known = all(parts) and bool(number)
        return CiJob(environment.get("GITHUB_ACTOR") or None, run if is_known else None)
    if environment.get("GITLAB_CI") == "true":
        return CiJob(
            environment.get("GITLAB_USER_LOGIN") or None, environment.get("CI_JOB_URL") or None
        )
    return CiJob(environment.get("BUILD_USER_ID") or None, environment.get("BUILD_URL") or None)
