"""Models of other projects as denoisers: equal to a plain forward and gather, whatever the batch and the padding."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import normalizers
from torch import Tensor

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.types import Instances
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.hf.adapter import HfModel
from hardtail.models.hf.families import Family, family_of
from hardtail.models.hf.layout import Layout, Template
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from tests import hf_toys
from tests.wide_toys import RunningSums

ADDITION = hardtail.task("addition", digits=4)
LISTOPS = hardtail.task("listops")
NEEDS_ONE_LENGTH = ("mdlm", "bd3lm", "sedd")


class Toy(ModelDenoiser):
    """A denoiser, with what tests look at inside it."""

    def __init__(self, model: HfModel, mask_id: int) -> None:
        super().__init__(model, mask_id)
        self.inner: Any = model.inner
        self.family: Family = model.family
        self.id_V = model.id_V
        self.their_mask = model.layout.mask


def made(family: str, task: Any = ADDITION, template: str = "{prompt}{answer}", **also: Any) -> Toy:
    tokens = hf_toys.tokenizer(**also)
    model = hf_toys.FAMILIES[family](len(tokens))
    layout = Layout.of(task.vocabulary, tokens, tokens.mask_token_id, Template.parse(template))
    return Toy(HfModel(model, family_of(model.config), layout), task.vocabulary.mask_id)


def drawn(task: Any = ADDITION, n: int = 6) -> Instances:
    return task.sample(n, Streams(0).named("hf"))


def only_our_tokens(denoiser: Toy) -> Toy:
    """The same toy, which can say no other tokens than the task's, and not the mask either."""
    model: Any = denoiser.inner
    other = torch.ones(len(hf_toys.tokenizer()), dtype=torch.bool)
    other[denoiser.id_V] = False
    other[denoiser.their_mask] = True
    model.out.bias.data.masked_fill_(other, -1e4)
    return denoiser


def hidden(instances: Instances, mask_id: int, every: int = 2) -> tuple[Tensor, Tensor]:
    """Sequences with every other answer cell hidden, and where the answer cells are."""
    tokens_NL, at_NA = instances.tokens_NL.astype(np.int64), instances.answer_at_NA
    np.put_along_axis(tokens_NL, at_NA[:, ::every], mask_id, axis=1)
    return torch.from_numpy(tokens_NL), torch.from_numpy(at_NA)


def obvious(denoiser: Toy, text: str, answer: list[int], tokens: Any) -> Tensor:
    """One row through the model itself: [CLS], text, answer; the logits of our vocabulary at the answer."""
    ids = [tokens.cls_token_id, *(tokens.convert_tokens_to_ids(list(text))), *answer]
    batch = torch.tensor([ids])
    logits = denoiser.family.logits(
        denoiser.inner, batch, torch.ones_like(batch, dtype=torch.bool), tokens.mask_token_id
    )
    start = len(ids) - len(answer) - denoiser.family.shifted
    return logits[0, start : start + len(answer), denoiser.id_V]


@pytest.mark.parametrize("family", hf_toys.FAMILIES)
def test_logits_are_those_of_a_plain_forward_and_gather(family: str) -> None:
    denoiser, tokens = made(family, template="add {prompt}\n{answer}"), hf_toys.tokenizer()
    instances = drawn()
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id)
    found_BAV = denoiser.logits(tokens_BL, at_BA)
    assert found_BAV.std() > 0.01, "an output layer of zeros would make any comparison pass"
    for i in range(len(instances)):
        text = ADDITION.vocabulary.decode(instances.prompt(i))
        answer = denoiser.id_V[tokens_BL[i, at_BA[i]]].tolist()
        torch.testing.assert_close(found_BAV[i], obvious(denoiser, f"add {text}\n", answer, tokens))


@pytest.mark.parametrize("family", hf_toys.FAMILIES)
def test_a_neighbour_on_the_right_matters_and_padding_and_batch_do_not(family: str) -> None:
    task = ADDITION if family in NEEDS_ONE_LENGTH else LISTOPS
    denoiser, instances = made(family, task), drawn(task)
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id)
    together = denoiser.logits(tokens_BL, at_BA)
    for i in range(len(instances)):
        torch.testing.assert_close(denoiser.logits(tokens_BL[i : i + 1], at_BA[i : i + 1])[0], together[i])
    changed_BL = tokens_BL.scatter(1, at_BA[:, 1:2], denoiser.mask_id)
    first_BV = (together - denoiser.logits(changed_BL, at_BA))[:, 0]
    sees_B = first_BV.abs().amax(-1) > 1e-6  # all, unless a block of LLaDA 2 ends between the two cells
    assert int(sees_B.sum()) >= len(sees_B) - 1, "the first answer cell does not see the one after it"


