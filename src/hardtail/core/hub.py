"""The Hugging Face Hub: what is ours there, by name, always at one commit.

`hf:user/name` is a model, or, for the functions that read data sets and traces, a data set; `hf:user/name@REVISION` is
the same at a branch, a tag or a commit. A repository that has a `recipe.json` holds a model of ours; all others belong
to the adapters of other people's models.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.pretrained import HF as HF
from hardtail.core.recipes import RECIPE
from hardtail.core.version import __version__

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"
CONFIG = "config.json"
"""What every model of `transformers` has, and none of ours."""
WEIGHTS = ("best_probe.safetensors", "last.safetensors")
RECORDS = ("finished.json", "log.jsonl", "coverage.json", "evaluations.jsonl", "diagnoses.jsonl")
MODEL_FILES = (RECIPE, *WEIGHTS, *RECORDS)
"""What a model consists of there: its run without the state that training resumes from."""
DATA, TRACE = "data", "trace"
"""The names of a data set's and of a trace's files there, without their endings."""
DATA_FILES = {f"{stem}{ending}" for stem in (DATA, TRACE) for ending in (".npz", ".json", ".parquet")}
Kind = Literal["model", "dataset"]
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]*", re.ASCII)


class Address(NamedTuple):
    """A repository at a revision; without one, its main branch as it is now."""

    name: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Address":
        name, at, revision = text.removeprefix(HF).partition("@")
        if not _NAME.fullmatch(name) or ".." in text or (at and not _REVISION.fullmatch(revision)):
            raise HardtailError(f"{quoted(text)} names no repository; give {HF}user/name or {HF}user/name@REVISION")
        return cls(name, revision or None)


@dataclass(frozen=True)
class Snapshot:
    """Files of a repository at one commit, in a folder that nobody writes to; or a folder of the user's own."""

    folder: Path
    address: Address | None = None
    """None for a user's own folder."""

    @property
    def name(self) -> str:
        """What tables call it: `user/name@` and the beginning of the commit."""
        if self.address is None:
            return self.folder.resolve().name
        return f"{self.address.name}@{(self.address.revision or '')[:7]}"


def model_of(source: str) -> Snapshot | None:
    """A model of ours in a folder or on the Hub; None if that holds someone else's model."""
    folder = Path(source.removeprefix(HF))
    if folder.exists():
        return Snapshot(folder) if is_ours(folder) else None
    try:
        address = Address.parse(source)
    except HardtailError:  # such as a folder that does not exist; whoever loads other models says what is wrong
        return None
    return fetch(address, MODEL_FILES) if _has_recipe(address) else None


def is_ours(folder: Path) -> bool:
    return (folder / RECIPE).is_file()


def fetch(address: Address, files: Sequence[str], kind: Kind = "model") -> Snapshot:
    """Download the given files at the top of a repository, as far as it has them, once.

    Without a network, an earlier download is used. `files` may be patterns such as `*.json`.
    """
    with _speaking(address) as api:
        held = api.snapshot_download(
            address.name,
            repo_type=kind,
            revision=address.revision,
            allow_patterns=list(files),
            ignore_patterns=["*/*"],
        )
        folder = Path(held)
    return Snapshot(folder, Address(address.name, folder.name))


def pinned_data(source: Path) -> Path:
    """The file that a user names, or a data set on the Hub at the commit that it has now, as `hf:user/name@COMMIT`.

    Such a name means the same on every machine, and stays one while runs are trained on it.
    """
    if not str(source).startswith(HF):
        return source
    found = fetch(_data_address(source), sorted(DATA_FILES), "dataset").address
    return source if found is None else Path(f"{HF}{found.name}@{found.revision}")


def pinned_model(source: str) -> str:
    """The model that a user names; one on the Hub at the commit that it has now, as `hf:user/name@COMMIT`."""
    if not source.startswith(HF) or Path(source.removeprefix(HF)).exists():
        return source
    try:
        address = Address.parse(source)
    except HardtailError:  # whoever loads it says what is wrong
        return source
    found = fetch(address, (RECIPE, CONFIG)).address
    return source if found is None else f"{HF}{found.name}@{found.revision}"


def called(source: Path) -> str:
    """What records call a file of problems: its name or, of a data set on the Hub, `user/name@` and its commit."""
    if not str(source).startswith(HF):
        return source.name
    return Snapshot(source, _data_address(source)).name.rstrip("@")


def _data_address(source: str | Path) -> Address:
    """The address of a data set, whose name may end with its file's."""
    text = str(source)
    return Address.parse(
        next((text.removesuffix(f"/{name}") for name in DATA_FILES if text.endswith(f"/{name}")), text)
    )


