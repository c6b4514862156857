"""Data sets as Parquet, for other tools: one row for each problem, one column for each array, the manifest inside.

Columns `prompt` and `answer` are the problem and its gold answer as text. They are for people and are not read back:
the data are the arrays, whose hash the manifest holds as it does next to an `.npz`.

Shapes: N instances.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from hardtail.core.archives import Header, refuse_bomb, refuse_strange
from hardtail.core.errors import HardtailError, quoted
from hardtail.core.files import AGAIN, atomic, content_hash, open_regular
from hardtail.core.manifest import FORMAT, Count, Manifest, as_json
from hardtail.core.parsing import converted, decoded
from hardtail.core.schema import check_instance_headers, check_instances
from hardtail.core.types import Array, Instances

if TYPE_CHECKING:
    import pyarrow

ENDING = ".parquet"
ENTRY = b"hardtail"
"""The key of our entry in the file's metadata."""


class _Array(Struct, frozen=True):
    dtype: str
    shape: tuple[Count, ...]


class _Entry(Struct, frozen=True):
    manifest: Manifest
    arrays: dict[str, _Array]


def save_parquet(path: Path, instances: Instances, manifest: Manifest, texts: Mapping[str, Sequence[str]]) -> None:
    """Write instances with `texts`, further columns that people read."""
    arrow = pyarrow_or_error()
    import pyarrow.parquet

    arrays = instances.arrays()
    full = structs.replace(manifest, format=FORMAT, count=len(instances), sha256=content_hash(arrays))
    described = {name: _Array(array.dtype.str, array.shape) for name, array in arrays.items()}
    columns = {name: arrow.array(text) for name, text in texts.items()}
    columns |= {name: _column(array) for name, array in arrays.items() if array.size}  # no column has empty lists
    entry = msgspec.json.encode({"manifest": as_json(full), "arrays": msgspec.to_builtins(described)})
    with atomic(path) as file:
        pyarrow.parquet.write_table(
            arrow.table(columns).replace_schema_metadata({ENTRY: entry}), file, compression="zstd"
        )


def load_parquet(path: Path) -> tuple[Instances, Manifest]:
    """The instances in a file that `save_parquet` wrote, and its manifest; refuses one that was altered."""
    pyarrow_or_error()
    import pyarrow.parquet
    from pyarrow.lib import ArrowException

    fault = f"{path} is damaged or not hardtail data ({{}}); {AGAIN}"
    with open_regular(path) as file:
        try:
            held = pyarrow.parquet.ParquetFile(file)
            entry = _entry(held.schema_arrow.metadata, str(path))
            headers = {name: _header(name, array) for name, array in entry.arrays.items()}
            words = [name for name, header in headers.items() if header.dtype.kind == "U"]
            held = pyarrow.parquet.ParquetFile(file, read_dictionary=words)  # a repeated word takes memory once
            described = sum(math.prod(of.shape) * of.dtype.itemsize for of in headers.values())
            refuse_bomb(os.fstat(file.fileno()).st_size, max(described, _stored(held.metadata)))
            if not check_instance_headers(headers) == entry.manifest.count == held.metadata.num_rows:
                raise HardtailError("its manifest gives a different number of instances")
            arrays = {name: _array(held, name, header) for name, header in headers.items()}
            if content_hash(arrays) != entry.manifest.sha256:
                raise HardtailError("the hashes differ: it does not match its manifest")
            instances = Instances.from_arrays(arrays)
            check_instances(instances)
        except (ArrowException, ValueError, KeyError, TypeError, OverflowError, OSError, RuntimeError) as error:
            raise HardtailError(fault.replace("{}", str(error))) from error
    return instances, entry.manifest


def _stored(metadata: Any) -> int:
    """Bytes of all columns before they were compressed; a column's own entry, if damaged, ends the process."""
    return sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))


def _entry(metadata: Mapping[bytes, bytes] | None, where: str) -> _Entry:
    if not metadata or ENTRY not in metadata:
        raise HardtailError("it has no manifest of hardtail")
    return converted(decoded(metadata[ENTRY], where), _Entry, where)


def _header(name: str, array: _Array) -> Header:
    header = Header(np.dtype(array.dtype), array.shape)
    refuse_strange(name, header)
    return header


def _column(array: Array) -> "pyarrow.Array":
    """One value or one list of fixed length for each instance."""
    arrow = pyarrow_or_error()
    if array.ndim == 1:
        return arrow.array(array.tolist() if array.dtype.kind == "U" else array)
    flat = arrow.array(np.ascontiguousarray(array).reshape(-1))
    return arrow.FixedSizeListArray.from_arrays(flat, math.prod(array.shape[1:]))


def _array(held: Any, name: str, header: Header) -> Array:
    """An array from its column, which must have the type and the lengths that the header says."""
    if not math.prod(header.shape):
        return np.zeros(header.shape, header.dtype)
    arrow = pyarrow_or_error()
    place = held.schema_arrow.get_field_index(name)
    if place < 0:
        raise HardtailError(f"the column {quoted(name)} is missing or there twice")
    kind = held.schema_arrow.field(place).type
    kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
    inner = arrow.string() if header.dtype.kind == "U" else arrow.from_numpy_dtype(header.dtype)
    if len(header.shape) == 1:
        fits = kind == inner
    else:
        size = math.prod(header.shape[1:])
        fits = arrow.types.is_fixed_size_list(kind) and (kind.value_type, kind.list_size) == (inner, size)
    if not fits:
        raise HardtailError(f"the column {quoted(name)} ({kind}) is not {header}")
    column = held.read(columns=[name]).column(0).combine_chunks()
    if column.null_count:
        raise HardtailError(f"the column {quoted(name)} has empty cells")
    flat = column if len(header.shape) == 1 else column.flatten()
    if flat.null_count or len(flat) != math.prod(header.shape):
        raise HardtailError(f"the column {quoted(name)} is not {header}")
    if header.dtype.kind == "U":
        words = flat.dictionary.to_pylist()
        if 4 * max(map(len, words)) > header.dtype.itemsize:  # numpy would cut it short
            raise HardtailError(f"a word of the column {quoted(name)} is longer than {header} allows")
        return np.array(words, dtype=header.dtype)[flat.indices.to_numpy()]
    return np.array(flat.to_numpy(zero_copy_only=False), dtype=header.dtype).reshape(header.shape)


def pyarrow_or_error() -> Any:
    """Return pyarrow; raise HardtailError if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise HardtailError(f"a {ENDING} file needs pyarrow: pip install 'hardtail[parquet]'") from error
    return pyarrow
