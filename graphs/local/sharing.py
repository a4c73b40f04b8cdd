"""`shared`: what is opened once in a process and event loop, however many campaigns use it, such as a database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class _Shared:
    """Something that is open while anybody uses it."""

    def __init__(self) -> None:
        self.users, self.opening, self.resources = 0, asyncio.Lock(), AsyncExitStack()
        self.opened: list[Any] = []


_open: dict[Hashable, _Shared] = {}


@asynccontextmanager
async def shared(name: Hashable, opens: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncIterator[T]:
    """Open something, unless it is open under this name in this event loop; the last one who leaves closes it.

    It raises what `opens` raises; who comes next tries again.
    """
    place = asyncio.get_running_loop(), name
    one = _open.setdefault(place, _Shared())
    one.users += 1
    try:
        async with one.opening:
            if not one.opened:
                one.opened.append(await one.resources.enter_async_context(opens()))
        yield one.opened[0]
    finally:
        one.users -= 1
        if not one.users:
            del _open[place]  # who comes while it closes opens it anew
            await one.resources.aclose()
