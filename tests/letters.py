"""An embedder that anyone can follow: texts with like letters are close."""

import hashlib
import math

from langchain_core.embeddings import Embeddings


class Letters(Embeddings):
    """Texts with like letters are close; the same vector in every process."""

    dims = 64

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = [0.0] * self.dims
        for letter in text:
            digest = hashlib.sha256(letter.encode()).digest()
            for place in range(self.dims):
                vector[place] += digest[place % 32] / 127.5 - 1 if place < 32 else digest[31 - place % 32] / 127.5 - 1
        return vector


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
