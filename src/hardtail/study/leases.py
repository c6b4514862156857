"""Leases: who works on a run at the moment. A lease has to be renewed; that of a dead worker runs out.

A lease is a small file in the store, replaced only by compare-and-swap, so that of two workers who want a run one gets
it. It says what its holder is doing, which is what the table of a grid shows. Clocks of machines that share a store may
differ by seconds, not by a whole `LASTS`. Where they do, the lock on its folder still protects a run that is kept in
one; a run in object storage is protected only by the conditions of its writes.
"""

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

import msgspec
from msgspec import structs

from hardtail.core.depots import ConflictError, Depot, Held
from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.records import Count, parse

FOLDER = ".leases"
LASTS = 60.0
"""Seconds that a lease lasts after it was last renewed."""
RENEWALS = 6
"""How often it is renewed in that time."""


class Taken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a lease."""

    owner: str
    """A random token that identifies the holder, new for each lease."""
    unit: str
    """The identity of what is worked on."""
    host: str
    process: Count
    place: str = ""
    """The machine, since when it runs, and the processes it sees; where this is the same, process numbers compare."""
    born: Count = 0
    """When the process began, in ticks of the machine."""
    expires: float
    doing: str = ""
    step: Count = 0

    @property
    def alive(self) -> bool:
        """Whether its holder may still be at work: the lease has not run out, and its process, if here, is alive."""
        here = self.place and self.place == _place()
        return time.time() < self.expires and not (here and _gone(self.process, self.born))

    @property
    def holder(self) -> str:
        return f"process {self.process} on {self.host}"


@dataclass(frozen=True)
class Leases:
    """The leases of a store."""

    depot: Depot
    lasts: float = LASTS

    def take(self, name: str, unit: str, owner: str | None = None) -> "Lease":
        """Take the lease of a run; raise BusyError if someone else has it."""
        held = self._read(name)
        if held is not None and (taken := _parsed(held, name)).alive:
            raise BusyError(f"another process is working on it: {taken.holder}")
        taken = Taken(
            owner=owner or new_owner(),
            unit=unit,
            host=socket.gethostname(),
            process=os.getpid(),
            place=_place(),
            born=_born(os.getpid()),
            expires=time.time() + self.lasts,
        )
        try:
            version = self.depot.swap(_key(name), msgspec.json.encode(taken), held.version if held else None)
        except ConflictError as error:
            raise BusyError("another process has just begun to work on it") from error
        return Lease(self, name, taken, version)

    def held(self) -> dict[str, Taken]:
        """Everything that someone is working on, by name."""
        found: dict[str, Taken] = {}
        for key in self.depot.keys(FOLDER):
            name = key.removeprefix(f"{FOLDER}/").removesuffix(".json")
            if (held := self.depot.read(key)) is not None and (taken := _parsed(held, name)).alive:
                found[name] = taken
        return found

    def drop(self, name: str, owner: str) -> None:
        """Remove the lease of a holder that has ended."""
        held = self._read(name)
        if held is not None and _parsed(held, name).owner == owner:
            self.depot.remove(_key(name), held.version)

    def _read(self, name: str) -> Held | None:
        return self.depot.read(_key(name))


class Lease:
    """The right to work on a run; while it is entered, a thread renews it."""

    def __init__(self, leases: Leases, name: str, taken: Taken, version: str) -> None:
        self.leases, self.name, self.taken, self.version = leases, name, taken, version
        self._moved = False
        self._renewing = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease of {name}", daemon=True)

    @property
    def lost(self) -> bool:
        """Whether someone else may have it by now."""
        return self._moved or time.time() >= self.taken.expires

    def note(self, doing: str, step: int) -> None:
        """What the next renewal says that its holder is doing."""
        self.taken = structs.replace(self.taken, doing=doing, step=step)

    def renew(self) -> None:
        """Make it last again; do nothing if the store cannot be reached, since a later renewal may."""
        with self._renewing, suppress(OSError, HardtailError):
            try:
                self._extend()
            except ConflictError:
                self._moved = True  # until it is known that it is not
                if self._adopted():
                    self._moved = False
                    self._extend()

    def _extend(self) -> None:
        fresh = structs.replace(self.taken, expires=time.time() + self.leases.lasts)
        self.version = self.leases.depot.swap(_key(self.name), msgspec.json.encode(fresh), self.version)
        self.taken = structs.replace(self.taken, expires=fresh.expires)

    def _adopted(self) -> bool:
        """Take over the version in the store if it is ours: a renewal that was made, although its answer was lost."""
        held = self.leases.depot.read(_key(self.name))
        if held is None or _parsed(held, self.name).owner != self.taken.owner:
            return False
        self.version = held.version
        return True

    def refuse_lost(self) -> None:
        """Raise BusyError if someone else may be working on the run by now; called before anything is recorded."""
        self.renew()
        if self.lost:
            raise BusyError("its lease ran out while it was worked on; another process may have taken it over")

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        with suppress(OSError, HardtailError):  # it also runs out by itself
            self.leases.drop(self.name, self.taken.owner)

    def _keep(self) -> None:
        while not self._done.wait(self.leases.lasts / RENEWALS):
            self.renew()


def new_owner() -> str:
    return secrets.token_hex(8)


def _key(name: str) -> str:
    return f"{FOLDER}/{name}.json"


def _parsed(held: Held, name: str) -> Taken:
    return parse(held.content, Taken, f"the lease of {name}")


@cache
def _place() -> str:
    """What processes that see each other have in common; empty where that cannot be told."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {booted} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _gone(process: int, born: int) -> bool:
    """Whether a process of this machine has ended. One that /proc does not show may be another user's (hidepid)."""
    if found := _born(process):
        return found != born
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is there, and not ours
        return False
    return _seen(process)  # a process that has ended and that nobody has waited for


def _seen(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def _born(process: int) -> int:
    """When a process of this machine began; 0 if it cannot be seen or has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    after_name = stat.rpartition(")")[2].split()
    return 0 if after_name[0] in "ZX" else int(after_name[19])
