"""A GitHub API of few words: pull requests, comments, runs, artifacts, permissions.

In a test: `with FakeGithub(state) as github`. Under act: `python fake_github.py STATE.json PORT`,
which keeps STATE.json up to date.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

EMPTY: dict[str, Any] = {
    "pulls": [],
    "comments": {},  # by pull request
    "runs": [],
    "artifacts": {},  # by run: {id, name, expired, zip: base64}
    "permissions": {},  # by login
    "requests": [],  # what was asked: method, path, body, whether there was a token
    "next_id": 9000,
}
BOT = {"login": "github-actions[bot]", "type": "Bot"}


def artifact(number: int, name: str, data: bytes, *, expired: bool = False) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "expired": expired,
        "zip": base64.b64encode(data).decode(),
    }


class FakeGithub:
    def __init__(self, state: dict[str, Any], port: int = 0, file: Path | None = None) -> None:
        self.state = {**json.loads(json.dumps(EMPTY)), **state}
        self.file = file
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> FakeGithub:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def written(self) -> list[dict[str, Any]]:
        return [one for one in self.state["requests"] if one["method"] != "GET"]

    def _new_id(self) -> int:
        self.state["next_id"] += 1
        return int(self.state["next_id"])

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        """The JSON answer; an int for a status without one; a str to redirect to."""
        state = self.state
        found = re.fullmatch(r"/repos/[^/]+/[^/]+(/.*)", path)
        if found is None:
            return 404
        rest = found[1]
        if rest == "/pulls" and method == "GET":
            return [p for p in state["pulls"] if self._pull_matches(p, query)]
        if rest == "/pulls" and method == "POST":
            number = self._new_id()
            pull = {"number": number, "state": "open", "html_url": f"https://x/pull/{number}",
                    "body": body["body"], "title": body["title"], "base": {"ref": body["base"]},
                    "head": {"ref": body["head"], "label": "o:" + body["head"]}}  # fmt: skip
            state["pulls"].append(pull)
            return pull
        if match := re.fullmatch(r"/pulls/(\d+)", rest):
            (pull,) = [p for p in state["pulls"] if p["number"] == int(match[1])]
            if method == "PATCH":
                pull.update(body)
            return pull
        if match := re.fullmatch(r"/issues/(\d+)/comments", rest):
            comments = state["comments"].setdefault(match[1], [])
            if method == "GET":
                return _page(comments, query)
            comments.append({"id": self._new_id(), "body": body["body"], "user": BOT})
            return comments[-1]
        if match := re.fullmatch(r"/issues/comments/(\d+)", rest):
            for comments in state["comments"].values():
                for one in comments:
                    if one["id"] == int(match[1]):
                        one["body"] = body["body"]
                        return one
            return 404
        if match := re.fullmatch(r"/actions/runs/(\d+)/artifacts", rest):
            listed = [
                {key: value for key, value in one.items() if key != "zip"}
                for one in state["artifacts"].get(match[1], [])
            ]
            return {"total_count": len(listed), "artifacts": _page(listed, query)}
        if match := re.fullmatch(r"/actions/artifacts/(\d+)/zip", rest):
            return f"http://localhost:{self.server.server_port}/blob/{match[1]}"
        if match := re.fullmatch(r"/actions/workflows/([^/]+)/runs", rest):
            runs = [
                run
                for run in state["runs"]
                if run["path"].endswith("/" + match[1]) and run["head_sha"] == query["head_sha"]
            ]
            return {"total_count": len(runs), "workflow_runs": runs}
        if match := re.fullmatch(r"/collaborators/([^/]+)/permission", rest):
            if match[1] not in state["permissions"]:
                return 404
            return {"permission": state["permissions"][match[1]]}
        return 404

    @staticmethod
    def _pull_matches(pull: dict[str, Any], query: dict[str, str]) -> bool:
        owner, _, branch = query.get("head", "").partition(":")
        head = pull["head"]
        home = (head.get("repo") or {}).get("full_name", "o/r").split("/")[0]
        return pull["state"] == query.get("state", "open") and (
            not branch or (head["ref"] == branch and owner in (home, "o"))
        )

    def blob(self, number: int) -> bytes | None:
        for listed in self.state["artifacts"].values():
            for one in listed:
                if one["id"] == number:
                    return base64.b64decode(one["zip"])
        return None

    def _handler(fake) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def handle_any(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                token = self.headers.get("Authorization", "")
                fake.state["requests"].append(
                    {"method": self.command, "path": parts.path, "body": body, "token": token}
                )
                if parts.path.startswith("/blob/"):
                    # As object storage does: a second kind of authorization is an error.
                    data = None if token else fake.blob(int(parts.path.split("/")[-1]))
                    self.reply(400 if data is None else 200, data or b"")
                    return
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                # Before the answer: whoever has it may look at the file at once.
                with fake.lock:
                    answer = fake.answer(self.command, parts.path, query, body) if token else 401
                    if fake.file is not None:
                        fake.file.write_text(json.dumps(fake.state))
                if isinstance(answer, str):
                    self.send_response(302)
                    self.send_header("Location", answer)
                    self.end_headers()
                elif isinstance(answer, int):
                    self.reply(answer, json.dumps({"message": "no"}).encode())
                else:
                    self.reply(200, json.dumps(answer).encode())

            do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 - names of the base class

            def reply(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler


def _page(items: list[Any], query: dict[str, str]) -> list[Any]:
    size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
    return items[(page - 1) * size : page * size]


if __name__ == "__main__":
    state_file = Path(sys.argv[1])
    fake = FakeGithub(json.loads(state_file.read_text()), int(sys.argv[2]), state_file)
    fake.server.serve_forever()
