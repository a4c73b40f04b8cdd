"""Embedders: texts to vectors, and how to name, load and call one.

Read `embedders` first.

* `embedders`: `HashEmbeddings`, the default; `load_embeddings` by name; what an embedder says of itself.
* `batching`: many texts in one call to any embedder, and unit vectors that were checked.
* `known_vectors`: an embedder that takes over vectors which were made before.
* `minilm`: all-MiniLM-L6-v2 and its weights; `bert`: the model in numpy.
"""
