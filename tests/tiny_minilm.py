"""A tiny random model in the form of MiniLM's weights; run as a program, it lets a store decide on its embedder.

python tests/tiny_minilm.py FILE GATE    waits for the file GATE, opens the store FILE, writes, searches
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from questbook import FaissStore, MiniLMEmbeddings
from questbook.memory.embeddings import minilm

VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\ndragon\n##s\nthe\n.\n-\n龍\ncafe\n5\n"
WIDTH, INNER, HEADS, LAYERS, LONGEST = 24, 40, 12, 2, 256


def random_weights():
    numbers = np.random.default_rng(7)
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY.split()), WIDTH),
        "embeddings.position_embeddings.weight": (LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for layer in range(LAYERS):
        of_self = [f"attention.self.{part}" for part in ("query", "key", "value")]
        dense = dict.fromkeys((*of_self, "attention.output.dense"), (WIDTH, WIDTH))
        for part, shape in (dense | {"intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}).items():
            name = f"encoder.layer.{layer}.{part}"
            shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
        for part in ("attention.output", "output"):
            name = f"encoder.layer.{layer}.{part}.LayerNorm"
            shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    return {name: numbers.normal(0.3, 0.6, shape).astype("<f4") for name, shape in shapes.items()}


def write_safetensors(file, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        end = len(data) + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), end]}
        data += tensor.tobytes()
    header["embeddings.position_ids"] = {"dtype": "I64", "shape": [1], "data_offsets": [len(data), len(data) + 8]}
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data + bytes(8))


def write_tiny(directory):
    """Write the model into a directory; return it."""
    directory.mkdir(parents=True, exist_ok=True)
    write_safetensors(directory / "model.safetensors", random_weights())
    (directory / "vocab.txt").write_text(VOCABULARY)
    return directory


def checksums(directory):
    """Return what the published model's checksums are, if it is this one."""
    return {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in minilm.SHA256}


def _main(file, gate, published):
    with patch.object(minilm, "SHA256", json.loads(published)), patch.object(MiniLMEmbeddings, "dims", WIDTH):
        give_up = time.monotonic() + 60
        while not Path(gate).exists() and time.monotonic() < give_up:
            pass
        with FaissStore.open(file) as store:
            for number in range(5):
                store.put(("a",), f"{id(store)}-{number}", {"text": "the dragon"})
                store.search(("a",), query="The dragons")
            print(store.embeddings.identity)


if __name__ == "__main__":
    _main(*sys.argv[1:])
