"""Words of texts: how they are split, stemmed, weighed and compared, the same everywhere.

- `words`: split a text, pick the words of a query; stems; compare two short texts. Read this first.
- `bm25`: the weight of a word in a text; the words of many texts as arrays of numpy.
- `passages`: cut a long text into parts that are ranked, and shown, by themselves.
"""
