"""Number: a whole number on a page."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


Number = Annotated[int, BeforeValidator(_no_truth), Field(ge=-1_000_000_000, le=1_000_000_000)]
"""A whole number that every store and checkpointer can hold; true is not 1."""
