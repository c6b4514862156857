"""Damaged inputs: real ones with faults that disks, editors, other programs and enemies make.

Every function takes a `random.Random`, so that a seed gives the same inputs everywhere.
"""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from hardtail.core.types import Array

STRANGE_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 256, 1 << 31, 1 << 53, 1 << 63, -(1 << 64), 10**400, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), -float("inf"), "", " ", "0", "nan", "x", "..", "/", "a/b", "natural", "last"),
    *("\x00", "\x1b[2J\x1b[31m", "\u202e", "\ud800", "١", "🧨", "</script>", "x" * 300, "__class__", "os:system"),
    *([], {}, [[]], [None], [1, "x"], {"": None}, {"fields": {}}, {"name": "addition", "fields": {"digits": -1}}),
)
"""Values of every type, at and beyond the edges of what fields accept."""
STRANGE_TEXTS = (
    *("\x00", "\x1b[2J", "\t", "\n", "\r\n", "\u2028", "\xa0", "\ufeff", "\u202e", "١٢٣", "²", "①", "½", "−", "＋"),
    *("=", ",", ":", ";", ".", "..", "/", "\\", "'", '"', "`", "[", "]", "[[[[", "(", "{", "|", "+", "-", "*", "%s"),
    *("0", "00", "-1", "9" * 40, "1e999", "0x10", "1_000", "nan", "inf", "None", "true", "natural", "hub:", "zoo:"),
    *("a:b", "..:x", ".:x", ":", "::", "a.b.c:D", "package.module:Class", "<script>", "\u00e9", "é", "🧨", "\ud800"),
)
DTYPES = ("u1", "i1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "?", "U3", "S2", "M8[s]")
DEEP, LONG = 200_000, 200_000
"""How deep JSON is nested and how long a run of one character gets, once in a while."""


def damaged_bytes(raw: bytes, rng: Random) -> bytes:
    """One to four faults: flipped, lost, doubled or foreign bytes, a cut, parts in another order."""
    held = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at, end = sorted((rng.randint(0, len(held)), rng.randint(0, len(held))))
        end = min(end, at + rng.choice((1, 2, 8, 64, 1 << 20)))
        fault = rng.randrange(7)
        if fault == 0 and held:
            held[min(at, len(held) - 1)] ^= 1 << rng.randrange(8)
        elif fault == 1:
            del held[at:end]
        elif fault == 2:
            held[at:at] = held[at:end]
        elif fault == 3:
            held[at:at] = rng.randbytes(rng.choice((1, 2, 8, 64)))
        elif fault == 4:
            held = held[:at] if rng.random() < 0.5 else held[at:]
        elif fault == 5:
            held[at:end] = bytes([rng.choice((0, 255, 32, 48))]) * (end - at)
        else:
            held[at:end] = rng.choice(STRANGE_TEXTS).encode("utf-8", "surrogatepass")
    return bytes(held)


def damaged_text(text: str, rng: Random, others: Sequence[str] = ()) -> str:
    """One to four faults: lost, doubled, swapped or foreign characters, parts of others; seldom a very long run."""
    for _ in range(rng.randint(1, 4)):
        at, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        fault = rng.randrange(8)
        if fault == 0:
            text = text[:at] + text[at + 1 :]
        elif fault == 1:
            text = text[:at] + text[end:]
        elif fault == 2:
            text = text[:end] + text[at:]
        elif fault == 3:
            text = text[:at] + rng.choice(STRANGE_TEXTS) + text[at:]
        elif fault == 4:
            text = text[:at] + rng.choice(STRANGE_TEXTS) + text[end:]
        elif fault == 5 and others:
            text = text[:at] + rng.choice(others)[: rng.randint(0, 40)] + text[at:]
        elif fault == 6 and text:
            text = text[:at] + rng.choice(text) + text[at + 1 :]
        elif fault == 7 and rng.random() < 0.003:
            text = (
                text[:at] + rng.choice([" ", "1", "[", "#", "+", ",", "=", "\n"]) * rng.choice((999, LONG)) + text[at:]
            )
    return text


def damaged_json(raw: bytes, rng: Random) -> bytes:
    """Valid JSON, mostly: one to three of its values, keys or items are changed, lost, moved or doubled."""
    if rng.random() < 0.25:
        return damaged_bytes(raw, rng)
    if rng.random() < 0.002:
        return rng.choice((b"[", b'{"a":')) * DEEP
    held = json.loads(raw)
    for _ in range(rng.randint(1, 3)):
        held = _damaged_value(held, rng)
    return json.dumps(held).encode()


def _damaged_value(value: Any, rng: Random) -> Any:
    """The same JSON with a change at a random place in it."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        fault = rng.random()
        if fault < 0.12:
            return {name: inner for name, inner in value.items() if name != key}
        if fault < 0.17:
            return {name if name != key else rng.choice(("x", "", "kind", "schema")): v for name, v in value.items()}
        if fault < 0.22:
            return value | {rng.choice(("x", "schema", "kind", "fields", *value)): rng.choice(STRANGE_VALUES)}
        return value | {key: _damaged_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        fault = rng.random()
        if fault < 0.12:
            return value[:at] + value[at + 1 :]
        if fault < 0.24:
            return value[: at + 1] + value[at:]
        return [*value[:at], _damaged_value(value[at], rng), *value[at + 1 :]]
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.4:
        return rng.choice((-value, value + 1, value - 1, value * 1000, value // 3, str(value)))
    return rng.choice(STRANGE_VALUES)


def damaged_arrays(arrays: Mapping[str, Array], rng: Random) -> dict[str, Array]:
    """Arrays that a file could hold: one to three have another type, rank, length or values, or are lost or new."""
    held = dict(arrays)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(list(held)) if held else "x"
        array = held.get(name, np.zeros(3))
        fault = rng.randrange(9)
        if fault == 0:
            held.pop(name, None)
        elif fault == 1:
            held[name] = _as_type(array, rng.choice(DTYPES))
        elif fault == 2:
            held[name] = array[..., None] if rng.random() < 0.5 else array[None]
        elif fault == 3 and array.ndim:
            held[name] = np.asarray(array[0]) if len(array) else array.reshape(-1)
        elif fault == 4 and array.ndim:
            axis = rng.randrange(array.ndim)
            held[name] = np.take(array, range(rng.randint(0, array.shape[axis])), axis=axis)
        elif fault == 5 and array.ndim:
            held[name] = np.concatenate([array, array[:1]])
        elif fault == 6:
            new = rng.choice(("orders/x", "strata/x", "extras/x", "orders/", "other/x", "x", "instances/x", "../x"))
            held[new] = array
        elif array.size and array.dtype.kind in "iuf":
            limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
            strange = [limits.min, limits.max, 0, 1, *([np.nan, np.inf, -1.0] if array.dtype.kind == "f" else [])]
            changed = np.array(array)
            chosen = rng.choice(strange)
            if rng.random() < 0.5:
                changed[...] = chosen
            else:
                changed.reshape(-1)[rng.randrange(array.size)] = chosen
            held[name] = changed
        elif array.size and array.dtype.kind == "b":
            held[name] = np.full_like(array, rng.random() < 0.5)
    return held


def _as_type(array: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        try:
            return array.astype(dtype)
        except (TypeError, ValueError):
            return np.zeros(array.shape, dtype)
