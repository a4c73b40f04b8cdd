"""Documents: files of text, Markdown, HTML, CSV and PDF, read into pieces that can be cited.

Libraries read them and LangChain's splitters cut them. This module adds where each piece is from, and why a file
cannot be read, in words for the person who chose it.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import groupby, pairwise, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

from questbook.memory.errors import UnreadableDocumentError
from questbook.memory.lore.langchain_index import TEXTS, VECTORS, read_texts
from questbook.memory.timeline.records import Record
from questbook.types import JSON

AnyPath = str | os.PathLike[str]
PIECE_CHARS = 800  # longest piece: about 200 tokens, so that four of them fill the prompt's default share for memories
MAX_BYTES = 64 * 1024 * 1024  # size of the largest file that is read
_SAVED_CHARS = 2000  # longest piece of a LangChain index, whose texts an app has cut already
_SEPARATORS = ["\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " "]  # where to cut, the best first
_HEADINGS = [("#" * level, str(level)) for level in range(1, 7)]
_LEVELS = [level for _, level in _HEADINGS]
_LONG_HEADING = re.compile(r"^([ \t]*#{1,6} )(.{100})(.{100,})$", re.MULTILINE)
_INSTALL = "Install the extra `lore`: pip install 'questbook[lore]'"
_INLINE_TAGS = ["a", "b", "em", "i", "img", "strong"]  # only their text is kept
_HIDDEN_TAGS = ["script", "style", "title"]  # a title that is a heading is in the page too
_HEADING = re.compile(r"\A#{1,6}(?: .*+)?(?:\n|\Z)")  # of a paragraph that the splitter returns
_SPACE = re.compile(r"[^\S\n]")
_CSV_START = re.compile(r"\A(?:[^\S\n]*+\n)*+(?:sep=.[^\S\n]*+\n)?")  # blank lines, and Excel's line for itself
_BLANK_LINES, _MANY_BLANKS = re.compile(r"\n\s*\n"), re.compile(r"\s{100,}+")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, kw_only=True)
class LorePiece(Record):
    """A piece of a document, as a record: at most `PIECE_CHARS` characters and its headings, of each at most 200."""

    kind: str = "lore"
    source: str = ""  # name of the file
    digest: str = ""  # SHA-256 of the file, in hexadecimal digits
    page: int = 0  # of a PDF file, from 1
    row: int = 0  # of a CSV file below the header, from 1
    section: str = ""  # headings of a piece of Markdown or HTML, "Gods › Ash"; "" above the first

    @property
    def citation(self) -> str:
        """Where it is found: "bestiary.pdf, page 12"; "people.csv, row 4"; "gods.md, The Old Ones › Ash".

        "" for a record of another kind, which has no source.
        """
        if not self.source:
            return ""
        page, row = f"page {self.page}" if self.page else "", f"row {self.row}" if self.row else ""
        return ", ".join(part for part in (self.source, page, row, self.section) if part)

    @property
    def body(self) -> str:
        """The text without the headings that `citation` names."""
        return self.text.removeprefix(f"{self.section}\n") if self.section else self.text


def read_document(path: Path, data: bytes) -> list[LorePiece]:
    """Read a document, whose suffix says of which kind it is, into pieces, without source and digest.

    If its kind is not supported, it is broken, encrypted, empty or in a wrong encoding, or the library that reads it is
    missing, it is an UnreadableDocumentError.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        kind = f"{path.suffix} files are not supported" if path.suffix else "its name has no suffix"
        raise UnreadableDocumentError(f"{kind}; supported: {', '.join(_READERS)}")
    if not data.strip():
        raise UnreadableDocumentError("the file is empty")
    try:
        pieces = [_clean(piece) for piece in reader(path, data)]
    except UnreadableDocumentError:
        raise
    except ImportError as error:
        raise UnreadableDocumentError(f"{error.name or 'a library'} is not installed. {_INSTALL}") from error
    except Exception as error:  # on a broken file, parsers raise errors of any class
        raise UnreadableDocumentError(_reason(error)) from error
    pieces = [piece for piece in pieces if piece.text]
    if not pieces:
        scanned = "; scanned pages need text recognition (OCR) first" if path.suffix.lower() == ".pdf" else ""
        raise UnreadableDocumentError(f"there is no text in it{scanned}")
    return pieces


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes; no regular file, a too large or unreadable one is an UnreadableDocumentError."""
    try:
        if not path.is_file():
            found = "it has no file that can be read" if path.is_dir() else "it is not a regular file"
            raise UnreadableDocumentError(found if path.exists() else "there is no such file")
        if (size := path.stat().st_size) > MAX_BYTES:
            most = f"at most {MAX_BYTES >> 20} MiB can be read. Split it"
            raise UnreadableDocumentError(f"it has {size / 2**20:,.0f} MiB; {most}")
        return path.read_bytes()
    except UnreadableDocumentError:
        raise
    except (OSError, ValueError) as error:
        raise UnreadableDocumentError(getattr(error, "strerror", None) or str(error)) from error


def find_documents(paths: AnyPath | Iterable[AnyPath]) -> tuple[list[Path], list[Path]]:
    """Find files to read, each once: those in `paths`, and in its directories, however deep, all of a supported kind.

    Hidden files and directories are left out, and links to directories are not followed. A directory without a
    supported file is returned as if it were a file, to be refused by its name. Also returns the files in directories
    whose kind is not supported.
    """
    files, others = dict[Path, None](), dict[Path, None]()
    for path in map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths):
        if not os.path.isdir(path):
            files[path] = None
            continue
        inside = list(_walk(path))
        files |= dict.fromkeys([file for file in inside if _is_supported(file)] or [path])
        others |= dict.fromkeys(file for file in inside if not _is_supported(file))
    return list(files), list(others)


def _is_supported(file: Path) -> bool:
    """Whether a file of a directory can be read; a pickle only beside an index of vectors of its name."""
    suffix = file.suffix.lower()
    return suffix in _READERS and (suffix != TEXTS or file.with_suffix(VECTORS).exists())


def _walk(directory: Path) -> Iterator[Path]:
    for here, inside, names in os.walk(directory):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from (Path(here, name) for name in sorted(names) if not name.startswith("."))


def _to_markdown(html: str) -> str:
    """Return what a page says as Markdown, without scripts, comments, its title and links.

    lxml reads a page of whatever in linear time; Python's own parser takes minutes for 360 kB of `<title`.
    """
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    import_module("lxml")  # else it is no ImportError
    end = html.rfind("-->") + 1  # a comment that does not end hides nothing
    page = BeautifulSoup(html[:end] + html[end:].replace("<!--", "&lt;!--"), "lxml")
    for hidden in page(_HIDDEN_TAGS):
        hidden.decompose()
    for text in page.find_all(string=_MANY_BLANKS):
        text.replace_with(_MANY_BLANKS.sub("\n\n", text))
    escapes: JSON = dict.fromkeys(("escape_misc", "escape_asterisks", "escape_underscores"), False)
    markdown = MarkdownConverter(strip=_INLINE_TAGS, heading_style="ATX", **escapes).convert_soup(page)
    return _BLANK_LINES.sub("\n\n", str(markdown))


def _csv(_: Path, data: bytes) -> Iterator[LorePiece]:
    text = _CSV_START.sub("", _text(data))
    header = text.partition("\n")[0]
    before = csv.field_size_limit(MAX_BYTES)
    try:
        read = csv.reader(io.StringIO(text), delimiter=max(",;\t|", key=header.count))
        names, *rows = [*filter(None, read)] or [[]]
    finally:
        csv.field_size_limit(before)
    for number, row in enumerate(rows, 1):
        more = [("more", ",".join(map(str.strip, row[len(names) :])))] if len(row) > len(names) else []
        if any(map(str.strip, row)):
            fields = [*zip_longest(names, row[: len(names)], fillvalue=""), *more]  # columns may have one name
            yield from _pieces("\n".join(f"{name.strip()}: {value.strip()}" for name, value in fields), row=number)


def _pdf(path: Path, data: bytes) -> Iterator[LorePiece]:
    import_module("pypdf")
    from langchain_community.document_loaders.pdf import PyPDFLoader

    if b"%PDF-" not in data[:1024]:
        raise UnreadableDocumentError("it is not a PDF file, although its name says so")
    for page in PyPDFLoader(path, mode="page").lazy_load():
        yield from _pieces(page.page_content, page=page.metadata["page"] + 1)


def _langchain_index(path: Path, data: bytes) -> Iterator[LorePiece]:  # noqa: ARG001
    for saved in read_texts(data):
        source, page = str(saved.metadata.get("source") or ""), saved.metadata.get("page")
        place: JSON = {"section": Path(source).name} | ({"page": page + 1} if type(page) is int and page >= 0 else {})
        if len(saved.text) <= _SAVED_CHARS:
            yield LorePiece(text=saved.text, **place)
        else:
            yield from _pieces(saved.text, **place)


_READERS: dict[str, Callable[[Path, bytes], Iterator[LorePiece]]] = {
    **dict.fromkeys((".txt", ".text"), lambda _, data: _pieces(_text(data))),
    **dict.fromkeys((".md", ".markdown"), lambda _, data: _sections(_text(data))),
    **dict.fromkeys((".html", ".htm"), lambda _, data: _sections(_to_markdown(_text(data, declared=True)))),
    ".csv": _csv,
    ".pdf": _pdf,
    TEXTS: _langchain_index,
}


def _sections(markdown: str) -> Iterator[LorePiece]:
    from langchain_text_splitters import MarkdownHeaderTextSplitter

    markdown = _SPACE.sub(" ", markdown)  # the splitter drops what is not printable
    markdown = _LONG_HEADING.sub(r"\1\2…\n\n\2\3\n", markdown)  # a longer one is text, to be cut as such
    split = MarkdownHeaderTextSplitter(_HEADINGS, return_each_line=True, strip_headers=False).split_text(markdown)
    path = [" › ".join(str(each.metadata[one]) for one in _LEVELS if each.metadata.get(one)) for each in split]
    paragraphs = zip(path, (_HEADING.sub("", each.page_content) for each in split), strict=True)
    sections = [(one, "\n\n".join(text for _, text in of if text)) for one, of in groupby(paragraphs, itemgetter(0))]
    if not any(text for _, text in sections):  # there are only headings
        yield from _pieces(markdown)
        return
    for (headings, text), (below, _) in pairwise([*sections, ("", "")]):
        if text or not below.startswith(f"{headings} › "):  # a heading without a text may say something
            for piece in _pieces(text, section=headings):
                # A search finds a piece by its headings too.
                yield replace(piece, text=f"{headings}\n{piece.text}") if headings else piece


def _pieces(text: str, **place: Any) -> Iterator[LorePiece]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    if len(text) <= PIECE_CHARS:
        yield LorePiece(text=text, **place)
        return
    sizes: JSON = {"chunk_size": PIECE_CHARS, "chunk_overlap": 0}
    for part in RecursiveCharacterTextSplitter(separators=_SEPARATORS, keep_separator="end", **sizes).split_text(text):
        for start in range(0, len(part), PIECE_CHARS):  # one word may be longer than a piece
            yield LorePiece(text=part[start : start + PIECE_CHARS], **place)


def _clean(piece: LorePiece) -> LorePiece:
    text = piece.text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates, which PDF files may have
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join(c for c in text if c in "\n\t" or c.isprintable() or c.isspace())
    return replace(piece, text=text.strip())


def _text(data: bytes, *, declared: bool = False) -> str:
    return re.sub("\r\n?", "\n", data.decode(_encoding(data, declared=declared)))


def _encoding(data: bytes, *, declared: bool = False) -> str:
    if marked := [encoding for mark, encoding in _BOMS if data.startswith(mark)]:
        return marked[0]
    if b"\0" in data:
        raise UnreadableDocumentError("it is binary, not text")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if declared and (html_encoding := _declared(data)):
            return html_encoding
        wrong = f"byte 0x{data[error.start]:02x} at {error.start:,}. Save it as UTF-8, or convert it with iconv"
        raise UnreadableDocumentError(f"it is not in UTF-8: {wrong}") from error
    return "utf-8"


def _declared(data: bytes) -> str | None:
    """Return the encoding that an HTML file declares, if the file can be read in it."""
    from bs4.dammit import EncodingDetector

    encoding = EncodingDetector.find_declared_encoding(data, is_html=True)
    try:
        data.decode(encoding or "utf-8")
    except (LookupError, UnicodeDecodeError):
        return None
    return encoding


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error  # loaders wrap the real error
    kind = type(cause).__name__
    if kind in ("FileNotDecryptedError", "WrongPasswordError"):
        return "it is encrypted; save a copy without a password"
    if kind == "DependencyError":
        return f"it is encrypted, and {cause}. {_INSTALL}"
    if isinstance(cause, UnicodeDecodeError):
        return f"it is not in {cause.encoding}: {cause.reason} at byte {cause.start:,}"
    return f"it is broken: {str(cause) or kind}"
