"""Words of texts: split, stemmed, compared (`words`, read first), weighed (`bm25`); long texts cut (`passages`).

`parts` reads texts of data files.
"""
