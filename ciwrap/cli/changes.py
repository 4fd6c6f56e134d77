"""`ciwrap changes`: what differs in what is checked since a commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option, markdown_option

if TYPE_CHECKING:
    from ciwrap.changes.document import ChangesDocument
    from ciwrap.changes.state import Where
    from ciwrap.cli.session import Session
    from ciwrap.repository import Repository


@click.command(name="changes", short_help="Say what is checked differently since a commit.")
@click.option("--base", required=True, metavar="REF", help="The commit, branch or tag to look at.")
@markdown_option
@config_options
@json_option
@click.pass_obj
def command(session: Session, base: str, config_path: str | None, golden_dir: str | None) -> int:
    """Compare what is checked here with what was checked at REF: bounds, ignored variables, masks,
    strictness, evidence, checks, variables, and goldens that were replaced.

    Configuration and manifests of REF are read through git; the working tree stays as it is.
    WIDER is said wherever less is checked than at REF, and ? where nothing tells whether it is.

    Exit codes: 0 done, whatever was found; 2 usage or configuration; 3 git failed.
    """
    from ciwrap.changes.commit_tree import CommitTree
    from ciwrap.changes.document import ChangesDocument
    from ciwrap.changes.file_trees import WorkingTree
    from ciwrap.changes.find_changes import find_changes
    from ciwrap.changes.state import state_of
    from ciwrap.changes.wording import markdown_table
    from ciwrap.repository import Repository

    start = Path.cwd() if config_path is None else Path(config_path).absolute().parent
    repository = Repository.around(start)
    commit = repository.commit(base)
    where = _where(repository, config_path, golden_dir)
    new = state_of(WorkingTree(repository.top), where)
    _refuse_unreadable(new.problem, where, new.config_name)
    tree = CommitTree(repository, commit)
    old = state_of(tree, where)
    if old.problem is not None:  # where it had its goldens cannot be read either
        old = state_of(tree, where, new.golden_dir)
    document = ChangesDocument(
        schema_version=1, kind="changes", base=commit, changes=find_changes(old, new)
    )
    session.emit_record(document)
    session.emit_summary(markdown_table(document.changes))
    _tell(session, document)
    return 0


def _where(repository: Repository, config_path: str | None, golden_dir: str | None) -> Where:
    from ciwrap.changes.state import Where, below

    top = repository.top
    return Where(
        top=top,
        start=below(Path.cwd(), top) if config_path is None else "",
        config_name=None if config_path is None else below(Path(config_path).absolute(), top),
        golden_dir=None if golden_dir is None else below(Path(golden_dir).absolute(), top),
    )


def _refuse_unreadable(problem: str | None, where: Where, name: str | None) -> None:
    """Raises ConfigError for a configuration of today that cannot be read, with its line."""
    from ciwrap.config.loading import load_config

    if problem is not None and name is not None:
        load_config(where.top / name)


def _tell(session: Session, document: ChangesDocument) -> None:
    from ciwrap.changes.wording import WIDER, line_of, mark_of, title
    from ciwrap.report.console import Text

    console = session.console
    console.print(Text(f"{title(document.changes)} (since {document.base[:12]})"))
    for change in document.changes:
        console.print(Text(f"  {mark_of(change):<{len(WIDER)}}  {line_of(change)}"))
