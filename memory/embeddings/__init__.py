"""Embedders: texts to vectors, and how to name, load and call one.

Read `embedders` first.

* `embedders`: `HashEmbeddings`, the default; `KnownVectors`; `load_embeddings` by name;
  what an embedder says of itself.
* `batching`: many texts in one call to any embedder, and unit vectors that were checked.
* `minilm`: all-MiniLM-L6-v2 and its weights; `bert`: the model in numpy.
"""
