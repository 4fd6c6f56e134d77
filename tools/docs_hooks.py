"""What MkDocs does not do by itself: links from pages to files of the repository beside them."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\[([^]]*)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links that leave docs/ into links below CIWRAP_SOURCE_URL, or, without one, into the
    paths of the files; one that leads nowhere fails.
    """
    folder = PurePosixPath("docs", page.file.src_uri).parent
    source = os.environ.get("CIWRAP_SOURCE_URL")

    def replaced(match: re.Match[str]) -> str:
        words, link, anchor = match.groups()
        target = os.path.normpath(folder / link)
        if target.startswith("docs/"):
            return match[0]
        if not (_ROOT / target).exists():
            raise ValueError(f"{page.file.src_uri}: {link} is not in the repository")
        if source:
            return f"[{words}]({source}/{target}{anchor or ''})"
        return words if words == f"`{target}`" else f"{words} (`{target}`)"

    return _LINK.sub(replaced, markdown)
