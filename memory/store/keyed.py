"""Keyed: anything with a record in it, as what stores return and what `recall` returns have."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar


class Keyed(Protocol):
    """An `Item`, a `SearchItem`, a `Recalled`, or anything else that has these."""

    @property
    def key(self) -> str:
        """Its key in the store."""

    @property
    def value(self) -> dict[str, Any]:
        """The record."""

    @property
    def namespace(self) -> tuple[str, ...]:
        """Where it is."""


KeyedT = TypeVar("KeyedT", bound=Keyed)
