"""PDF files, as small as they can be: pages of one line each."""

from __future__ import annotations

import io
from pathlib import Path

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def pdf(*pages: str, password: str = "") -> bytes:
    """Write a PDF file of pages with a line of text each; a password encrypts it."""
    writer, out, name = PdfWriter(), io.BytesIO(), NameObject
    of_font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica", "/Encoding": "/WinAnsiEncoding"}
    font = DictionaryObject({name(key): name(value) for key, value in of_font.items()})
    for text in pages:
        words = text.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")
        content, page = DecodedStreamObject(), writer.add_blank_page(600, 800)
        content.set_data(b"BT /F1 12 Tf 50 700 Td (" + words + b") Tj ET" if text else b"")
        fonts = DictionaryObject({name("/F1"): font})
        page[name("/Resources")] = DictionaryObject({name("/Font"): fonts})
        page[name("/Contents")] = content
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


def files(directory: Path, **contents: bytes | str) -> list[Path]:
    """Write files; the last "_" of a name stands for the dot: `files(tmp_path, gods_md="# Gods")`."""
    written = []
    for name, content in contents.items():
        path = directory / ".".join(name.rsplit("_", 1))
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        written.append(path)
    return written
