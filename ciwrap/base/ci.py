"""Whether this runs in continuous integration, where nobody would see which files are written."""

from __future__ import annotations

import os
from collections.abc import Mapping

# Set by the services themselves; CI=false is what people write to say that this is none.
CI_VARIABLES = (
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "TF_BUILD",
)
_NO_WORDS = frozenset({"", "0", "false", "no", "off"})


def is_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this runs in continuous integration."""
    return any(environ.get(name, "").lower() not in _NO_WORDS for name in CI_VARIABLES)
