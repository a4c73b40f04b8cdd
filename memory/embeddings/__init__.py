"""Embedders: texts to vectors. Read `embedders` first, then `loading`; `minilm` is a sentence model, made by `bert`."""
