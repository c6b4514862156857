"""How each family of other people's models is called, and where a problem's tokens go; the models are stubs.

Shapes: B batch, S the model's sequence.
"""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hardtail import HardtailError
from hardtail.models.hf.adapter import HfModel, positions
from hardtail.models.hf.families import FAMILIES, LLADA2_BLOCK, MaskedLanguageModel, family_of, is_plain
from hardtail.models.hf.layout import Layout, Placed, Template
from hardtail.models.hf.saved import _kept

IDS, MASK = torch.tensor([[5, 9, 9, 6], [9, 9, 9, 0]]), 9
REAL = torch.tensor([[True] * 4, [True, True, True, False]])


class Model(nn.Module):
    """Remembers how it was called; says a number that names the place."""

    def __init__(self, plain: bool = False) -> None:
        super().__init__()
        self.weight, self.plain, self.calls = nn.Parameter(torch.zeros(1)), plain, list[Any]()
        self.config = SimpleNamespace(model_type="bert", vocab_size=20, max_position_embeddings=50)

    def forward(self, *given: Any, **how: Any) -> Any:
        self.calls.append((given, how))
        ids_BS = given[0] if given else how["input_ids"]
        said_BSW = torch.arange(ids_BS.shape[1]).float()[None, :, None].expand(len(ids_BS), -1, 20)
        return said_BSW if self.plain else SimpleNamespace(logits=said_BSW)


def asked(kind: str, real_BS: Tensor = REAL, ids_BS: Tensor = IDS, plain: bool = False) -> tuple[tuple[Any, ...], Any]:
    """The arguments that a family's model gets."""
    model, family = Model(plain), FAMILIES[kind]() if kind in FAMILIES else MaskedLanguageModel()
    assert family.logits(model, ids_BS, real_BS, MASK).shape == (*ids_BS.shape, 20)
    ((given, how),) = model.calls
    return given, how


def same(one: Any, other: Any) -> bool:
    return torch.equal(one, other) and one.dtype == other.dtype


def test_masked_language_models_and_llada_get_an_attention_mask() -> None:
    given, how = asked("bert")
    assert (given, how.keys()) == ((), {"input_ids", "attention_mask"})
    assert same(how["input_ids"], IDS)
    assert same(how["attention_mask"], REAL.long())
    given, how = asked("llada")
    assert same(given[0], IDS)
    assert same(how["attention_mask"], REAL.long())


def test_dream_gets_a_mask_only_where_there_is_padding() -> None:
    given, how = asked("dream")
    assert same(how["attention_mask"], REAL.long())
    given, how = asked("dream", torch.ones_like(REAL))
    assert how == {"attention_mask": "full"}
    assert same(given[0], IDS)


@pytest.mark.parametrize("plain", [False, True])
def test_mdlm_and_bd3lm_are_told_that_there_is_no_noise(plain: bool) -> None:
    _, how = asked("mdlm", plain=plain)
    assert how.keys() == {"input_ids", "timesteps"}
    assert how["timesteps"].tolist() == [0.0, 0.0]
    _, how = asked("bd3lm", plain=plain)
    assert (how["timesteps"].tolist(), how["sample_mode"]) == ([0.0, 0.0], True)


def test_sedd_is_told_the_noise_that_fits_its_input() -> None:
    given, how = asked("sedd", ids_BS=torch.tensor([[5, 9, 9, 6], [9, 9, 9, 9], [1, 2, 3, 4]]), real_BS=REAL[[0, 0, 0]])
    assert how == {}
    level_B = -torch.log1p(-torch.tensor([0.5, 0.999, 0.0]))
    torch.testing.assert_close(given[1], level_B)


def test_llada_2_sees_its_own_block_and_those_before() -> None:
    size = 2 * LLADA2_BLOCK + 3
    real_BS = torch.arange(size)[None] < torch.tensor([[size], [size - 5]])
    _, how = asked("llada2_moe", real_BS, torch.full((2, size), 7))
    mask_B1SS = how["attention_mask"]
    assert mask_B1SS.shape == (2, 1, size, size)
    assert mask_B1SS.dtype == torch.float32
    for row in range(2):
        for place in (0, LLADA2_BLOCK - 1, LLADA2_BLOCK, size - 1):
            seen = [
                other for other in range(size) if other // LLADA2_BLOCK <= place // LLADA2_BLOCK and real_BS[row, other]
            ]
            shown_S = mask_B1SS[row, 0, place]
            assert (shown_S == 0).nonzero()[:, 0].tolist() == seen
            assert set(shown_S[shown_S != 0].tolist()) <= {torch.finfo(torch.float32).min}


