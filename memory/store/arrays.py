"""Names for numpy's arrays, as the modules of this room use them."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
"""Ids of items or vectors."""
Places = NDArray[np.intp]
"""Places in another array."""
Mask = NDArray[np.bool_]
"""Which places of another array count."""
Scores = NDArray[np.float32]
"""A number for each item; also one vector."""
Vector = Scores
"""An embedding of length 1."""
