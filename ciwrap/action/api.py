"""The few calls of GitHub's REST API that the action makes."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ciwrap.errors import RemoteError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TIMEOUT_SECONDS = 60
_ATTEMPTS = 3
_PAGE = 100
_MOST_PAGES = 30
_MOST_JSON_BYTES = 32 << 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Api:
    """url: without a slash at its end. The token goes to that host alone, never along redirects."""

    url: str
    token: str

    @staticmethod
    def of(environment: Mapping[str, str]) -> Api:
        """Raises UsageError where there is no token, or the address is not safe to send one to."""
        token = environment.get("CIWRAP_TOKEN", "")
        url = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise UsageError(f"GITHUB_API_URL must be https, not {url!r}")
        if not token:
            raise UsageError("this mode needs the input token")
        return Api(url, token)

    def get(self, path: str, **query: object) -> Any:
        return self._json("GET", path, query=query)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        return self._json(method, path, body=body)

    def pages(self, path: str, key: str | None = None, **query: object) -> Iterator[Any]:
        """All items of a list, or of the list under `key` of each page."""
        for page in range(1, _MOST_PAGES + 1):
            found = self.get(path, **{**query, "per_page": _PAGE, "page": page})
            items = found.get(key, []) if key is not None and isinstance(found, dict) else found
            if not isinstance(items, list):
                raise RemoteError(f"{path}: the answer is not a list")
            yield from items
            if len(items) < _PAGE:
                return

    def download(self, path: str, most_bytes: int) -> bytes:
        """The bytes behind a path. Raises RemoteError for more than `most_bytes`."""
        return self._request(
            "GET", self.url + path, None, most_bytes, "application/vnd.github+json"
        )

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        url = self.url + path
        if query:
            url += "?" + urllib.parse.urlencode({name: str(v) for name, v in query.items()})
        data = None if body is None else json.dumps(body).encode()
        text = self._request(method, url, data, _MOST_JSON_BYTES, "application/vnd.github+json")
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise RemoteError(f"{method} {path}: the answer is not JSON") from None

    def _request(
        self, method: str, url: str, data: bytes | None, most_bytes: int, accept: str
    ) -> bytes:
        request = urllib.request.Request(url, data=data, method=method)
        request.add_header("Accept", accept)
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        request.add_header("User-Agent", "ciwrap")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        # Not sent on to wherever an artifact is stored.
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        what = f"{method} {url.removeprefix(self.url)}"
        for attempt in range(_ATTEMPTS):
            last = attempt + 1 == _ATTEMPTS
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                    content: bytes = answer.read(most_bytes + 1)
            except urllib.error.HTTPError as error:
                # Only what changes nothing is asked again.
                if error.code < 500 or last or method != "GET":
                    raise RemoteError(_refusal(what, error)) from None
            except (OSError, urllib.error.URLError) as error:
                if last or method != "GET":
                    reason = getattr(error, "reason", error)
                    raise RemoteError(f"{what}: {self.url} cannot be reached: {reason}") from None
            else:
                if len(content) > most_bytes:
                    raise RemoteError(f"{what}: more than {most_bytes} bytes")
                return content
            time.sleep(2**attempt)
        raise AssertionError("unreachable")


def _refusal(what: str, error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read(1 << 16)).get("message", "")
    except (ValueError, AttributeError, OSError):
        said = ""
    more = f": {said}" if said else ""
    hint = ""
    if error.code in (401, 403, 404):
        hint = " (do the job's permissions allow it?)"
    return f"{what}: {error.code} {error.reason}{more}{hint}"


def quoted(text: object) -> str:
    """A text as one part of a path."""
    return urllib.parse.quote(str(text), safe="")
