"""A depot in object storage that speaks S3: compare-and-swap by conditional writes, no locks.

An object is replaced by `If-Match` with the version that was read, and created by `If-None-Match`. A store that ignores
these is refused. Not every store can remove an object only if it is unchanged, so removing writes an empty object, and
an empty object counts as none.

Credentials, region and endpoint are those of the AWS tools: `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and so on, or
`~/.aws`.
"""

import atexit
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardtail.core.depots import ConflictError, Depot, Held
from hardtail.core.errors import HardtailError, quoted
from hardtail.core.files import atomic

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRA = "pip install 'hardtail[s3]'"
ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]+)((?:/[\w.-]+)*)/?")
PROBE = ".writable"
"""The object that is written to see whether a bucket can be."""
ATTEMPTS = 5
"""Attempts at a write that met a concurrent one, although the object stayed what it was."""
ROUNDS = 100
"""How often a change of a file that many others change too is begun again."""
CHANGED = (404, 409, 412)
"""How a store answers a conditional write whose condition does not hold, or which met another one."""
ABSENT = (404, 416)
"""How a store answers a read of an object that is not there, or of the first bytes of an empty one."""
FULL = 507
"""How a store answers that has no room left."""
AT_ONCE = 16
"""Files that are fetched at the same time."""


@dataclass(frozen=True)
class Patience:
    """How long requests may take."""

    connect: int
    """Seconds until there is a connection."""
    read: int
    """Seconds until more of an answer arrives."""
    attempts: int
    """Of botocore, at a request that fails by what is likely to pass."""
    repeats: int
    """Of s3fs, at all of these attempts; 1 means that only botocore tries again."""
    reads: int
    """Attempts at a read whose answer breaks off, which neither of them repeats."""


PATIENT = Patience(connect=10, read=60, attempts=4, repeats=5, reads=3)
PROMPT = Patience(connect=3, read=5, attempts=2, repeats=1, reads=1)
"""For leases: a request and a look at what became of it must be over well before a lease is."""


