"""Secrets are hidden wherever they stand, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciwrap.base.secrets import hide_secrets, secrets_of
from ciwrap.project.settings import CommandSettings


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("GITHUB_TOKEN", "planted-1", {"planted-1"}),
        ("AWS_SECRET_ACCESS_KEY", "planted-1", {"planted-1"}),
        ("DEPLOY_KEY", "planted-1", {"planted-1"}),
        ("MYPW", "planted-1", {"planted-1"}),
        ("GH_PAT", "planted-1", {"planted-1"}),
        ("https_proxy", "http://ada:planted-1@proxy:3128", {"planted-1"}),
        ("PIP_INDEX_URL", "https://ada:pl%40nted@pypi/simple", {"pl%40nted", "pl@nted"}),
        ("REMOTES", "a=https://x:planted-1@h b=https://y:planted-2@h", {"planted-1", "planted-2"}),
        ("DSN", "host=h;password=planted-1;port=1", {"planted-1"}),
        ("PWD", "/srv/simulation", set()),
        ("SSH_TOKEN", "short", set()),
        ("PATH", "/usr/bin:/usr/local/bin", set()),
        ("KEYBOARD", "qwertz-layout", set()),
        ("REMOTE", "ssh://git@example.org/x", set()),
    ],
)
def test_secrets_of_a_variable(name: str, value: str, secrets: set[str]) -> None:
    assert secrets_of({name: value}) == secrets


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("sim --token=abc", "sim --token=(hidden)"),
        ("sim --api-key abc -v", "sim --api-key (hidden) -v"),
        ("sim --password 'a b' x", "sim --password (hidden) x"),
        ('sim --db-password="a b" x', "sim --db-password=(hidden) x"),
        ("API_TOKEN=abc sim", "API_TOKEN=(hidden) sim"),
        ("curl https://ada:abc@host/x", "curl https://(hidden)@host/x"),
        ("git clone https://abc@host/x", "git clone https://(hidden)@host/x"),
        ("curl -H 'Authorization: Bearer abc' u", "curl -H 'Authorization: Bearer (hidden)' u"),
        ('curl -H "authorization: Basic abc=" u', 'curl -H "authorization: Basic (hidden)" u'),
        ("curl -H PRIVATE-TOKEN:abc u", "curl -H PRIVATE-TOKEN:(hidden) u"),
        ("curl -H 'X-Api-Key: abc' u", "curl -H 'X-Api-Key: (hidden)' u"),
        # Nothing is lost of what is no secret.
        ("curl -H 'Authorization: Bearer $TOKEN'", "curl -H 'Authorization: Bearer $TOKEN'"),
        ("sim --note 'token: kept'", "sim --note 'token: kept'"),
        ("sim --max-tokens 512 --tokens=3", "sim --max-tokens 512 --tokens=3"),
        ("sim --token $TOKEN --secret=${X}", "sim --token $TOKEN --secret=${X}"),
        ("sim --no-auth --size 4", "sim --no-auth --size 4"),
        ("the password is not asked for", "the password is not asked for"),
        ("sim --bypass=1 --pw 4 --key 5", "sim --bypass=1 --pw 4 --key 5"),
        ("docker://image@sha256:0123", "docker://image@sha256:0123"),
    ],
)
def test_secrets_of_a_text(text: str, hidden: str) -> None:
    assert hide_secrets(text) == hidden


def test_the_longest_secret_goes_first() -> None:
    assert hide_secrets("x-planted-secret-y", {"planted", "planted-secret"}) == "x-(hidden)-y"


def test_a_command_is_shown_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_JOB_TOKEN", "planted-1")
    command = CommandSettings(
        ("sim", "planted-1", "planted-2", "--token=x"), Path(), env={"MY_SECRET": "planted-2"}
    )
    assert command.text == "sim (hidden) (hidden) --token=(hidden)"
    assert command.words[1] == "planted-1"
