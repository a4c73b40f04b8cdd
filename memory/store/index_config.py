"""The `index` that a store is opened with: what of a value is embedded and what words are indexed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypedDict, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings

from questbook.memory.embeddings.embedders import AUTO, announced_dims, choose_embeddings, load_embeddings
from questbook.memory.errors import EmbedderChangedError, StoreConfigError
from questbook.types import JSON

if TYPE_CHECKING:
    from langgraph.store.base.embed import AEmbeddingsFunc, EmbeddingsFunc

_WHOLE_ITEM = ["$"]  # what LangGraph's stores embed if an index names no fields


class StoreIndex(TypedDict, total=False):
    """LangGraph's `IndexConfig`, in which everything may be left out, with the settings of the word index."""

    embed: "Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None"
    """An embedder, a function, or a name for `load_embeddings`; None for no vectors.

    `"auto"`: the embedder that made the file's vectors; in a new file MiniLM, if its weights and its tokenizer are
    here, else `HashEmbeddings`."""
    dims: int
    """Length of the vectors; if left out, the embedder says it."""
    fields: list[str] | None
    """Paths in the value whose texts are embedded, each as a vector of its own; default `["$"]`, the whole value."""
    lexical: Mapping[str, float] | Literal[False] | None
    """Paths whose words are indexed, with their weights; default: the fields, each with weight 1. False: none.

    If a record has its neighbours' texts, it can be found by them: `{"text": 1.0, "before": 0.6, "after": 0.5}`."""
    weights: Mapping[str, float]
    """Weights of "dense" and "lexical" in the order of the hits; 0 turns one off.

    Default: 1.0 each; an embedder may give its cosine another weight by its attribute `fusion_weight`."""


DEFAULT_INDEX: StoreIndex = {"embed": AUTO}
"""The file's own embedder and the words of the whole value."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """A valid index configuration."""

    described: JSON  # what `FaissStore.index_config` shows, as LangGraph's stores show theirs
    embeddings: Embeddings | None  # the embedder; None for no vectors, and while `is_auto` waits for the file
    is_auto: bool  # whether the file decides which embedder it is
    dims: int | None  # length of the vectors, if it is known before the embedder was asked
    fields: tuple[str, ...]  # paths whose texts are embedded
    columns: dict[str, float]  # weights of the paths whose words are indexed; empty for no word index
    weights: dict[str, float]  # weights of "dense" and "lexical" in the order of the hits

    def of_file(self, file: Path, recorded: str | None) -> Self:
        """Return the settings with the embedder that a file records (None: no vectors yet), if the file decides.

        Raises:
            EmbedderChangedError: If `dims` is not what that embedder makes.
            EmbeddingError: If it cannot be used here.
        """
        if not self.is_auto:
            return self
        index = {**self.described, "embed": choose_embeddings(file, recorded)}
        return replace(cast("Self", read_index(cast("StoreIndex", index))), is_auto=True)


def read_index(index: StoreIndex | IndexConfig) -> IndexSettings:
    """Read what a store was opened with.

    Raises:
        StoreConfigError: If a setting is wrong; the message names it.
        EmbedderChangedError: If `dims` is not what the embedder makes.
        EmbeddingError: If the embedder cannot be loaded.
    """
    settings = cast("StoreIndex", index)
    if unknown := set(settings) - set(StoreIndex.__annotations__) - {"__tokenized_fields"}:
        raise StoreConfigError(
            f"index has no setting {sorted(unknown)}; it has {', '.join(StoreIndex.__annotations__)}"
        )
    fields = _fields(settings.get("fields"))
    embed = settings.get("embed")
    is_auto = embed == AUTO
    embed = None if is_auto else embed
    embeddings = load_embeddings(embed) if isinstance(embed, str) else embed and ensure_embeddings(embed)
    dims = _dims(settings.get("dims"), announced_dims(embeddings))
    columns = _columns(settings.get("lexical"), fields)
    defaults = {"dense": float(getattr(embeddings, "fusion_weight", 1.0)), "lexical": 1.0}
    weights = _weights(settings.get("weights") or {}, defaults)
    described: JSON = {**settings, "fields": list(fields)}
    if dims is not None:
        described["dims"] = dims
    return IndexSettings(described, embeddings or None, is_auto, dims, tuple(fields), columns, weights)


def _fields(fields: Sequence[str] | None) -> list[str]:
    fields = fields or _WHOLE_ITEM
    if isinstance(fields, str) or not all(isinstance(field, str) and field for field in fields):
        raise StoreConfigError(f'index["fields"] must be a list of paths, for example ["text"]; got {fields!r}')
    return list(dict.fromkeys(fields))


def _dims(dims: object, announced: int | None) -> int | None:
    if dims is None:
        return announced
    if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
        raise StoreConfigError(f'index["dims"] must be a positive number, got {dims!r}')
    if announced is not None and dims != announced:
        raise EmbedderChangedError(
            f'index["dims"] is {dims}, but the embedder makes vectors of {announced} dimensions: '
            "give the one that the model has, or leave dims out"
        )
    return dims


def _columns(lexical: object, fields: Sequence[str]) -> dict[str, float]:
    if lexical is None:
        return dict.fromkeys(fields, 1.0)
    if lexical is False:
        return {}
    if not isinstance(lexical, Mapping) or not all(isinstance(path, str) and path for path in lexical):
        raise StoreConfigError(
            f'index["lexical"] must give weights by path, for example {{"text": 1.0}}, or be False; got {lexical!r}'
        )
    return {path: _weight(lexical, path, 1.0) for path in lexical}


def _weights(weights: Mapping[str, object], defaults: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(weights, Mapping) or not set(weights) <= set(defaults):
        raise StoreConfigError(f'index["weights"] may have {", ".join(defaults)}; got {weights!r}')
    return {name: _weight(weights, name, default) for name, default in defaults.items()}


def _weight(weights: Mapping[str, object], name: str, default: float) -> float:
    weight = weights.get(name, default)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < float("inf"):
        raise StoreConfigError(f"the weight of {name!r} must be a number, 0 or more; got {weight!r}")
    return float(weight)