def data_file(source: str | Path, stem: str, endings: Sequence[str] = (".npz",)) -> Path:
    """The file that a user names: a path, or on the Hub the data set's file of that name.

    The name may end with the file's (`hf:user/name/trace.npz`), where only that tells a trace from a model.
    """
    text = str(source)
    if not text.startswith(HF):
        return Path(source)
    names = [f"{stem}{ending}" for ending in (*endings, ".json")]
    snapshot = fetch(_data_address(text), names, "dataset")
    for name in names[:-1]:
        if (path := snapshot.folder / name).exists():
            return path
    raise HardtailError(f"{text} is a data set without {' or '.join(names[:-1])}; give one that `hardtail push` made")


def upload(address: Address, files: Mapping[str, Path | bytes], *, kind: Kind, message: str, private: bool) -> Address:
    """Add files to a repository in one commit; return the address at this commit. The repository is made if need be."""
    if address.revision is not None:
        raise HardtailError(f"a push makes a new commit on the main branch; leave out @{address.revision}")
    replaced = set(MODEL_FILES) if kind == "model" else DATA_FILES
    with _speaking(address) as api:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        api.create_repo(address.name, repo_type=kind, private=private, exist_ok=True)
        held = set(api.list_repo_files(address.name, repo_type=kind)) - {".gitattributes", CARD}
        ours = RECIPE in held if kind == "model" else held <= DATA_FILES
        if held and not ours:
            raise HardtailError(f"{HF}{address.name} already holds something else ({min(held)}); give a new name")
        changes: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(name, content if isinstance(content, bytes) else str(content))
            for name, content in files.items()
        ]
        changes += [CommitOperationDelete(name) for name in sorted(held & replaced - set(files))]  # of an earlier push
        made = api.create_commit(address.name, changes, commit_message=message, repo_type=kind)
    return Address(address.name, made.oid)


def _has_recipe(address: Address) -> bool:
    with _speaking(address) as api:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        try:
            api.hf_hub_download(address.name, RECIPE, revision=address.revision)
        except LocalEntryNotFoundError:  # without a network, what was downloaded says whose it is
            if isinstance(try_to_load_from_cache(address.name, CONFIG, revision=address.revision), str):
                return False
            raise
        except EntryNotFoundError:
            return False
    return True


@contextmanager
def _speaking(address: Address) -> "Iterator[HfApi]":
    """The Hub's client; what it raises becomes one sentence about the repository."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HTTPError, LocalEntryNotFoundError, RevisionNotFoundError
        from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    except ImportError as error:
        raise HardtailError(f"{HF}{address.name} is on the Hugging Face Hub: pip install 'hardtail[hub]'") from error
    name = f"{HF}{address.name}" + (f"@{address.revision}" if address.revision else "")
    shown = not are_progress_bars_disabled()
    disable_progress_bars()  # the command line shows its own
    try:
        with _warning_once(f"{name}: the Hub does not answer; trying again for up to half a minute"):
            yield HfApi(library_name="hardtail", library_version=__version__)
    except RevisionNotFoundError as error:
        raise HardtailError(f"{name}: the repository has no such revision; give a branch, a tag or a commit") from error
    except LocalEntryNotFoundError as error:
        here = "" if Path(address.name).exists() else f", and there is no folder {address.name} here"
        raise HardtailError(
            f"{name}: the Hub cannot be reached, and no earlier download is complete{here}; connect to the network"
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403, 404):
            raise HardtailError(
                f"{name}: there is no such repository, or you have no access to it; check the name, and log in "
                "(`hf auth login`)"
            ) from error
        raise HardtailError(f"{name}: the Hub answered {status}; try again later") from error
    except HardtailError:
        raise
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        raise HardtailError(f"{name}: {_first_line(error)}") from error
    finally:
        if shown:
            enable_progress_bars()


OF_AN_ATTEMPT = "thrown while requesting", "Retrying in "
"""What the client's messages about a failed attempt say."""


@contextmanager
def _warning_once(sentence: str) -> Iterator[None]:
    """Replace what the client says about each of its attempts by a sentence, with the first; the rest it may say."""
    attempts = 0

    def first(record: logging.LogRecord) -> bool:
        nonlocal attempts
        if not any(words in record.getMessage() for words in OF_AN_ATTEMPT):
            return True
        attempts += 1
        record.msg, record.args = sentence, ()
        return attempts == 1

    logger = logging.getLogger("huggingface_hub.utils._http")
    logger.addFilter(first)
    try:
        yield
    finally:
        logger.removeFilter(first)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