@pytest.mark.parametrize(
    ("kind", "tokenizer", "config", "found"),
    [
        ("llada", 3, 4, 3),
        ("llada", 0, 4, 0),
        ("llada", None, 4, 4),
        ("llada", None, None, None),
        ("sedd", None, None, 19),
        ("mdlm", None, 2, 2),
    ],
)
def test_the_mask_is_the_tokenizers_or_the_configurations_or_the_last_token(
    kind: str, tokenizer: int | None, config: int | None, found: int | None
) -> None:
    held = (
        SimpleNamespace(mask_token_id=config, vocab_size=20) if config is not None else SimpleNamespace(vocab_size=20)
    )
    assert FAMILIES[kind]().mask_id(SimpleNamespace(mask_token_id=tokenizer), held) == found


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "diffusion_gemma"}, "has no mask token that could hide a cell"),
        ({"model_type": "mdlm", "time_conditioning": True}, "conditioned on time"),
        ({"model_type": "bd3lm", "attn_backend": "flex"}, "attn_backend='flex', which reads the sequence twice over"),
        ({"model_type": "gpt2"}, "type 'gpt2' is not a masked language model"),
        ({"model_type": "mine", "auto_map": None}, "type 'mine' is not a masked language model"),
    ],
)
def test_what_would_silently_be_wrong_is_refused(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(HardtailError, match=reason):
        family_of(SimpleNamespace(**config))


@pytest.mark.parametrize("config", [{"model_type": "mdlm"}, {"model_type": "BD3LM", "attn_backend": "sdpa"}])
def test_a_family_goes_by_its_type_in_any_case(config: dict[str, Any]) -> None:
    assert type(family_of(SimpleNamespace(**config))) is FAMILIES[config["model_type"].lower()]
    assert is_plain("bert")
    assert not is_plain(config["model_type"])


# -- the text around a problem ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{prompt}", ("", "", "")),
        ("{prompt}{answer}", ("", "", "")),
        ("Add: {prompt}\\n{answer}.", ("Add: ", "\n", ".")),
        ("a{prompt} b", ("a", " b", "")),
    ],
)
def test_a_template_says_what_is_around(text: str, parts: tuple[str, str, str]) -> None:
    assert Template.parse(text) == Template(*parts)


@pytest.mark.parametrize(
    "text",
    ["", "{answer}", "{answer}{prompt}", "{prompt}{prompt}", "{prompt}{answer}{answer}", "{prompt}{answer}{prompt}"],
)
def test_a_template_with_too_much_or_too_little_is_refused(text: str) -> None:
    with pytest.raises(HardtailError, match=r"must have \{prompt\} once and"):
        Template.parse(text)


@pytest.mark.parametrize("sizes", [(0, 0, 0), (2, 0, 0), (0, 3, 0), (0, 0, 2), (1, 2, 3)])
def test_every_token_goes_where_the_layout_says(sizes: tuple[int, int, int]) -> None:
    """Against lists: before, prompt, between, answer, after, padding; for prompts of different lengths."""
    texts = [tuple(range(100 * (part + 1), 100 * (part + 1) + size)) for part, size in enumerate(sizes)]
    layout = Layout(tuple(range(50, 60)), 58, 59, *texts)
    assert layout.length(8) == 8 + sum(sizes)
    assert layout.highest == max([59, *(number for text in texts for number in text)])
    tokens_BL, prompt_B1 = torch.arange(16).reshape(2, 8) % 10, torch.tensor([[4], [2]])
    placed = Placed(layout)
    ids_BS, real_BS = placed(tokens_BL, prompt_B1, 3)
    at_BS = placed.answer_at(prompt_B1, 3)
    for row, prompt in enumerate((4, 2)):
        ours = [50 + int(token) for token in tokens_BL[row]]
        wanted = [*texts[0], *ours[:prompt], *texts[1], *ours[prompt : prompt + 3], *texts[2]]
        padding = [59] * (8 + sum(sizes) - len(wanted))
        assert ids_BS[row].tolist() == wanted + padding
        assert real_BS[row].tolist() == [True] * len(wanted) + [False] * len(padding)
        assert ids_BS[row, at_BS[row]].tolist() == ours[prompt : prompt + 3]


