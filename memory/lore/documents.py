"""Documents: files of text, Markdown, HTML, CSV and PDF, read into pieces that know where they stood.

LangChain's loaders read and its splitters cut. What they cannot tell is told here: why a file cannot be read, in words
for the person who gave it.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from questbook.memory.errors import UnreadableDocumentError

if TYPE_CHECKING:
    from langchain_core.documents import Document

PIECE_CHARS = 800
"""Longest piece: about 200 tokens, so that four of them fill the prompt's default share for memories."""

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that is read."""

_ENDS = ["\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ", ""]  # where to cut, the best first
_HEADINGS = [("#" * level, str(level)) for level in range(1, 7)]
_LEVELS = [level for _, level in _HEADINGS]
_WORDS_ONLY = ["a", "b", "em", "i", "img", "strong"]  # tags of which the text stays
_INSTALL = "Install the extra `lore`, in the project's directory: pip install -c constraints.txt -e '.[lore]'"
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Piece(NamedTuple):
    """A piece of a document.

    Attributes:
        text: What it says; at most `PIECE_CHARS` characters and its headings.
        place: Where it stood: {"page": number from 1} in a PDF, {"row": number from 1, below the header} in a CSV
            file, {"section": its headings} in Markdown and HTML, nothing in plain text.
    """

    text: str
    place: dict[str, Any]


def read_document(path: Path, data: bytes) -> list[Piece]:
    """Read a document.

    Args:
        path: The file; its suffix says what kind it is.
        data: Its bytes, as `read_bytes` gives them.

    Raises:
        UnreadableDocumentError: It is of a kind that is not known, broken, encrypted, without text, in another
            encoding than it should be, or a library is missing that reads it.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UnreadableDocumentError(f"{_kind(path)}; what can be read: {', '.join(_READERS)}")
    if not data.strip():
        raise UnreadableDocumentError("the file is empty")
    try:
        pieces = [_cleaned(piece) for piece in reader(path, data)]
    except UnreadableDocumentError:
        raise
    except ImportError as error:
        raise UnreadableDocumentError(f"{error.name or 'a library'} is not installed. {_INSTALL}") from error
    except Exception as error:  # parsers of broken files raise anything
        raise UnreadableDocumentError(_reason(error)) from error
    pieces = [piece for piece in pieces if piece.text]
    if not pieces:
        scanned = "; scanned pages need text recognition (OCR) first" if path.suffix.lower() == ".pdf" else ""
        raise UnreadableDocumentError(f"there is no text in it{scanned}")
    return pieces


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        UnreadableDocumentError: There is no such file, it is no regular file, too large, or may not be read.
    """
    try:
        if not path.exists():
            raise UnreadableDocumentError("there is no such file")
        if path.is_dir():
            raise UnreadableDocumentError("there is no file in it that can be read")
        if not path.is_file():
            raise UnreadableDocumentError("it is no regular file")
        if (size := path.stat().st_size) > LARGEST:
            raise UnreadableDocumentError(
                f"it has {size / 2**20:,.0f} MiB; at most {LARGEST >> 20} MiB can be read. Split it"
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, UnreadableDocumentError):
            raise
        raise UnreadableDocumentError(getattr(error, "strerror", None) or str(error)) from error


def documents_in(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Path], list[Path]]:
    """Say which files are meant: those given, and of a directory all of kinds that can be read, however deep.

    Hidden files and directories are left out, and links to directories are not followed.

    Returns:
        The files, each once; and those in the directories that are of another kind.
    """
    files, others = dict[Path, None](), dict[Path, None]()
    for path in map(Path, paths):
        if not _is_directory(path):
            files[path] = None
            continue
        inside = list(_walk(path))
        known = [file for file in inside if file.suffix.lower() in _READERS]
        files |= dict.fromkeys(known)
        others |= dict.fromkeys(file for file in inside if file.suffix.lower() not in _READERS)
        if not known:
            files[path] = None  # to be refused by name: there was nothing in it
    return list(files), list(others)


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _walk(directory: Path) -> Iterator[Path]:
    for here, inside, names in os.walk(directory):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from (Path(here, name) for name in sorted(names) if not name.startswith("."))


def _kind(path: Path) -> str:
    return f"{path.suffix} files are of no kind that is known" if path.suffix else "its name has no suffix"


def _text(path: Path, data: bytes) -> Iterator[Piece]:
    yield from _pieces(_loaded(path, _encoding(data)), {})


def _markdown(path: Path, data: bytes) -> Iterator[Piece]:
    yield from _sections(_loaded(path, _encoding(data)))


def _html(path: Path, data: bytes) -> Iterator[Piece]:
    from langchain_community.document_transformers import MarkdownifyTransformer
    from langchain_core.documents import Document

    _needed("bs4", "markdownify")
    html = _loaded(path, _encoding(data, declared=True))
    html = re.sub(r"(?is)<title\b.*?</title\s*>", "", html)  # stands in the page as a heading, if it is one
    (told,) = MarkdownifyTransformer(strip=_WORDS_ONLY, escape_misc=False, escape_asterisks=False).transform_documents(
        [Document(html)]
    )
    yield from _sections(told.page_content.replace("\\_", "_"))


def _csv(path: Path, data: bytes) -> Iterator[Piece]:
    from langchain_community.document_loaders.csv_loader import CSVLoader

    encoding = _encoding(data)
    header = data.decode(encoding, "replace").lstrip().partition("\n")[0]
    given: dict[str, Any] = {"delimiter": max(",;\t|", key=header.count), "restkey": "more", "restval": ""}
    for row in CSVLoader(path, csv_args=given, encoding=encoding).lazy_load():
        if any(line.partition(": ")[2] for line in row.page_content.splitlines()):
            yield from _pieces(row.page_content, {"row": row.metadata["row"] + 1})


def _pdf(path: Path, data: bytes) -> Iterator[Piece]:
    _needed("pypdf")
    from langchain_community.document_loaders.pdf import PyPDFLoader

    if b"%PDF-" not in data[:1024]:
        raise UnreadableDocumentError("it is no PDF file, though its name says so")
    for page in PyPDFLoader(path, mode="page").lazy_load():
        yield from _pieces(page.page_content, {"page": page.metadata["page"] + 1})


_READERS: dict[str, Callable[[Path, bytes], Iterator[Piece]]] = {
    ".txt": _text,
    ".text": _text,
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".csv": _csv,
    ".pdf": _pdf,
}


def _needed(*libraries: str) -> None:
    for library in libraries:
        importlib.import_module(library)


def _loaded(path: Path, encoding: str) -> str:
    from langchain_community.document_loaders.text import TextLoader

    documents: Sequence[Document] = TextLoader(path, encoding=encoding).load()
    return documents[0].page_content


def _sections(markdown: str) -> Iterator[Piece]:
    from langchain_text_splitters import MarkdownHeaderTextSplitter

    found = False
    for section in MarkdownHeaderTextSplitter(_HEADINGS).split_text(markdown):
        headings = " › ".join(str(section.metadata[level]) for level in _LEVELS if section.metadata.get(level))
        # The splitter puts two spaces and a line break where there was a blank line.
        for piece in _pieces(section.page_content.replace("  \n", "\n\n"), {"section": headings} if headings else {}):
            found = True
            # A piece is found by its headings too.
            yield piece._replace(text=f"{headings}\n{piece.text}") if headings else piece
    if not found:  # headings alone
        yield from _pieces(markdown, {})


def _pieces(text: str, place: dict[str, Any]) -> Iterator[Piece]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    if len(text) <= PIECE_CHARS:
        yield Piece(text, place)
        return
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=PIECE_CHARS, chunk_overlap=0, separators=_ENDS, keep_separator="end"
    )
    for piece in splitter.split_text(text):
        yield Piece(piece, place)


def _cleaned(piece: Piece) -> Piece:
    text = piece.text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates, as PDF files give them
    return piece._replace(text="".join(c for c in text if c in "\n\t" or c.isprintable() or c.isspace()).strip())


def _encoding(data: bytes, *, declared: bool = False) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding
    if b"\0" in data:
        raise UnreadableDocumentError("it is binary, not text")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if declared and (named := _declared(data)):
            return named
        raise UnreadableDocumentError(
            f"it is not in UTF-8: byte 0x{data[error.start]:02x} at {error.start:,}. "
            "Save it as UTF-8, or convert it with iconv"
        ) from error
    return "utf-8"


def _declared(data: bytes) -> str | None:
    """Return the encoding that an HTML file says it is in, if it can be read so."""
    _needed("bs4")
    from bs4.dammit import EncodingDetector

    named = EncodingDetector.find_declared_encoding(data, is_html=True)
    try:
        data.decode(named or "utf-8")
    except (LookupError, UnicodeDecodeError):
        return None
    return named


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error  # loaders wrap what went wrong
    kind = type(cause).__name__
    if kind in ("FileNotDecryptedError", "WrongPasswordError"):
        return "it is encrypted; save a copy without a password"
    if kind == "DependencyError":
        return f"it is encrypted, and {cause}. {_INSTALL}"
    if isinstance(cause, UnicodeDecodeError):
        return f"it is not in {cause.encoding}: {cause.reason} at byte {cause.start:,}"
    return f"it is broken: {str(cause) or kind}"
