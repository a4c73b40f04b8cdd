"""What an adapter says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from benchmarks.forkbench.bench import Bench
from benchmarks.forkbench.game import Agent

OUR_STORES = ("InMemoryStore", "FaissStore", "SqliteStore", "PostgresStore")


@dataclass(frozen=True)
class Adapter:
    """A memory that is compared.

    Args:
        name: Its name in the table.
        build: Makes the app that has the memory, for one game.
        package: The distribution whose version counts.
        doc: Which documentation it follows.
        note: What it cannot do by design, and what was decided for it.
        needs: Modules without which it is left out.
        stores: The stores that it is measured on; see `questbook` for what these names mean.
    """

    name: str
    build: Callable[[Bench], Agent]
    package: str
    doc: str
    note: str = ""
    needs: tuple[str, ...] = ()
    stores: tuple[str, ...] = ("InMemoryStore",)

    @property
    def missing(self) -> str:
        """Say what is not installed; "" if nothing."""
        return ", ".join(name for name in self.needs if find_spec(name) is None)

    @property
    def version(self) -> str:
        """Return the version of its package; "" if it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""