@pytest.mark.parametrize(
    ("special", "first"), [({"cls": 1, "bos": 2}, (1,)), ({"bos": 2}, (2,)), ({"cls": 0, "bos": 2}, (0,)), ({}, ())]
)
def test_a_sequence_begins_as_every_text_of_the_model(special: dict[str, int], first: tuple[int, ...]) -> None:
    from hardtail.core.vocabulary import Vocabulary
    from tests.test_token_table import PLAIN, Tokenizer

    tokenizer = Tokenizer(PLAIN | {"x": [7]}, **special)
    layout = Layout.of(Vocabulary("01+"), tokenizer, 8, Template("x", "", "x"))
    assert layout == Layout((4, 5, 6, 8, 9), 8, 9, (*first, 7), (), (7,))


# -- a model as a network of ours -------------------------------------------------------------------------------------


def adapted(kind: str = "bert", before: tuple[int, ...] = (1,)) -> HfModel:
    family = FAMILIES[kind]() if kind in FAMILIES else MaskedLanguageModel()
    return HfModel(Model(), family, Layout(tuple(range(10)), 8, 9, before))


@pytest.mark.parametrize(("kind", "moved"), [("bert", 0), ("dream", -1)])
def test_logits_are_those_of_the_answer_cells(kind: str, moved: int) -> None:
    model, tokens_BL = adapted(kind), torch.zeros((2, 6), dtype=torch.int64)
    at_BA = torch.tensor([[3, 4], [2, 3]])
    for at, wanted in ((at_BA, [[4, 5], [3, 4]]), (slice(3, 5), [[4, 5], [4, 5]])):
        said_BAV = model(tokens_BL, at)
        assert said_BAV.shape == (2, 2, 10)
        assert said_BAV[..., 0].tolist() == [[place + moved for place in row] for row in wanted]


def test_what_a_family_cannot_do_is_refused() -> None:
    tokens_BL, uneven_BA = torch.zeros((2, 6), dtype=torch.int64), torch.tensor([[3, 4], [2, 3]])
    with pytest.raises(HardtailError, match="MDLM takes no attention mask, so prompts of different lengths"):
        adapted("mdlm")(tokens_BL, uneven_BA)
    adapted("mdlm")(tokens_BL, uneven_BA[:1].expand(2, -1))
    with pytest.raises(HardtailError, match="Dream predicts each token at the position before it"):
        adapted("dream", before=())(tokens_BL, slice(0, 2))
    adapted("dream")(tokens_BL, slice(0, 2))
    with pytest.raises(HardtailError, match="attention in another precision is for our transformer only"):
        adapted()(tokens_BL, slice(2, 4), torch.bfloat16)


@pytest.mark.parametrize(
    ("config", "vocabulary", "length", "reason"),
    [
        ({}, 10, 49, None),
        ({}, 10, 50, "it reads at most 50 tokens, and a problem in its template takes 51"),
        ({}, 11, 5, "it was set up for 10 tokens, and the task has 11"),
        ({"vocab_size": 9}, 10, 5, "its tokenizer has the id 9, but the model knows 9 tokens"),
        ({"vocab_size": 10}, 10, 5, None),
        ({"vocab_size": None, "max_position_embeddings": None}, 10, 5000, None),
    ],
)
def test_a_task_that_a_model_has_no_room_for(
    config: dict[str, Any], vocabulary: int, length: int, reason: str | None
) -> None:
    model = adapted()
    vars(model.config).update(config)
    assert model.fault(vocabulary, length) == reason


@pytest.mark.parametrize(
    ("config", "room"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512, "max_sequence_length": 9}, 512),
        ({"model_type": "llada", "max_sequence_length": 4096, "model_length": 7}, 4096),
        ({"model_type": "mdlm", "model_length": 1024}, 1024),
        ({"model_type": "mdlm", "model_length": "long"}, None),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "roberta"}, None),
    ],
)
def test_how_many_tokens_a_model_reads_at_once(config: dict[str, Any], room: int | None) -> None:
    assert positions(SimpleNamespace(**config)) == room


def test_a_header_keeps_the_architecture_and_nothing_that_would_load_something_else() -> None:
    held = {"hidden_size": 8, "auto_map": {}, "_name": "x", "text_attn_implementation": "a/b", "model_type": "bert"}
    assert _kept(held) == {"hidden_size": 8}


def test_code_that_comes_with_a_model_may_name_it_a_masked_language_model() -> None:
    named = {"AutoModelForMaskedLM": "code.Model"}
    assert family_of(SimpleNamespace(model_type="mine", auto_map=named)).auto_class == "AutoModelForMaskedLM"
    for auto_map in (None, {}, {"AutoModel": "code.Model"}):
        with pytest.raises(HardtailError, match="is not a masked language model"):
            family_of(SimpleNamespace(model_type="mine", auto_map=auto_map))
