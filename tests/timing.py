"""How long work takes, told so that other programs of the machine do not count."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], enough: float, tries: int = 3) -> float:
    """Return the seconds that a processor spent on some work: of at most so many tries the fastest.

    Args:
        work: What is measured.
        enough: Seconds; a try that takes less is the last one.
        tries: How often the work is done at most. A busy machine slows one try or two, worse code slows all.
    """
    fastest = float("inf")
    for _ in range(tries):
        begun = time.process_time()
        work()
        fastest = min(fastest, time.process_time() - begun)
        if fastest < enough:
            break
    return fastest
