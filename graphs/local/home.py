"""`Home`: where games are kept, and what can be asked of it without opening a game.

There are two: `FileHome`, a directory with SQLite and FAISS, and `PostgresHome`, a database that several processes use.
`questbook.graphs.local.homes` finds the one that is meant.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from langgraph.store.base import BaseStore, TTLConfig

from questbook.graphs.errors import QuestbookError
from questbook.graphs.identity.sessions import TableSessions
from questbook.graphs.local.saved_game import HomeCheckpointer, thread_id_of
from questbook.types import JSON

Namespace = tuple[str, ...]


class HomeError(QuestbookError):
    """The place where games are kept, or a part of it, cannot be used; the message names it and says what to do."""


class CampaignBusyError(QuestbookError):
    """Another program holds this campaign."""

    holder = ""  # what the process calls itself that holds it; "" if that is not known


class Held(Protocol):
    """A campaign that this process holds."""

    async def check(self) -> None:
        """Check that it is still held, which a database that was stopped may have ended; else a CampaignBusyError."""


class Home(Protocol):
    """Where games are kept. All methods raise a HomeError if it cannot be used."""

    @property
    def out_of_reach(self) -> str:
        """What forgetting does not reach here, as a sentence; "" if everything is read once more at its end."""

    @property
    def path(self) -> Path:
        """Directory of this machine, for what is no part of the games."""

    @property
    def prompt_history(self) -> Path:
        """File of what was typed at the terminal's prompt, for the arrow keys."""

    @property
    def name(self) -> str:
        """What it is called in messages; no password is in it."""

    def keep_open(self) -> AbstractAsyncContextManager[None]:
        """Keep connections open meanwhile, so that what is opened often opens fast."""

    def open_checkpointer(self) -> AbstractAsyncContextManager[HomeCheckpointer]:
        """Open the checkpoints; a checkpointer is for one campaign, or for one look."""

    def open_store(
        self,
        embeddings: str | None = None,
        *,
        known: Mapping[str, list[float]] | None = None,
        index: Any = None,
        ttl: TTLConfig | None = None,
    ) -> AbstractAsyncContextManager[BaseStore]:
        """Open the memories; the arguments are those of `questbook.graphs.local.databases.open_store`."""

    async def check(self) -> None:
        """Check that both can be opened."""

    async def problem(self) -> str:
        """Return "home" if no game can be kept here now, "" if games can; it raises nothing."""

    def hold(self, lock: str, busy: str, wait: float = 0.0) -> AbstractAsyncContextManager[Held]:
        """Hold a lock for this process, by its name: that of a campaign is its thread's id.

        If another process holds it, also after `wait` seconds, that is a CampaignBusyError; `busy` is its message.
        """

    async def was_held(self, lock: str) -> bool:
        """Whether a lock has ever been held, as far as that is known; if not, holding it may leave something behind."""

    async def forget_lock(self, lock: str) -> None:
        """Remove what a lock leaves behind."""

    async def read_item(self, namespace: Sequence[str], key: str) -> JSON | None:
        """Read an item of the memories; None if there is none."""

    async def records(self, first: str | None, last: str, key: str) -> dict[Namespace, JSON]:
        """Return the items `key` of the namespaces whose first and last labels these are; None as the first: any."""

    async def list_keys(self, namespace: Sequence[str]) -> list[tuple[Namespace, str]]:
        """Return namespace and key of each item in a namespace and under it."""

    async def has_begun(self) -> bool:
        """Whether memories are, or were to be, kept here."""

    async def read_embedder(self) -> str:
        """Return what the memories say of their embedder, such as "hash-1:512 …"; "" while there are none."""

    async def find_damage(self) -> list[str]:
        """Examine the data; return sentences that say what is missing or damaged, the last of them what to do."""

    async def size(self) -> int:
        """Return how many bytes the checkpoints take."""

    async def size_of(self, user: str, threads: Sequence[str]) -> int:
        """Return how many bytes a user's memories have, with their vectors, and the checkpoints of some threads."""

    def sessions(self) -> TableSessions:
        """Return where the page's sessions are kept. It blocks: call it in a thread."""

    def secret(self, name: str) -> str:
        """Return a secret, made when it is first asked for; processes share it. It blocks: call it in a thread."""


def hold_campaign(home: Home, user: str, campaign: str) -> AbstractAsyncContextManager[Held]:
    """Hold a campaign for this process; the errors are those of `Home.hold`."""
    whose, other = f"Campaign {campaign!r}", "play another: --campaign NAME"
    if campaign.partition(":")[0] == "companion":
        whose, other = f"Assistant {campaign.removeprefix('companion:')!r}", "talk to another: --assistant NAME"
    busy = f"{whose} is open in another terminal or page. Close it, or {other}."
    return home.hold(thread_id_of(user, campaign), busy)
