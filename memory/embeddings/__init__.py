"""Embedders: texts to vectors, and how to name, load and call one.

* `embedders`: `HashEmbeddings`, `KnownVectors`; what an embedder says of itself; many texts in one call to any of them
* `loading`: an embedder by its name, and the one of a store that names none
* `minilm`: all-MiniLM-L6-v2 and its weights; `bert`: the model in numpy
"""
