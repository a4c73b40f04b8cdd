"""A log that many write: each change is a record of its own, never written again, so that writers at once lose nothing.

The value is the sum of all changes in their order. Adding up those of years would cost more and more: once more than
`MOST` of them are old, a record with their sum takes their place. Old is what is certain to have arrived everywhere.
"""

from __future__ import annotations

import time

OLD = 3600.0
"""Seconds after which a change has arrived; clocks of two computers differ by less."""
MOST = 64
"""Old changes that are added up each time."""


def old_before() -> float:
    """Return the time, in seconds since 1970, before which changes are old."""
    return time.time() - OLD
