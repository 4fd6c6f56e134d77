"""`ciwrap selftest`: would this configuration catch it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import check_option, config_options, json_option, resource_options
from ciwrap.errors import ExitCode

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.selftest.document import Planted, SelftestCheck

_MOST_LINES = 12


@click.command(name="selftest", short_help="Plant damage, and see that it is caught.")
@check_option
@config_options
@json_option
@resource_options
@click.pass_obj
def command(
    session: Session,
    check_names: tuple[str, ...],
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Plant differences in copies of the outputs that are there, and see whether the configuration
    catches each: the nearest value beyond the bound, a NaN, a flipped sign, a lost variable,
    another unit, a truncated file.

    The outputs are only read, and so are the goldens: copies are compared with a golden of the
    outputs as they are, made for this in a temporary folder.

    Exit codes: 0 all caught, 1 some not caught, 2 usage or configuration, 3 could not try.
    """
    from ciwrap.cli.load_project import load_project
    from ciwrap.interrupts import ends_are_interrupts
    from ciwrap.selftest.document import SelftestDocument
    from ciwrap.selftest.folder import temporary_folder
    from ciwrap.selftest.run import try_check

    project = load_project(config_path, golden_dir, check_names)
    tried = []
    with ends_are_interrupts():
        for check in project.checks:
            with temporary_folder() as folder:
                tried.append(try_check(check, folder, resources=session.resources))
    if any(one.problem is not None or not one.planted for one in tried):
        code = ExitCode.NOT_COMPARABLE
    else:
        code = ExitCode.DIFFER if any(one.missed for one in tried) else ExitCode.MATCH
    session.emit_record(SelftestDocument(1, "selftest", tuple(tried), int(code)))  # type: ignore[arg-type]
    for one in tried:
        _tell(session, one)
    return int(code)


def _tell(session: Session, tried: SelftestCheck) -> None:
    from ciwrap.report.text import plural, safe_name, safe_text
    from ciwrap.selftest.document import Damage

    console = session.console
    name = safe_name(tried.name, 60)
    if tried.problem is not None:
        console.print(f"{name}: could not be tried: {safe_text(tried.problem)}")
        return
    caught = sum(one.caught for one in tried.planted)
    console.print(f"{name}: {caught} of {plural(len(tried.planted), 'planted difference')} caught")
    for damage in Damage:
        some = [one.caught for one in tried.planted if one.damage is damage]
        if some:
            console.print(f"  {damage.value:15} {sum(some)} of {len(some)}")
    for lines, title in (
        (_missed(tried.missed), "not caught:"),
        ([safe_text(text) for text in tried.not_tried], "not tried:"),
    ):
        if lines:
            console.print(f"  {title}")
        for line in lines[:_MOST_LINES]:
            console.print(f"    {line}")
        if len(lines) > _MOST_LINES:
            console.print(f"    ... and {len(lines) - _MOST_LINES} more (--json)")


def _missed(planted: list[Planted]) -> list[str]:
    """A line for each variable, damage and reason, whatever the checkpoint."""
    from ciwrap.report.text import plural, safe_text

    counts: dict[tuple[str, str, str], int] = {}
    for one in planted:
        key = (one.name, one.damage.value, one.reason or "")
        counts[key] = counts.get(key, 0) + 1
    return [
        safe_text(f"{name}: {damage} ({plural(count, 'time')}): {reason}")
        for (name, damage, reason), count in counts.items()
    ]
