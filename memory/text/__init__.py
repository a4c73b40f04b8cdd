"""Words of texts: how they are split, stemmed, weighed and compared, the same everywhere.

- `words`: split a text, pick the words of a query. Read this first.
- `stems`: stems as the word index has them, and how often texts have them.
- `bm25`: the weight of a word in a text.
- `comparison`: compare two short texts: normal form, stems of the content words, names, numbers, duplicates.
"""
