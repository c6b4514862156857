"""Answers of varying length in a fixed number of cells: an end mark, then a cycle of padding characters.

With one repeated character a model would be surest of the padding cells; a cycle prevents that (rainbow padding).

Shapes: N instances, L sequence, P longest prompt, A answer cells.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array, Tokens
from hardtail.core.vocabulary import Vocabulary

EOS = "$"
RAINBOW = "abcdefghijklmnop"
PAD = "#"

Codes = NDArray[np.uint8]


def padded(text: str, cells: int) -> str:
    """`text`, the end mark and the cycle; a text that fills all cells has no end mark."""
    cycle = RAINBOW * (cells // len(RAINBOW) + 1)
    return (text + EOS + cycle)[:cells]


def meaning(text: str) -> str:
    """The part of an answer before the end mark."""
    return text.partition(EOS)[0]


def before_end(vocabulary: Vocabulary, answer_NA: Array) -> NDArray[np.bool_]:
    """Which cells of answers come before the end mark."""
    return np.asarray(~np.logical_or.accumulate(answer_NA == vocabulary.id(EOS), axis=1))


def pad_codes(code_NA: Codes, length_N: Array) -> Codes:
    """ASCII codes of answers, the cells from `length_N` on filled as `padded` does."""
    cells = code_NA.shape[1]
    tail = np.frombuffer(padded("", cells).encode(), dtype=np.uint8)
    after_NA = np.arange(cells) - length_N[:, None]
    return np.where(after_NA >= 0, tail[np.maximum(after_NA, 0)], code_NA)


def lay_out(vocabulary: Vocabulary, seq_len: int, prompt_NP: Codes, prompt_len_N: Array, answer_NA: Codes) -> Tokens:
    """`tokens_NL`: each prompt, its answer right behind it, padding to `seq_len`; prompts and answers are codes."""
    n, cells = answer_NA.shape
    code_NL = np.full((n, seq_len), ord(vocabulary.pad), dtype=np.uint8)
    width = min(prompt_NP.shape[1], seq_len)
    code_NL[:, :width] = np.where(np.arange(width) < prompt_len_N[:, None], prompt_NP[:, :width], code_NL[:, :width])
    np.put_along_axis(code_NL, prompt_len_N[:, None].astype(np.int64) + np.arange(cells), answer_NA, axis=1)
    return vocabulary.encode_codes(code_NL)
