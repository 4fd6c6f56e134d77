"""The files that have CI call ciwrap, as `ciwrap init --ci` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.base.errors import UsageError
from ciwrap.base.files import writing
from ciwrap.base.repository import Repository, place_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.cli.main import Session

_TEMPLATES = Path(__file__).parent / "templates"
_INCLUDE = "include:\n  - local: .gitlab/ciwrap.yml\n"
_NEXT = {
    "github": "write the account that holds your copy of ciwrap in place of YOUR_ORGANISATION",
    "gitlab": "set the variable CIWRAP to what pip is to install, such as your copy of ciwrap",
}


def ci_files(service: str) -> dict[str, str]:
    """The texts of the files to write, by their paths from the top of the repository. service:
    "github" or "gitlab". Raises UsageError outside of a repository.
    """
    place = _place()
    text = (_TEMPLATES / f"{service}.yml").read_text(encoding="utf-8")
    if service == "github":
        if place != ".":
            text += f"        with:\n          working-directory: {place}\n"
        return {".github/workflows/ciwrap.yml": text}
    more = "" if place == "." else f"    inputs: {{folder: {place}}}\n"
    return {".gitlab/ciwrap.yml": text, ".gitlab-ci.yml": _INCLUDE + more}


def refuse_ci_files(service: str) -> None:
    """Raises UsageError for a file of ours that exists, before anything is written."""
    own = Repository.around(Path.cwd()).top / next(iter(ci_files(service)))
    if own.exists():
        raise UsageError("already exists", file=own, remedy="edit it, or remove it first")


def write_ci_files(session: Session, service: str) -> None:
    """Writes them; of a .gitlab-ci.yml that is there already, says what to add."""
    top = Repository.around(Path.cwd()).top
    for name, text in ci_files(service).items():
        path = top / name
        if path.exists():
            session.console.print(f"{name} is there already; add to it:")
            session.console.print(text.rstrip("\n"))
            continue
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
        session.console.print(f"wrote {name}")
    session.console.print(f"Next: {_NEXT[service]}.")


def ci_texts(service: str) -> Iterator[str]:
    """What would be written, each file below its name."""
    for name, text in ci_files(service).items():
        yield f"\n# --- {name}\n{text}"


def _place() -> str:
    """This folder, from the top of the repository."""
    place = place_below(Path.cwd(), Repository.around(Path.cwd()).top)
    assert place is not None
    return place
