"""A small server of the Hub's API on loopback: what its client needs to create, commit to, list and download."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_local"
LARGE = (".safetensors", ".npz", ".parquet")
"""The endings of files that are stored as LFS objects, as on the Hub."""

Files = dict[str, bytes]


@dataclass
class Repository:
    private: bool = False
    commits: list[tuple[str, Files]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def add(self, files: Files, message: str) -> str:
        digest = hashlib.sha1(json.dumps([message, len(self.commits), sorted(files)]).encode()).hexdigest()
        self.commits.append((digest, files))
        self.messages.append(message)
        return digest

    def at(self, revision: str) -> tuple[str, Files] | None:
        if revision == "main":
            return self.commits[-1]
        return next((commit for commit in self.commits if commit[0] == revision), None)


@dataclass
class Hub:
    """What the server holds; `url` is where it listens."""

    url: str = ""
    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Every request, as `METHOD path`."""
    failing: int | None = None
    """A status that every request is answered with."""


class Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def answer(self, status: int, body: object = None, *, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def refuse(self, status: int, code: str, message: str) -> None:
        self.answer(status, {"error": message}, headers={"X-Error-Code": code, "X-Error-Message": message})

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    @property
    def allowed(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def repository(self, kind: str, name: str) -> Repository | None:
        found = self.hub.repositories.get((kind, name))
        if found is None or (found.private and not self.allowed):
            self.refuse(401, "RepoNotFound", "Repository not found")
            return None
        return found

    def handle_any(self) -> None:
        path, content = unquote(urlsplit(self.path).path), self.body()
        self.hub.asked.append(f"{self.command} {path}")
        if self.hub.failing is not None:
            return self.answer(self.hub.failing, {"error": "the server is broken"})
        for pattern, handle in ROUTES:
            if found := re.fullmatch(pattern, f"{self.command} {path}"):
                if self.command == "POST" and not self.allowed:  # an upload's own address is permission enough
                    return self.refuse(401, "", "Invalid username or password.")
                return handle(self, content, **found.groupdict())
        return self.answer(404, {"error": f"no route for {self.command} {path}"})

    do_GET = do_HEAD = do_POST = do_PUT = handle_any

    # -- writing ------------------------------------------------------------------------------------------------

    def create(self, content: bytes) -> None:
        asked = json.loads(content)
        key = asked.get("type", "model"), f"{asked['organization']}/{asked['name']}"
        if key in self.hub.repositories:
            return self.answer(409, {"error": "You already created this repo", "url": f"{self.hub.url}/{key[1]}"})
        made = self.hub.repositories[key] = Repository(
            asked.get("visibility") == "private" or bool(asked.get("private"))
        )
        made.add({".gitattributes": b"*.safetensors filter=lfs\n"}, "initial commit")
        return self.answer(200, {"url": f"{self.hub.url}/{key[1]}", "name": key[1]})

    def validate(self, content: bytes) -> None:
        fault = not json.loads(content)["content"].startswith("---\n")
        self.answer(400 if fault else 200, {"errors": [{"message": "no metadata"}] if fault else [], "warnings": []})

    def modes(self, content: bytes, kind: str, name: str, revision: str) -> None:
        if self.repository(kind, name) is None:
            return
        files = [
            {
                "path": held["path"],
                "uploadMode": "lfs" if held["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
            }
            for held in json.loads(content)["files"]
        ]
        self.answer(200, {"files": files})

    def batch(self, content: bytes, kind: str | None, name: str) -> None:
        objects: list[dict[str, Any]] = []
        for asked in json.loads(content)["objects"]:
            if asked["oid"] not in self.hub.objects:
                asked = {**asked, "actions": {"upload": {"href": f"{self.hub.url}/objects/{asked['oid']}"}}}
            objects.append(asked)
        self.answer(200, {"transfer": "basic", "objects": objects})

    def put(self, content: bytes, oid: str) -> None:
        if hashlib.sha256(content).hexdigest() != oid:
            return self.answer(400, {"error": "the hashes differ"})
        self.hub.objects[oid] = content
        return self.answer(200)

    def commit(self, content: bytes, kind: str, name: str, revision: str) -> None:
        if (found := self.repository(kind, name)) is None:
            return
        files, message = dict(found.commits[-1][1]), ""
        for line in map(json.loads, content.splitlines()):
            key, value = line["key"], line["value"]
            if key == "header":
                message = value["summary"]
            elif key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        digest = found.add(files, message)
        self.answer(200, {"commitUrl": f"{self.hub.url}/{name}/commit/{digest}", "commitOid": digest})

    # -- reading ------------------------------------------------------------------------------------------------

    def at(self, kind: str, name: str, revision: str) -> tuple[str, Files] | None:
        if (repository := self.repository(kind, name)) is None:
            return None
        if (found := repository.at(revision)) is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return found

    def info(self, content: bytes, kind: str, name: str, revision: str = "main") -> None:
        if (found := self.at(kind, name, revision)) is not None:
            siblings = [{"rfilename": path} for path in found[1]]
            self.answer(200, {"id": name, "sha": found[0], "siblings": siblings, "private": False, "tags": []})

    def tree(self, content: bytes, kind: str, name: str, revision: str) -> None:
        if (found := self.at(kind, name, revision)) is None:
            return
        entries: list[dict[str, Any]] = []
        for path, held in found[1].items():
            entry: dict[str, Any] = {"type": "file", "path": path, "size": len(held), "oid": _blob(held)}
            if path.endswith(LARGE):
                entry["lfs"] = {"oid": hashlib.sha256(held).hexdigest(), "size": len(held), "pointerSize": 134}
            entries.append(entry)
        self.answer(200, entries)

    def resolve(self, content: bytes, name: str, revision: str, file: str, kind: str | None = None) -> None:
        if (found := self.at("dataset" if kind else "model", name, revision)) is None:
            return None
        if (held := found[1].get(file)) is None:
            return self.refuse(404, "EntryNotFound", f"Entry not found: {file}")
        etag = hashlib.sha256(held).hexdigest() if file.endswith(LARGE) else _blob(held)
        return self.answer(200, held, headers={"X-Repo-Commit": found[0], "ETag": f'"{etag}"'})


def _blob(content: bytes) -> str:
    """A file's hash as git names it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


_REPO = "(?P<kind>model|dataset)s/(?P<name>[^/]+/[^/]+)"
ROUTES: list[tuple[str, Any]] = [
    ("POST /api/repos/create", Handler.create),
    ("POST /api/validate-yaml", Handler.validate),
    (f"POST /api/{_REPO}/preupload/(?P<revision>.+)", Handler.modes),
    (f"POST /api/{_REPO}/commit/(?P<revision>.+)", Handler.commit),
    (r"POST /(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT /objects/(?P<oid>[0-9a-f]{64})", Handler.put),
    (f"GET /api/{_REPO}/tree/(?P<revision>[^/]+)", Handler.tree),
    (f"GET /api/{_REPO}/revision/(?P<revision>[^/]+)", Handler.info),
    (f"GET /api/{_REPO}", Handler.info),
    ("(GET|HEAD) /(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)", Handler.resolve),
]


@contextmanager
def serving() -> Iterator[Hub]:
    """A running server on a free port of loopback."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
