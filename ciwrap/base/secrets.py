"""Hides secrets in texts that are shown or kept: commands, values of variables, messages.

Nobody can recognize all secrets in a text. Hidden are values of variables whose names sound like a
secret, passwords in URLs, and what follows an option or a header of HTTP that is named like one
(`--token abc`, `Authorization: Bearer abc`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

# The expressions are compiled when they are first used: few commands hide anything.
HIDDEN = "(hidden)"
_LEAST = 6
_SECRET_NAME = (
    r"(?i)token|secret|passw|passphrase|credential|api_?key|private|auth|cookie|session"
    r"|(?:^|_)(?:key|pat|sas)(?:$|_)|pwd?$"
)
# They end like a password, and hold a folder.
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})
# Not the name in `docker://image@sha256:...`.
_IN_URL = r"(?<=://)[^\s/@]+(?=@(?!sha\d+:))"
_PASSWORD = r"(?i)(?:^|[\s;&?])(?:password|pwd|token)=([^\s;&]+)"
_OPTION = (
    r"(?i)(?<![\w.-])(?P<name>-{0,2}[\w.-]*?"
    r"(?:token|secret|password|passwd|pwd|passphrase|credentials?|apikey|auth"
    r"|(?:api|access|private|secret)[-_]?key))"
    r"(?P<between>=|\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"']+)"
)


_HEADER = (
    r"(?i)(?P<name>(?<![\w-])"
    r"(?:(?:\w+-)?authorization|cookie|[\w-]+-(?:token|secret|key)):[ \t]*)"
    r"(?P<scheme>(?:bearer|basic|digest|token|negotiate)[ \t]+)?(?P<value>[^\s\"']+)"
)


def secrets_of(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of variables that are secret by their name, and passwords within other values."""
    return frozenset(
        one
        for name, value in environment.items()
        for one in _secrets_in(name, value)
        if len(one) >= _LEAST
    )


def hide_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with `(hidden)` in the place of each secret. secrets: those that are known."""
    # The longest first: one may hold another.
    for secret in sorted(secrets, key=lambda one: (-len(one), one)):
        text = text.replace(secret, HIDDEN)
    text = re.sub(_HEADER, _without_header, re.sub(_IN_URL, HIDDEN, text))
    return re.sub(_OPTION, _without_value, text)


def _secrets_in(name: str, value: str) -> Iterator[str]:
    if name not in _NO_SECRETS and re.search(_SECRET_NAME, name):
        yield value
    for user in re.findall(_IN_URL, value):
        # `https://TOKEN@host` has no colon; `ssh://git@host` has no secret.
        password = user.partition(":")[2]
        yield from (password, unquote(password))
    yield from re.findall(_PASSWORD, value)


def _without_header(found: re.Match[str]) -> str:
    value = found["value"]
    if value.startswith("$"):
        return found[0]  # the shell puts it in
    return f"{found['name']}{found['scheme'] or ''}{HIDDEN}"


def _without_value(found: re.Match[str]) -> str:
    value, is_option = found["value"], found["name"].startswith("-")
    if found["between"] != "=" and (not is_option or value.startswith("-")):
        return found[0]  # two words of a text, or two options
    if value.startswith("$"):
        return found[0]  # the shell puts it in
    return f"{found['name']}{found['between']}{HIDDEN}"
