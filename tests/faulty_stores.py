"""Stores that fail when a test tells them to, that keep what they are asked, or call a test back about each write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore


class Checking(InMemoryStore):
    """Asks `check` about each batch before it executes it."""

    error: Exception | None = None

    def check(self, ops: list[Op]) -> None:
        """Raise an error for a batch that is not executed."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self.check(ops)
        return await super().abatch(ops)


class Recording(Checking):
    """Keeps the batches that it is given."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.batches: list[list[Op]] = []

    def check(self, ops: list[Op]) -> None:
        self.batches.append(ops)


class Broken(Checking):
    """Fails with the error that it is given, at whatever it is asked."""

    def check(self, ops: list[Op]) -> None:
        if self.error:
            raise self.error


class Blind(Checking):
    """Reads and writes, but cannot search by a query with the error that it is given."""

    def check(self, ops: list[Op]) -> None:
        if self.error and any(getattr(op, "query", None) for op in ops):
            raise self.error


class Refusing(Checking):
    """Refuses to write under keys that contain `refused`."""

    refused = ""

    def check(self, ops: list[Op]) -> None:
        if self.refused and any(isinstance(op, PutOp) and self.refused in op.key for op in ops):
            raise ConnectionError("the line went dead")


class RefusingTheRest(Refusing):
    """The same, but what stands before it in a batch is written, as by a store without transactions."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return [result for op in ops for result in await super(RefusingTheRest, self).abatch([op])]


class Halting(InMemoryStore):
    """Writes some of a batch and fails, as a store without transactions may."""

    left = 10**9

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        results: list[Result] = []
        for op in ops:
            if isinstance(op, PutOp):
                if not self.left:
                    raise ConnectionError("the line went dead")
                self.left -= 1
            results += await super().abatch([op])
        return results


class Hooked(BaseStore):
    """A store that calls `hook(moment, namespaces written)` about each batch of writes."""

    supports_ttl = True

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner
        self.hook: Callable[[str, set[str]], Any] | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.inner.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        written = {label for op in ops if isinstance(op, PutOp) for label in op.namespace}
        if self.hook and written:
            await self.hook("before", written)
        results = await self.inner.abatch(ops)
        if self.hook and written:
            await self.hook("after", written)
        return results


class Particular(Checking):
    """Refuses NUL and lone surrogates, as PostgreSQL does."""

    def check(self, ops: list[Op]) -> None:
        for op in ops:
            if isinstance(op, PutOp):
                check_words(op.value)


def check_words(value: Any) -> None:
    """Raise a ValueError if there is NUL or a lone surrogate anywhere in a value."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    if "\\u0000" in text:
        raise ValueError(f"\\u0000 cannot be converted to text: {text}")
    text.encode()
