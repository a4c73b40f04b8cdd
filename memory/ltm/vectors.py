"""Reading the LTM extension's vectors: a zarr array, format 2, of one row of 768 numbers for each message.

The vectors come from all-mpnet-base-v2. A store with that embedder can take them over instead of making them anew; a
store with any other cannot, and then only their number is of interest. Its chunks are compressed with Blosc, which
`questbook[ltm]` installs a reader for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from questbook.memory.embeddings.embedders import identify
from questbook.memory.errors import ImportFailedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = "all-mpnet-base-v2"


def count_vectors(array: Path) -> int:
    """Return how many vectors there are, 0 if there is no array. Reads no vector.

    Raises:
        ImportFailedError: The array does not say, or is not of this kind.
    """
    return int(_header(array)["shape"][0]) if array.is_dir() else 0


def read_vectors(array: Path) -> NDArray[np.float32]:
    """Read all vectors, by row. Rows of a chunk that is missing are the fill value, as zarr has it.

    Raises:
        ImportFailedError: They cannot be read; the message says why.
    """
    import numpy as np

    header = _header(array)
    (count, width), (rows, columns) = header["shape"], header["chunks"]
    if header.get("order", "C") != "C" or header.get("filters") or columns < width:
        raise ImportFailedError(f"{array}: not laid out as the extension does it ({header!r:.200}).")
    kind = np.dtype(header["dtype"])
    vectors = np.full((count, width), header.get("fill_value") or 0.0, np.float32)
    for number in range(math.ceil(count / rows)):
        chunk = array / f"{number}{header.get('dimension_separator', '.')}0"
        if not chunk.is_file():
            continue
        try:
            whole = np.frombuffer(_decoded(chunk.read_bytes(), header.get("compressor")), kind).reshape(rows, columns)
        except (OSError, ValueError, RuntimeError) as error:
            raise ImportFailedError(f"{chunk} cannot be read: {error}.") from error
        part = vectors[number * rows : (number + 1) * rows]
        part[:] = whole[: len(part), :width]
    return vectors


class KnownVectors(Embeddings):
    """An embedder that has some of its texts' vectors already, and asks the real one for the others.

    Args:
        embedder: The real one; this one has its identity.
        known: Vectors by text.
    """

    def __init__(self, embedder: Embeddings, known: Mapping[str, list[float]]) -> None:
        self._embedder, self._known = embedder, known

    @property
    def identity(self) -> str:
        """The real one's."""
        return identify(self._embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts, those that are known without the model."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        made = dict(zip(missing, self._embedder.embed_documents(missing), strict=True)) if missing else {}
        return [self._known[text] if text in self._known else made[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query by the real one."""
        return self._embedder.embed_query(text)


def _header(array: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads((array / ".zarray").read_text("utf-8"))
        if len(header["shape"]) != 2 or len(header["chunks"]) != 2 or min(*header["shape"], *header["chunks"]) < 0:
            raise ValueError("it has not two dimensions")
        if header["zarr_format"] != 2 or not header["chunks"][0]:
            raise ValueError(f"zarr format {header['zarr_format']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportFailedError(f"{array} is no zarr array of format 2: {error!r}.") from error
    return header


def _decoded(data: bytes, compressor: dict[str, Any] | None) -> bytes:
    if compressor is None:
        return data
    try:
        codecs = import_module("numcodecs")
    except ImportError as error:
        raise ImportFailedError(
            "The vectors are compressed; to take them over, install questbook[ltm]. Without it the messages are "
            "embedded anew."
        ) from error
    return bytes(codecs.get_codec(compressor).decode(data))
