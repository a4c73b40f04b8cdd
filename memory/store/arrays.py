"""Names for numpy's arrays, as the modules of this room use them, and ids found in them."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]  # ids of items or vectors
Places = NDArray[np.intp]  # places in another array
Mask = NDArray[np.bool_]  # which places of another array count
Scores = NDArray[np.float32]  # a number for each item; also one vector
Vector = Scores  # an embedding of length 1


def find_ids(ids: Ids, wanted: Ids, order: Places | None = None) -> tuple[Places, Mask]:
    """Return the places of wanted ids among ids, and which are there at all; None for the order: the ids ascend."""
    if not len(ids):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    places: Places = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    places = places if order is None else order[places]
    return places, ids[places] == wanted
