"""Many errors as few messages: those that say the same are one, with the count and some names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.compare.law import message_of
from ciwrap.errors import UnreadFileError, escape, one_line
from ciwrap.model import Message, MessageLevel
from ciwrap.model.coverage import grouped_plural
from ciwrap.readers.output_file import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap.errors import CiwrapError

_MOST_NAMES = 3
_MOST_KINDS = 8
_MOST_MESSAGES = 50


def grouped_messages(errors: Iterable[CiwrapError]) -> list[Message]:
    """The errors as messages, in the order in which they first came.

    Errors of one kind that say the same of several files, or of several variables, are one message.
    """
    groups: dict[object, list[CiwrapError]] = {}
    for error in errors:
        is_of_file = error.file is not None
        key = (type(error), error.message, error.remedy, is_of_file, error.variable is not None)
        groups.setdefault(key, []).append(error)
    shown = list(groups.values())[:_MOST_MESSAGES]
    messages = [_message(group) for group in shown]
    rest = sum(len(group) for group in groups.values()) - sum(len(group) for group in shown)
    if rest:
        text = f"... and {grouped_plural(rest, 'more error')}, each of another kind or place"
        messages.append(Message(MessageLevel.ERROR, text))
    return messages


def _message(group: Sequence[CiwrapError]) -> Message:
    first = group[0]
    if len(group) == 1:
        return message_of(first)
    if isinstance(first, UnreadFileError):
        text = _kinds_text(group)
    else:
        text = f"{_count_text(group)}: {first.message} ({_names_text(group)})"
    text = one_line(f"{text}; {first.remedy}" if first.remedy else text)
    return Message(MessageLevel.ERROR, text, slug=first.slug)


def _kinds_text(group: Sequence[CiwrapError]) -> str:
    """`47 files of 6 kinds were not compared: .log (3), ...; no reader knows ...`."""
    kinds = Counter(kind_of(Path(error.file or "")) for error in group)
    shown = kinds.most_common(_MOST_KINDS)
    said = ", ".join(f"{escape(kind)} ({count:,})" for kind, count in shown)
    if len(kinds) > len(shown):
        said += f" and {grouped_plural(len(kinds) - len(shown), 'more kind')}"
    return (
        f"{grouped_plural(len(group), 'file')} of {grouped_plural(len(kinds), 'kind')} were not"
        f" compared: {said}, such as {escape(group[0].file or '')}: {group[0].message}"
    )


def _count_text(group: Sequence[CiwrapError]) -> str:
    if group[0].file is not None:
        return grouped_plural(len({error.file for error in group}), "file")
    if group[0].variable is not None:
        return grouped_plural(len({error.variable for error in group}), "variable")
    return grouped_plural(len(group), "time")


def _names_text(group: Sequence[CiwrapError]) -> str:
    names = list(dict.fromkeys(error.where for error in group if error.where))
    said = ", ".join(names[:_MOST_NAMES])
    return f"{said} and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else said
