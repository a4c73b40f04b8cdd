"""BERT in numpy: texts to unit vectors, without torch.

After Devlin et al. 2018 ("BERT"), with the mean of the tokens as in Reimers and Gurevych 2019 ("Sentence-BERT").
A model is a directory with `model.safetensors` (weights in float32) and `vocab.txt` (one word piece per line).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from questbook.memory.errors import EmbeddingError

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer

Floats = NDArray[np.float32]

_EPSILON = 1e-12  # of the layer norms, as in the published models
_AT_ONCE = 32  # texts of one pass; more need more memory and are not faster
_MASKED = -1e9  # added to the attention to tokens that only fill a row
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)  # Abramowitz and Stegun 7.1.26


class BertEncoder:
    """A BERT model of so many attention heads, with its tokenizer; of a text, the `longest` first tokens count."""

    def __init__(self, directory: Path, *, heads: int, longest: int) -> None:
        self._tokenizer = load_tokenizer(directory / "vocab.txt", longest)
        self._heads = heads
        self._weights = read_safetensors(directory / "model.safetensors")
        self._layers = 1 + max(int(name.split(".")[2]) for name in self._weights if name.startswith("encoder.layer."))
        # Query, key and value are made one matrix: one large product is faster than three.
        for layer, kind in product(range(self._layers), ("weight", "bias")):
            name = f"encoder.layer.{layer}.attention.self."
            parts = [self._weights.pop(f"{name}{part}.{kind}") for part in ("query", "key", "value")]
            self._weights[f"{name}{kind}"] = np.concatenate(parts)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors of some texts, shape (texts, dimensions)."""
        # `tokenizers` refuses what is no valid unicode.
        tokens = [self._tokenizer.encode(text.encode("utf-8", "ignore").decode()).ids for text in texts]
        vectors = np.empty((len(texts), self._weights["embeddings.word_embeddings.weight"].shape[1]), np.float32)
        # Texts of similar length share a pass, because a pass costs what its longest text costs.
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        for first in range(0, len(order), _AT_ONCE):
            places = order[first : first + _AT_ONCE]
            vectors[places] = self._embed_tokens([tokens[place] for place in places])
        return vectors

    def _embed_tokens(self, tokens: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, tokens))
        numbers = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros((len(tokens), longest), np.float32)
        for row, text in enumerate(tokens):
            numbers[row, : len(text)] = text
            mask[row, : len(text)] = 1.0
        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][numbers]
        hidden = hidden + weights["embeddings.position_embeddings.weight"][:longest]
        hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._normalize(hidden, "embeddings.LayerNorm")
        bias = (1.0 - mask)[:, None, None, :] * np.float32(_MASKED)
        for layer in range(self._layers):
            hidden = self._layer(hidden, bias, f"encoder.layer.{layer}.")
        mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        unit: Floats = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

    def _layer(self, hidden: Floats, bias: Floats, name: str) -> Floats:
        texts, length, width = hidden.shape
        joined = self._dense(hidden, f"{name}attention.self.")
        shape = (texts, length, 3, self._heads, width // self._heads)
        query, key, value = joined.reshape(shape).transpose(2, 0, 3, 1, 4)
        attention = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self._heads)) + bias
        attention = np.exp(attention - attention.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        mixed = (attention @ value).transpose(0, 2, 1, 3).reshape(texts, length, width)
        attended = self._dense(mixed, f"{name}attention.output.dense.")
        hidden = self._normalize(hidden + attended, f"{name}attention.output.LayerNorm")
        inner = _gelu(self._dense(hidden, f"{name}intermediate.dense."))
        return self._normalize(hidden + self._dense(inner, f"{name}output.dense."), f"{name}output.LayerNorm")

    def _dense(self, inputs: Floats, name: str) -> Floats:
        weight, bias = self._weights[f"{name}weight"], self._weights[f"{name}bias"]
        outputs: Floats = inputs.reshape(-1, inputs.shape[-1]) @ weight.T + bias
        return outputs.reshape(*inputs.shape[:-1], -1)

    def _normalize(self, inputs: Floats, name: str) -> Floats:
        centered = inputs - inputs.mean(-1, keepdims=True)
        deviation = np.sqrt((centered * centered).mean(-1, keepdims=True) + _EPSILON)
        outputs: Floats = centered / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return outputs


def load_tokenizer(vocabulary: Path, longest: int) -> BertWordPieceTokenizer:
    """Make the word-piece tokenizer of uncased BERT models (Wu et al. 2016), which cuts off after so many tokens."""
    try:
        from tokenizers import BertWordPieceTokenizer
    except ImportError as error:
        install = "install it with `pip install 'questbook[minilm]'`"
        raise EmbeddingError(f"this embedder needs the package tokenizers: {install}") from error
    pieces = vocabulary.read_text(encoding="utf-8").split("\n")
    tokenizer = BertWordPieceTokenizer({piece: number for number, piece in enumerate(pieces) if piece}, lowercase=True)
    tokenizer.enable_truncation(longest)
    return tokenizer


def read_safetensors(file: Path) -> dict[str, Floats]:
    """Read the float32 tensors of a safetensors file: a length, a JSON header, then the numbers, little-endian."""
    content = np.fromfile(file, dtype=np.uint8)
    length = int.from_bytes(content[:8].tobytes(), "little")
    header, data = json.loads(content[8 : 8 + length].tobytes()), content[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[start:end].tobytes(), "<f4").reshape(entry["shape"])
    return tensors


def _gelu(inputs: Floats) -> Floats:
    """Return x · Φ(x), with the error function of Abramowitz and Stegun 7.1.26, whose error is at most 1.5e-7."""
    scaled = np.abs(inputs) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + np.float32(0.3275911) * scaled)
    series = np.zeros_like(t)
    for factor in _ERF:
        series = series * t + np.float32(factor)
    erf = np.copysign(1.0 - series * t * np.exp(-scaled * scaled), inputs)
    outputs: Floats = np.float32(0.5) * inputs * (1.0 + erf)
    return outputs
