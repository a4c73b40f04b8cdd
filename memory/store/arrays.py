"""Names for numpy's arrays, as the modules of this room use them."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]  # ids of items or vectors
Places = NDArray[np.intp]  # places in another array
Mask = NDArray[np.bool_]  # which places of another array count
Scores = NDArray[np.float32]  # a number for each item; also one vector
Vector = Scores  # an embedding of length 1
