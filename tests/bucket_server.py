"""A server that speaks S3 on loopback (moto's, over HTTP); it answers one request at a time, and fails on demand."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from hardtail.core import buckets

BUCKET = "grids"
KEYS = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_DEFAULT_REGION": "us-east-1"}
Answer = Iterable[bytes]
Fault = Callable[["Request"], int | None]
"""Given a request, the status that it is answered with instead; None lets it pass."""


@dataclass(frozen=True)
class Request:
    method: str
    key: str
    conditional: bool


@dataclass
class Buckets:
    """What a test sees of the server."""

    url: str = ""
    fault: Fault = lambda request: None
    lost: Callable[["Request"], bool] = lambda request: False
    """Whether a request is carried out, and its sender told that it was not."""
    cut: Callable[["Request"], bool] = lambda request: False
    """Whether the connection breaks in the middle of the answer's body."""
    unconditional: bool = False
    """Whether conditions are ignored, as by a store that does not know them."""
    asked: list[Request] = field(default_factory=list)


class _Quiet(WSGIRequestHandler):
    def log(self, *given: Any, **also: Any) -> None:
        return


@contextmanager
def serving() -> Iterator[Buckets]:
    """A server with one bucket, and the environment that leads clients to it."""
    from moto.server import DomainDispatcherApplication, create_backend_app

    held, inner, turn = Buckets(), DomainDispatcherApplication(create_backend_app), Lock()

    def answered(environment: dict[str, Any], start: Any) -> Answer:
        conditions = [name for name in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH") if name in environment]
        key = environment["PATH_INFO"].removeprefix(f"/{BUCKET}/")
        request = Request(environment["REQUEST_METHOD"], key, bool(conditions))
        with turn:  # a store decides on one write of an object at a time; moto by itself does not
            held.asked.append(request)
            if (status := held.fault(request)) is not None:
                environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
                start(f"{status} refused", [("Content-Length", "0")])
                return [b""]
            for name in conditions if held.unconditional else ():
                del environment[name]
            if not held.lost(request):
                body = b"".join(inner(environment, start))
                return [body[: len(body) // 2] if held.cut(request) else body]
            list(inner(environment, lambda *given: None))
            start("503 try again", [("Content-Length", "0")])
            return [b""]

    server = make_server("127.0.0.1", 0, answered, threaded=True, request_handler=_Quiet)
    held.url = f"http://127.0.0.1:{server.port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    before = dict(os.environ)
    os.environ.update(KEYS | {"AWS_ENDPOINT_URL": held.url})
    buckets._connection.cache_clear()  # made for another address, perhaps
    try:
        buckets.BucketDepot(f"s3://{BUCKET}")._store.call_s3("create_bucket", Bucket=BUCKET)
        yield held
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.shutdown()
        thread.join()
        server.server_close()
