"""How values of checkpoints are written: LangGraph's serializer, then zlib, to about a third.

Values that were written without compression can be read as before.
"""

from __future__ import annotations

import zlib

from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

_CIPHER = "zlib"
_IN_PARTS = "+blobs"


def compressing_serializer() -> SerializerProtocol:
    """Return LangGraph's serializer with compression."""
    return EncryptedSerializer(_Zlib())


def decompress(kind: str | None, value: bytes) -> bytes | None:
    """Return a saved value as bytes that can be searched for text; None if only its own serializer can open it.

    Its kind is its type as the saver wrote it: "msgpack", "msgpack+zlib", "msgpack+blobs+zlib".

    Raises:
        ValueError: The bytes are damaged.
    """
    _, plus, cipher = kind_of_rest(kind or "").partition("+")
    if not plus:
        return value
    return _Zlib().decrypt(cipher, value) if cipher == _CIPHER else None


def kind_in_parts(kind: str) -> str:
    """Return the type of a checkpoint whose other parts are in `checkpoint_blobs`; `kind` is that of the rest.

    No serializer knows it, so that an older version of Questbook and other programs fail instead of reading a state
    that lacks its largest channels.
    """
    name, plus, cipher = kind.partition("+")
    return f"{name}{_IN_PARTS}{plus}{cipher}"


def kind_of_rest(kind: str) -> str:
    """Return the type of what is left in a checkpoint whose other parts are in `checkpoint_blobs`."""
    return kind.replace(_IN_PARTS, "", 1)


class _Zlib(CipherProtocol):
    """Compression in the place of a cipher: EncryptedSerializer names the cipher in each value's type."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        # By default zlib takes 256 KB of memory for each value, which costs ten times what a short one's compression
        # does. A window as large as the value compresses it as well.
        window = min(max(len(plaintext).bit_length(), 9), zlib.MAX_WBITS)
        stream = zlib.compressobj(1, zlib.DEFLATED, window, 5)
        return _CIPHER, stream.compress(plaintext) + stream.flush()

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != _CIPHER:
            raise ValueError(f"The value was written with {ciphername!r}, which needs the serializer that wrote it.")
        try:
            return zlib.decompress(ciphertext)
        except zlib.error as error:
            raise ValueError(f"The value is damaged: {error}") from error
