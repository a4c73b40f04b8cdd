"""PDF files, as small as they can be: pages of one line each."""

from __future__ import annotations

import io
from pathlib import Path

from pypdf import PdfReader, PdfWriter


def pdf(*pages: str, password: str = "") -> bytes:
    """Write a PDF file of pages with a line of text each; a password encrypts it."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    kids = []
    for text in pages:
        words = text.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")
        stream = b"BT /F1 12 Tf 50 700 Td (" + words + b") Tj ET" if text else b""
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (kids[-1] - 1)
        )
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(b"%d 0 R" % kid for kid in kids), len(kids))
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    out += end % (size, table, size, len(out))
    return _locked(out, password) if password else out


def _locked(data: bytes, password: str) -> bytes:
    writer, locked = PdfWriter(clone_from=PdfReader(io.BytesIO(data))), io.BytesIO()
    writer.encrypt(password, algorithm="RC4-128")
    writer.write(locked)
    return locked.getvalue()


def files(directory: Path, **contents: bytes | str) -> list[Path]:
    """Write files; the last "_" of a name stands for the dot: `files(tmp_path, gods_md="# Gods")`."""
    written = []
    for name, content in contents.items():
        path = directory / ".".join(name.rsplit("_", 1))
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        written.append(path)
    return written
