"""Models of other projects from a folder that `transformers` saved, or from the Hub. Weights are safetensors only."""

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from msgspec import Struct
from safetensors import safe_open

from hardtail.core.errors import HardtailError
from hardtail.core.files import file_hash, read_regular
from hardtail.core.hub import Address, Snapshot, fetch
from hardtail.core.parsing import converted, decoded
from hardtail.core.pretrained import HF, TEMPLATE, Pretrained
from hardtail.core.vocabulary import Vocabulary
from hardtail.models.hf.adapter import HfModel
from hardtail.models.hf.families import Family, family_of, is_plain
from hardtail.models.hf.layout import Layout, Template
from hardtail.models.precision import Precision

HASHED = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "bpe.codes",
    "*.model",
    "*.tiktoken",
    "*.py",
)
"""The files that make a model: configuration, weights, tokenizer, and code that comes with it. Its hash covers these,
and no others are downloaded."""


class _Config(Struct):
    model_type: str = ""


class Found(NamedTuple):
    """A model, which one it is, and what tables call it."""

    model: HfModel
    pretrained: Pretrained
    called: str


class _Read(NamedTuple):
    """What a model's files say, without its weights."""

    config: Any
    family: Family
    layout: Layout


def load_hf(
    name: str,
    vocabulary: Vocabulary,
    template: str = TEMPLATE,
    *,
    device: str = "cpu",
    precision: Precision = "fp32",
    trust_remote_code: bool = False,
) -> Found:
    """The model in a folder that `transformers` saved, or of that name on the Hub (`user/name@REVISION`).

    In bf16 its weights take half the memory.
    """
    with _speaking(name, trust_remote_code) as transformers:
        found = _there(name)
        read = _read(transformers, found.folder, vocabulary, template, trust_remote_code)
        kind = getattr(transformers, read.family.auto_class)
        _refuse_outsized(kind, read.config, found.folder, trust_remote_code)
        inner, report = kind.from_pretrained(
            found.folder,
            output_loading_info=True,
            trust_remote_code=trust_remote_code,
            use_safetensors=True,
            dtype=torch.bfloat16 if precision == "bf16" else torch.float32,
        )
        if missing := sorted(report["missing_keys"]):
            raise HardtailError(
                f"its files have no weights for {missing[0]} ({len(missing)} are missing), which would be random; give "
                "a model that was trained to predict masked tokens"
            )
        model = HfModel(inner.to(device), read.family, read.layout).eval()
        return Found(model, _pretrained(name, found, template), found.name)


def outlined(pretrained: Pretrained, vocabulary: Vocabulary) -> HfModel:
    """The model that a run is trained from, without its weights: parameters that have shapes and no values."""
    with _speaking(pretrained.name, trusted=True) as transformers:
        folder = _there(pretrained.name).folder
        read = _read(transformers, folder, vocabulary, pretrained.template, trusted=False)
        with torch.device("meta"):
            return HfModel(getattr(transformers, read.family.auto_class).from_config(read.config), *read[1:])


def _refuse_outsized(kind: Any, config: Any, folder: Path, trust_remote_code: bool) -> None:
    """Refuse a configuration of far more weights than the files hold, before memory is taken for them."""
    files = [path for path in folder.glob("*.safetensors") if path.is_file()]
    held = 0
    for path in files:
        with safe_open(path, "pt") as opened:
            held += len(opened.keys())
    if not files:  # `transformers` says what is missing
        return
    if (layers := getattr(config, "num_hidden_layers", 0)) > held:
        raise HardtailError(f"its config.json says {layers:,} layers, but its files hold {held:,} tensors")
    with torch.device("meta"):
        outline = kind.from_config(config, trust_remote_code=trust_remote_code)
    size, described = sum(path.stat().st_size for path in files), sum(part.numel() for part in outline.parameters())
    if described > 8 * size:  # a weight takes a bit at least
        raise HardtailError(f"its config.json describes {described:,} weights, but its files have {size:,} bytes")


