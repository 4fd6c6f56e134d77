"""What MkDocs does not do by itself: links from pages to files of the repository beside them."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Turns links that leave docs/ into links to the repository; one that leads nowhere fails."""
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replaced(match: re.Match[str]) -> str:
        target = os.path.normpath(folder / match[1])
        if target.startswith("docs/"):
            return match[0]
        if not (_ROOT / target).exists():
            raise ValueError(f"{page.file.src_uri}: {match[1]} is not in the repository")
        return f"]({config['extra']['source_url']}/{target}{match[2] or ''})"

    return _LINK.sub(replaced, markdown)
