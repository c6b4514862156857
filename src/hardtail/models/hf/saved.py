"""Fine-tuned models of other projects in our files: weights under their own names, and a header that rebuilds the rest.

The header has the configuration and the layout, so that neither the tokenizer nor the original is needed again. Only
classes that `transformers` itself has are made from a file, never code that a file names.
"""

from dataclasses import asdict
from typing import Any

import torch
from msgspec import Struct, json
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.parsing import converted
from hardtail.models.hf.adapter import HfModel
from hardtail.models.hf.families import MaskedLanguageModel, is_plain
from hardtail.models.hf.layout import Layout

_LEFT_OUT = ("auto_map", "quantization_config", "transformers_version", "architectures", "dtype", "torch_dtype")
"""What is no part of the architecture, or would load something else; so are names that begin with an underscore."""


class _Held(Struct):
    model_type: str
    config: dict[str, Any]
    layout: Layout


def header(model: HfModel) -> dict[str, Any]:
    config: dict[str, Any] = json.decode(model.config.to_json_string(use_diff=False))
    return {"hf": {"model_type": config["model_type"], "config": _kept(config), "layout": asdict(model.layout)}}


def rebuilt(held: dict[str, Any], weights: dict[str, Tensor], where: str) -> HfModel:
    """The model of a header with these weights; errors start with `where` they are from."""
    given = converted(held, _Held, where)
    try:
        import transformers
    except ImportError as error:
        raise HardtailError(f"{where} needs transformers: pip install 'hardtail[hf]'") from error
    if not is_plain(given.model_type):
        raise HardtailError(f"{where} holds a model of the type {given.model_type!r}, which transformers does not have")
    try:
        config = transformers.AutoConfig.for_model(given.model_type, **_kept(given.config))
        if getattr(config, "num_hidden_layers", 0) > len(weights):
            raise ValueError("it has fewer tensors than layers")
        with torch.device("meta"):  # a header may ask for a model of any size: compare before making one
            wanted = _shapes(transformers.AutoModelForMaskedLM.from_config(config))
        if wanted != {name: tensor.shape for name, tensor in weights.items()}:
            raise ValueError("the tensors do not fit the configuration that it names")
        inner = transformers.AutoModelForMaskedLM.from_config(config)
    except Exception as error:  # a configuration from a file fails in as many ways as there are models
        raise HardtailError(f"{where} does not hold a model that transformers can make ({error})") from error
    model = HfModel(inner.float(), MaskedLanguageModel(), given.layout)
    return model.put({name: weights[model.name_in_files(name)] for name, _ in model.named_parameters()})


def _shapes(inner: torch.nn.Module) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in inner.named_parameters()}


def _kept(config: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in config.items() if key not in (*_LEFT_OUT, "model_type")}
    return {key: value for key, value in own.items() if not key.startswith("_") and "attn_implementation" not in key}
