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
from hardtail.core.parsing import converted, decoded
from hardtail.core.pretrained import PREFIX, TEMPLATE, Pretrained
from hardtail.core.vocabulary import Vocabulary
from hardtail.models.hf.adapter import HfModel
from hardtail.models.hf.families import family_of, is_plain
from hardtail.models.hf.layout import Layout, Template
from hardtail.models.precision import Precision

HASHED = ("config.json", "tokenizer.json", "*.safetensors")
"""The files that a model's hash covers."""


class _Config(Struct):
    model_type: str = ""


class Found(NamedTuple):
    """A model, and which one it is."""

    model: HfModel
    pretrained: Pretrained


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
    source = name.removeprefix(PREFIX)
    laid_out = Template.parse(template)
    with _speaking(f"{PREFIX}{source}", trust_remote_code) as transformers:
        folder, revision = (source, None) if Path(source).is_dir() else _revision(source)
        how: dict[str, Any] = {"trust_remote_code": trust_remote_code, "revision": revision}
        config = transformers.AutoConfig.from_pretrained(folder, **how)
        if not trust_remote_code and "/" in str(getattr(config, "_attn_implementation", "")):
            raise HardtailError(
                "its config.json names attention code on the Hub, which would be downloaded and run; add "
                "--trust-remote-code if you trust it"
            )
        family = family_of(config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **how)
        layout = Layout.of(vocabulary, tokenizer, family.mask_id(tokenizer, config), laid_out)
        kind = getattr(transformers, family.auto_class)
        if Path(folder).is_dir():
            _refuse_outsized(kind, config, Path(folder), trust_remote_code)
        how |= {"use_safetensors": True, "dtype": torch.bfloat16 if precision == "bf16" else torch.float32}
        inner, report = kind.from_pretrained(folder, output_loading_info=True, **how)
        if missing := sorted(report["missing_keys"]):
            raise HardtailError(
                f"its files have no weights for {missing[0]} ({len(missing)} are missing), which would be random; give "
                "a model that was trained to predict masked tokens"
            )
        model = HfModel(inner.to(device), family, layout).eval()
        held = Path(folder) if revision is None and Path(folder).is_dir() else _snapshot(transformers, folder, revision)
        return Found(model, Pretrained(f"{PREFIX}{source}", model_hash(held), template))


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
    source = name.removeprefix(PREFIX)
    Template.parse(template)
    if not name.startswith(PREFIX):
        raise HardtailError(f"--model {name}: give {PREFIX} and a folder that transformers saved, or a name on the Hub")
    with _speaking(name, trusted=True):
        folder = Path(source)
        if not folder.is_dir():
            from huggingface_hub import snapshot_download

            repository, revision = _revision(source)
            folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[*HASHED, "*.json", "*.txt"]))
        if not (folder / "config.json").is_file():
            raise HardtailError("there is no config.json; give a folder that transformers saved")
        held = converted(decoded(read_regular(folder / "config.json"), "config.json"), _Config, "config.json")
        if not is_plain(held.model_type):
            raise HardtailError(
                f"a model of the type {held.model_type!r} cannot be fine-tuned here; hardtail fine-tunes what "
                "transformers itself has as AutoModelForMaskedLM, such as BERT, RoBERTa and ModernBERT"
            )
        return Pretrained(name, model_hash(folder), template)


def model_hash(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files."""
    digest = hashlib.sha256()
    for path in sorted({found for pattern in HASHED for found in folder.glob(pattern)}):
        digest.update(f"{path.name} {file_hash(path)};".encode())
    return digest.hexdigest()


def _revision(source: str) -> tuple[str, str | None]:
    """The name on the Hub and the revision after an @."""
    name, _, revision = source.partition("@")
    if source.startswith(("/", ".", "~")) or name.count("/") > 1:
        raise HardtailError("there is no such folder; give one that transformers saved, or a name on the Hub")
    return name, revision or None


def _snapshot(transformers: Any, name: str, revision: str | None) -> Path:
    """The folder to which the Hub's files were downloaded."""
    return Path(transformers.utils.hub.cached_file(name, "config.json", revision=revision)).parent


@contextmanager
def _speaking(name: str, trusted: bool) -> Iterator[Any]:
    """`transformers`, without its progress bars; what it raises becomes one sentence about the model."""
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
        raise HardtailError(f"{name}: {error}") from error
    except Exception as error:  # of classes of their own, and `tokenizers` raises Exception itself
        hint = "" if trusted else "; code that comes with a model runs only with --trust-remote-code"
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        said = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
        raise HardtailError(f"{name} cannot be loaded: {said}{hint}") from error
    finally:
        quiet.set_verbosity(level)
        if shown:
            quiet.enable_progress_bar()