def identified(name: str, template: str = TEMPLATE) -> Pretrained:
    """Which model a user names for training, by the hash of its files; one on the Hub is downloaded first.

    Its code must be part of `transformers`, so that runs can be read without it.
    """
    Template.parse(template)
    if not name.startswith(HF):
        raise HardtailError(
            f"--model {name}: give {HF} and a folder that transformers saved or a name on the Hub, or zoo:NAME"
        )
    with _speaking(name, trusted=True):
        found = _there(name)
        held = converted(_config(found.folder), _Config, "config.json")
        if not is_plain(held.model_type):
            raise HardtailError(
                f"a model of the type {held.model_type!r} cannot be fine-tuned here; hardtail fine-tunes what "
                "transformers itself has as AutoModelForMaskedLM, such as BERT, RoBERTa and ModernBERT"
            )
        return _pretrained(name, found, template)


def model_hash(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files."""
    digest = hashlib.sha256()
    for path in sorted({found for pattern in HASHED for found in folder.glob(pattern)}):
        digest.update(f"{path.name} {file_hash(path)};".encode())
    return digest.hexdigest()


def _there(name: str) -> Snapshot:
    """The folder that a user names, or what is on the Hub under that name, at one commit."""
    source = name.removeprefix(HF)
    if (folder := Path(source)).is_dir():
        return Snapshot(folder)
    repository, at, revision = source.partition("@")
    if source.startswith(("/", ".", "~")) or repository.count("/") > 1 or (at and not revision):
        raise HardtailError("there is no such folder; give one that transformers saved, or a name on the Hub")
    return fetch(Address(repository, revision or None), HASHED)


def _pretrained(name: str, found: Snapshot, template: str) -> Pretrained:
    """As records name a model: by the folder that the user gave, or by its commit on the Hub."""
    at = name.removeprefix(HF) if found.address is None else f"{found.address.name}@{found.address.revision}"
    return Pretrained(f"{HF}{at}", model_hash(found.folder), template)


def _read(transformers: Any, folder: Path, vocabulary: Vocabulary, template: str, trusted: bool) -> _Read:
    if not trusted and _names_attention_code(_config(folder)):
        raise HardtailError(
            "its config.json names attention code on the Hub, which would be downloaded and run; add "
            "--trust-remote-code if you trust it"
        )
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trusted)
    family = family_of(config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted)
    layout = Layout.of(vocabulary, tokenizer, family.mask_id(tokenizer, config), Template.parse(template))
    return _Read(config, family, layout)


def _config(folder: Path) -> Any:
    """A model's configuration as its file has it."""
    if not (folder / "config.json").is_file():
        raise HardtailError("there is no config.json; give a folder that transformers saved, or a name on the Hub")
    return decoded(read_regular(folder / "config.json"), "config.json")


def _names_attention_code(held: Any) -> bool:
    """Whether a configuration, or one inside it, names attention as `user/name`, which transformers would fetch."""
    if isinstance(held, list):
        return any(map(_names_attention_code, held))
    if not isinstance(held, dict):
        return False
    return any(
        ("attn_implementation" in key and "/" in str(value)) or _names_attention_code(value)
        for key, value in held.items()
    )


@contextmanager
def _speaking(name: str, trusted: bool) -> Iterator[Any]:
    """`transformers`, without its progress bars; what it raises becomes one sentence about the model."""
    name = f"{HF}{name.removeprefix(HF)}"
    try:
        import transformers
    except ImportError as error:
        raise HardtailError(f"{name} needs transformers: pip install 'hardtail[hf]'") from error
    quiet = transformers.utils.logging
    shown, level = quiet.is_progress_bar_enabled(), quiet.get_verbosity()
    try:
        quiet.disable_progress_bar()
        quiet.set_verbosity_error()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning)  # from code that comes with models
            yield transformers
    except HardtailError as error:
        said = str(error)
        raise HardtailError(said if said.startswith(name) else f"{name}: {said}") from error
    except Exception as error:  # of classes of their own, and `tokenizers` raises Exception itself
        hint = "" if trusted else "; code that comes with a model runs only with --trust-remote-code"
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        said = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
        raise HardtailError(f"{name} cannot be loaded: {said}{hint}") from error
    finally:
        quiet.set_verbosity(level)
        if shown:
            quiet.enable_progress_bar()