def test_an_off_by_one_shift_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardtail.models.hf.families.Dream.shifted", False)
    with pytest.raises(AssertionError):
        test_logits_are_those_of_a_shifted_model()


def test_logits_are_those_of_a_shifted_model() -> None:
    """Dream's own code moves its logits one position on before it reads them."""
    denoiser, instances = made("dream"), drawn()
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id)
    ids = torch.cat([torch.full((len(tokens_BL), 1), 2), denoiser.id_V[tokens_BL]], 1)
    logits = denoiser.inner(ids, attention_mask="full").logits
    moved = torch.cat([logits[:, :1], logits[:, :-1]], 1)
    expected = moved.gather(1, (at_BA + 1)[..., None].expand(-1, -1, moved.shape[-1]))[..., denoiser.id_V]
    torch.testing.assert_close(denoiser.logits(tokens_BL, at_BA), expected)


# -- the families' own generation -------------------------------------------------------


def llada_generate(model: Any, ids: Tensor, start: int, length: int, block: int, steps: int, mask_id: int) -> Tensor:
    """LLaDA's published algorithm, greedy: blocks from left to right; in every step the most probable token at every
    masked cell of the block, of which the step's share with the highest probability stays."""
    x = ids.clone()
    per_block = steps // (length // block)
    for b in range(length // block):
        low, high = start + b * block, start + (b + 1) * block
        count = int((x[:, low:high] == mask_id).sum(1)[0])
        shares = [count // per_block + (step < count % per_block) for step in range(per_block)]
        for share in shares:
            logits = model(x).logits
            best = logits.argmax(-1)
            confidence = logits.double().softmax(-1).gather(-1, best[..., None])[..., 0]
            confidence = torch.where(x == mask_id, confidence, -torch.inf)
            confidence[:, high:] = -torch.inf
            for row in range(len(x)):
                chosen = confidence[row].topk(share).indices
                x[row, chosen] = best[row, chosen]
    return x[:, start : start + length]


@pytest.mark.parametrize(("block", "steps"), [(8, 8), (8, 3), (4, 8), (4, 6), (4, 2), (1, 8)])
def test_a_greedy_decode_is_lladas_own_generation(block: int, steps: int) -> None:
    """Full (one block) and in blocks; the toy can say no other tokens than the task's, so both choose from the same."""
    task = hardtail.task("addition", digits=7)
    denoiser, instances = made("llada", task), drawn(task, 12)
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id, every=1)
    ids = torch.cat([torch.full((len(tokens_BL), 1), 2), denoiser.id_V[tokens_BL]], 1)
    only_our_tokens(denoiser)
    start, cells = int(at_BA[0, 0]) + 1, at_BA.shape[1]
    expected = llada_generate(denoiser.inner, ids, start, cells, block, steps, denoiser.their_mask)
    policy = policy_named("top1" if block == cells else f"block,size={block}")
    trace = decode(denoiser, instances, policy, Decoding(Commit(steps=steps)))
    assert (denoiser.id_V[torch.from_numpy(trace.answer_NA.astype(np.int64))] == expected).all()


def dream_generate(model: Any, x: Tensor, steps: int, mask_id: int, score: Callable[[Tensor], Tensor]) -> Tensor:
    """Dream's published algorithm, greedy: its times, its shifted logits, its number of tokens in every step."""
    x, times = x.clone(), torch.linspace(1, 1e-3, steps + 1)
    for i in range(steps):
        masked = x == mask_id
        logits = model(x, attention_mask="full").logits
        p = torch.cat([logits[:, :1], logits[:, :-1]], 1)[masked].softmax(-1)
        count = masked.sum() / len(x)
        number = int(count * (1 - times[i + 1] / times[i])) if i < steps - 1 else int(count)
        confidence = torch.full(x.shape, -torch.inf).masked_scatter(masked, score(p))
        best = x.masked_scatter(masked, p.argmax(-1))
        if number:
            chosen = confidence.topk(number).indices
            x = x.scatter(1, chosen, best.gather(1, chosen))
    return x


@pytest.mark.parametrize("steps", [3, 5, 8, 12])
@pytest.mark.parametrize(
    ("name", "score"),
    [("top1", lambda p: p.amax(-1)), ("entropy", lambda p: (p * (p + 1e-10).log()).sum(-1))],
)
def test_a_greedy_decode_is_dreams_own_generation(name: str, score: Callable[[Tensor], Tensor], steps: int) -> None:
    task = hardtail.task("addition", digits=7)
    denoiser, instances = only_our_tokens(made("dream", task)), drawn(task, 12)
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id, every=1)
    ids = torch.cat([torch.full((len(tokens_BL), 1), 2), denoiser.id_V[tokens_BL]], 1)
    expected = dream_generate(denoiser.inner, ids, steps, denoiser.their_mask, score)[:, int(at_BA[0, 0]) + 1 :]
    trace = decode(denoiser, instances, policy_named(name), Decoding(Commit(steps=steps, schedule="dream")))
    assert (denoiser.id_V[torch.from_numpy(trace.answer_NA.astype(np.int64))] == expected).all()


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_table_that_merges_two_tokens_is_refused() -> None:
    tokens = hf_toys.tokenizer(normalizer=normalizers.Replace("1", "7"))
    with pytest.raises(HardtailError, match=r"the same id, \d+, for '1' and '7'"):
        Layout.of(ADDITION.vocabulary, tokens, tokens.mask_token_id, Template())