@dataclass(frozen=True)
class BucketDepot(Depot):
    """Objects below an address such as `s3://bucket/prefix`."""

    url: str
    patience: Patience = PATIENT

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.url):
            raise HardtailError(f"{quoted(self.url)} is not an address in object storage; give s3://BUCKET/PREFIX")

    @property
    def place(self) -> str:
        return self.url

    @property
    def prompt(self) -> "BucketDepot":
        return replace(self, patience=PROMPT)

    def read(self, key: str) -> Held | None:
        return self._get(key)

    def head(self, key: str, size: int) -> bytes | None:
        """The first bytes of a file; None if there is none."""
        held = self._get(key, Range=f"bytes=0-{size - 1}")
        return held.content if held else None

    def swap(self, key: str, content: bytes, expected: str | None) -> str:
        for _ in range(ATTEMPTS):
            condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
            if (version := self._put(key, content, **condition)) is not None:
                return version
            held = self._found(key)
            if held is not None and held.content == content:  # written, but the answer was lost and it was sent again
                return held.version
            if expected is None and held is not None and not held.content:
                expected = held.version  # it was removed
            elif (held.version if held else None) != expected:
                break
        raise ConflictError(f"{self.url}/{key} was written by another process meanwhile; try again")

    def publish(self, files: Mapping[str, bytes], key: str, change: Callable[[bytes], bytes]) -> None:
        # What is there now, before the index is read: a process that is suspended here cannot replace what another has
        # recorded meanwhile, except for a file that already had the recorded content: versions follow from the
        # content, so that this file has kept its own. There only the lease helps.
        before = {file: self._found(file) for file in files}
        changed = b""
        for number in range(ROUNDS):
            held = self.read(key)
            if changed and held is not None and held.content.startswith(changed):
                return  # it was taken, the answer was lost, and someone else has added to it since
            changed = change(held.content if held else b"")
            for file, content in files.items() if number == 0 else ():
                there = before[file]
                if there is None or there.content != content:
                    self.swap(file, content, there.version if there else None)
            try:
                self.swap(key, changed, held.version if held else None)
                return
            except ConflictError:  # someone else has changed the index
                continue
        raise ConflictError(f"{self.url}/{key} keeps being changed by others; try again")

    def remove(self, key: str, expected: str) -> None:
        self._put(key, b"", IfMatch=expected)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The bytes of all files below a folder, by key."""
        bucket, root = self._parts
        below = "/".join(part for part in (root, folder) if part)
        prefix = f"{below}/" if below else ""
        found: dict[str, int] = {}
        more: dict[str, str] = {}
        while True:
            with self._named(folder, "listed"):
                answer = self._store.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, **more)
            for item in answer.get("Contents", ()):
                if item["Size"]:
                    found[item["Key"].removeprefix(f"{root}/" if root else "")] = int(item["Size"])
            if not answer.get("IsTruncated"):
                return dict(sorted(found.items()))
            more = {"ContinuationToken": answer["NextContinuationToken"]}

    def keys(self, folder: str) -> list[str]:
        return [key for key in self.sizes(folder) if "/" not in key.removeprefix(f"{folder}/")]

    def refuse_unwritable(self, key: str) -> None:
        """Raise HardtailError if the bucket cannot be written, or takes a write whose condition does not hold."""
        self._put(PROBE, b"hardtail")
        for condition in ({"IfNoneMatch": "*"}, {"IfMatch": '"another"'}):
            if self._put(PROBE, b"hardtail", **condition) is not None:
                raise HardtailError(
                    f"{self.url} is in a store that ignores the condition of a write ({next(iter(condition))}), so two "
                    "workers could do the same run; use a store with conditional writes, or a shared folder"
                )

    def local(self, keys: Iterable[str]) -> Path:
        folder = _copies(self.url)

        def fetch(key: str) -> None:
            if (held := self.read(key)) is not None:
                with atomic(folder / key) as file:
                    file.write(held.content)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(fetch, keys))
        return folder

    # -- requests -----------------------------------------------------------------------------------------------

    @property
    def _parts(self) -> tuple[str, str]:
        """The bucket, and what all keys in it begin with."""
        found = ADDRESS.fullmatch(self.url)
        assert found is not None  # checked when it was made
        return found[1], found[2].removeprefix("/")

    @property
    def _store(self) -> Any:
        """The connection of this process; a process that was forked off gets its own."""
        return _connection(os.getpid(), self.patience)

    def _at(self, key: str) -> dict[str, str]:
        bucket, root = self._parts
        return {"Bucket": bucket, "Key": f"{root}/{key}" if root else key}

    def _get(self, key: str, **more: str) -> Held | None:
        held = self._found(key, **more)
        return held if held is not None and held.content else None

    def _found(self, key: str, **more: str) -> Held | None:
        """An object, also an empty one."""
        with self._named(key, "read"):
            from fsspec.asyn import sync

            for left in reversed(range(self.patience.reads)):
                try:
                    answer = self._store.call_s3("get_object", **self._at(key), **more)
                except OSError as error:
                    if _status(error) in ABSENT and "NoSuchBucket" not in str(error.__cause__):
                        return None
                    raise
                try:
                    return Held(sync(self._store.loop, _whole, answer["Body"]), answer["ETag"])
                except _faults():
                    if not left:
                        raise
        raise AssertionError("the last attempt returns or raises")

    def _put(self, key: str, content: bytes, **condition: str) -> str | None:
        """Write an object and return its version; None if the condition does not hold."""
        with self._named(key, "written"):
            try:
                answer = self._store.call_s3("put_object", **self._at(key), Body=content, **condition)
                return str(answer["ETag"])
            except OSError as error:
                if condition and _status(error) in CHANGED and "NoSuchBucket" not in str(error.__cause__):
                    return None
                raise

    @contextmanager
    def _named(self, key: str, what: str) -> "Iterator[None]":
        """Turn what a store or its client says into a HardtailError, with an OSError as its cause."""
        _ = self._store  # says what to install
        try:
            yield
        except _faults() as error:
            cause = error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
            if _status(error) == FULL:
                cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            reason = " ".join(str(cause.strerror or cause).split())
            where = f"{self.url}/{key}".rstrip("/")
            raise HardtailError(f"{where} cannot be {what}: {reason}") from cause


def _status(error: BaseException) -> int:
    """The HTTP status that an error came from; 0 if it came from none."""
    response: dict[str, Any] = getattr(error.__cause__, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _faults() -> tuple[type[Exception], ...]:
    """What the client raises; by no means only OSError, if an answer breaks off or cannot be parsed."""
    from aiohttp import ClientError
    from botocore.exceptions import BotoCoreError
    from botocore.parsers import ResponseParserError

    return OSError, BotoCoreError, ClientError, ResponseParserError


async def _whole(body: Any) -> bytes:
    try:
        content: bytes = await body.read()
        return content
    finally:
        body.close()


@cache
def _connection(process: int, patience: Patience) -> Any:
    try:
        import s3fs
    except ImportError as error:
        raise HardtailError(f"s3:// needs s3fs: {EXTRA}") from error
    settings = {
        "retries": {"mode": "standard", "total_max_attempts": patience.attempts},
        "connect_timeout": patience.connect,
        "read_timeout": patience.read,
    }
    store = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False, config_kwargs=settings)
    store.retries = patience.repeats
    return store


@cache
def _copies(url: str) -> Path:
    """A folder for what is read from an address, until this process ends."""
    folder = tempfile.mkdtemp(prefix="hardtail-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