def test_the_first_position_of_a_shifted_model_is_refused() -> None:
    denoiser = made("dream", start=False)
    tokens_BL = torch.full((2, 5), denoiser.mask_id)
    with pytest.raises(HardtailError, match="cannot predict the first"):
        denoiser.logits(tokens_BL, torch.arange(5).expand(2, -1))


@pytest.mark.parametrize(("family", "reason"), [("llada2", "four-dimensional"), ("dream", "moved by one position")])
def test_a_plain_call_that_would_be_silently_wrong_is_refused(family: str, reason: str) -> None:
    with pytest.raises(HardtailError, match=reason):
        hardtail.load(hf_toys.FAMILIES[family](20), ADDITION)


def test_a_vocabulary_of_words_is_one_to_one_too() -> None:
    tokens = hf_toys.tokenizer(words=RunningSums.vocabulary.characters)
    layout = Layout.of(RunningSums.vocabulary, tokens, tokens.mask_token_id, Template())
    assert tokens.convert_ids_to_tokens(list(layout.ours[:3])) == ["n0", "n1", "n2"]
    model = HfModel(hf_toys.bert(len(tokens)), family_of(hf_toys.bert(len(tokens)).config), layout)
    subject = hardtail.load(ModelDenoiser(model, RunningSums.vocabulary.mask_id), RunningSums())
    assert hardtail.evaluate(subject, policies=["top1"], strata=["natural"], n=2).accuracies[0].n == 2


def test_text_after_the_answer_comes_right_after_it() -> None:
    """Whatever the length of a prompt; padding follows."""
    task, tokens = LISTOPS, hf_toys.tokenizer()
    denoiser = made("bert", task, template="a {prompt}: {answer} z.")
    instances = drawn(task)
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id)
    model: Any = denoiser.model
    ids_BS, real_BS = model.placed(tokens_BL, at_BA[:, :1], at_BA.shape[1])
    for i in range(len(instances)):
        answer = denoiser.id_V[tokens_BL[i, at_BA[i]]].tolist()
        before = f"a {task.vocabulary.decode(instances.prompt(i))}: "
        wanted = [tokens.cls_token_id, *tokens.convert_tokens_to_ids(list(before)), *answer]
        wanted += tokens.convert_tokens_to_ids(list(" z."))
        assert ids_BS[i][real_BS[i]].tolist() == wanted


@pytest.mark.parametrize("family", NEEDS_ONE_LENGTH)
def test_models_without_an_attention_mask_see_no_padding(family: str) -> None:
    """They would attend to it, and SEDD's noise level would count it."""
    denoiser, instances, tokens = made(family, LISTOPS), drawn(LISTOPS), hf_toys.tokenizer()
    tokens_BL, at_BA = hidden(instances, denoiser.mask_id)
    for i in range(len(instances)):
        text, answer = LISTOPS.vocabulary.decode(instances.prompt(i)), denoiser.id_V[tokens_BL[i, at_BA[i]]].tolist()
        found_AV = denoiser.logits(tokens_BL[i : i + 1], at_BA[i : i + 1])[0]
        torch.testing.assert_close(found_AV, obvious(denoiser, text, answer, tokens))
