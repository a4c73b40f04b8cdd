"""History: going back, trying again, and moving between the lines of a game.

Everything here is LangGraph's checkpoints underneath: going somewhere writes a new checkpoint like the one gone to, so
Studio shows what was done, and nothing that was played is lost. The campaign's head goes along.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Overwrite, StateSnapshot

from questbook.graphs.errors import HistoryError
from questbook.graphs.history.chronicle import Chronicle, Spot, due, spot_of
from questbook.graphs.history.copies import copy_to, origin_of, thread_of
from questbook.graphs.history.places import Place
from questbook.graphs.settings import Settings
from questbook.graphs.turn.session import head_of, move_head, past_of
from questbook.graphs.turn.speaking import speaking

__all__ = ["History", "Place", "Spot", "resend", "spot_of"]


_log = logging.getLogger(__name__)


class History(Chronicle):
    """Moves about in what was played on a thread."""

    async def undo(self, turns: int = 1) -> StateSnapshot:
        """Go back to how it was `turns` turns ago; return the state there.

        Raises:
            HistoryError: There are not so many turns.
        """
        if turns < 1:
            raise HistoryError(f"Undo takes a number of turns from 1, got {turns}.")
        turn = spot_of(await self.now()).turn
        if turn == 1:
            raise HistoryError("The first turn cannot be taken back, but /edit rewrites your message.")
        if turns >= turn:
            raise HistoryError(f"This is turn {turn}, so {turns} turns cannot be taken back, but {turn - 1} can.")
        return await self.rewind(turn - turns)

    async def rewind(self, turn: int) -> StateSnapshot:
        """Go back to the end of a turn; return the state there.

        Raises:
            HistoryError: There is no such turn on this line.
        """
        target = await self.finished(turn)
        state = await self._stand(target)
        past = await past_of(self._store(), self.context, self._id)
        if past is None or thread_of(target) == self._id or not _stands_at(state, past):
            return state
        # This thread has joined the campaign here; what it took over then counts, whatever that one's thread says now.
        taken: dict[str, Any] = {name: past[name] for name in self._state.CARRIED if name in past}
        taken |= {name: Overwrite(past[name]) for name in self._state.PAGES if name in past}
        return await self.write(taken)

    async def retry(self, *, dice: bool = False) -> tuple[RunnableConfig, Settings]:
        """Find where the last turn can be told again; run from that config with that context, without input.

        Args:
            dice: Also roll again; otherwise the rolls of the turn stand, and only the words are new.

        Raises:
            HistoryError: There is no reply to tell again.
        """
        spot = spot_of(await self.now())
        found: StateSnapshot | None = None
        how: dict[tuple[str, ...], str] = {(node,): how for node, how in speaking(self.graph).items()}
        async for state in self._back(self._thread()):
            # A node that answers was asked again after each roll: before the first of them nothing was rolled.
            if due(state) in how and (found is None or (dice and how[due(state)] == "answers")):
                found = state
            if due(state) == ("__start__",) or (not due(state) and spot_of(state).turn < spot.turn):
                break  # before the turn
        if found is None:
            raise HistoryError("There is no reply to tell again.")
        # The offline storyteller and seeded dice would say the same again; what was said makes them say something else.
        origin = f"{self.context.seed}/{spot.turn}/{dice}/{spot.reply}"
        seed = int.from_bytes(hashlib.sha256(origin.encode("utf-8", "surrogatepass")).digest()[:6])
        config = (
            await self._keeping(spot.line, found, "recall") if how[due(found)] == "answers" else await self._own(found)
        )
        return config, self.context.model_copy(update={"seed": seed})

    async def before_last(self) -> tuple[RunnableConfig, str]:
        """Find where the last message was sent, to send another in its place; also return that message.

        The message that began the thread can be sent anew too: the thread then begins again from the past it had. If
        that was none, the campaign's head is given up, since the new message begins the campaign.

        Raises:
            HistoryError: There is no message.
        """
        spot = spot_of(await self.now())
        begun: StateSnapshot | None = None
        async for state in self._back(self._thread()):
            if not due(state) and spot_of(state).turn == spot.turn - 1:
                return await self._keeping(spot.line, state, "condense"), spot.player
            begun = state
        if begun is None:
            raise HistoryError("There is no message to write anew.")
        # On a thread that has joined the campaign with this message, it joins again, as it did then.
        joins = thread_of(begun) == self._id and due(begun) == ("__start__",)
        if spot.turn > 1 and not joins:
            return await self._keeping(spot.line, await self.finished(spot.turn - 1), "condense"), spot.player
        if spot.turn == 1:
            await move_head(self._state(), self._store(), self.context, self._id)
        return await self._own(begun), spot.player

    async def name(self, line: str) -> None:
        """Give the line from here on a name.

        Raises:
            HistoryError: The name is blank, taken, or would be read as a turn or a branch.
        """
        line = " ".join(line.split())
        if not line or len(line) > 60:
            raise HistoryError(f"A line needs a name of 1 to 60 characters, got {line!r:.70}.")
        if line.isdecimal():
            raise HistoryError(f"{line} would be read as a turn; give the line a name with a letter.")
        now, places = await self.settled(), await self.places()
        taken = {*await self.named(), *(name for place in places for name in (place.line, place.branch)), "main"}
        if line in taken or line == now.values.get("line", "main"):
            raise HistoryError(f"There is a line named {line!r} already; /go {line} goes there.")
        branch, turn = now.values["timeline"][-1]
        await self._store().aput(self._namespace("lines"), line, {"branch": branch, "turn": turn}, index=False)
        await self.write({"line": line})

    async def settled(self) -> StateSnapshot:
        """Return the state as it stands, its last turn answered.

        Raises:
            HistoryError: Nothing has been played yet, or the last turn is not finished.
        """
        now = await self.now()
        if due(now):
            raise HistoryError(f"Turn {spot_of(now).turn} has no reply yet: /retry answers it first.")
        return now

    async def write(self, update: Mapping[str, Any]) -> StateSnapshot:
        """Write channels where one stands, as an edit by a person; what goes back to before it has it undone.

        Raises:
            HistoryError: Nothing has been played yet, or the last turn is not finished.
        """
        await self.settled()
        await self.graph.aupdate_state(self._thread(), dict(update), as_node="condense")
        return await self._headed()

    async def go(self, where: str) -> StateSnapshot:
        """Go to a place; return the state there. What another thread of the campaign played is copied to this one.

        Raises:
            HistoryError: There is no such place.
        """
        where = " ".join(where.split())
        target = await self.finished(int(where)) if where.isdecimal() else await self.end_of(await self.find(where))
        named = where in await self.named()
        return await self._stand(target, where if named else target.values.get("line", "main"))

    async def enter(self, threads: Sequence[str]) -> bool:
        """Stand where the campaign was left on another thread, on a thread on which nothing was played yet.

        Without it the first message takes over what the head carries: pages, summary and timeline, but no buffer.

        Args:
            threads: The others of the campaign, the last played first.

        Returns:
            Whether it was left anywhere that can be gone to.
        """
        head = await head_of(self._store(), self.context)
        left = str((head or {}).get("thread"))
        for thread in sorted(threads, key=lambda one: one != left):  # the one that left it first
            state = await self._last_finished(thread)
            if state is not None and (head is None or _stands_at(state, head)):
                await self._own(state)
                return True
        if head is None:
            return False
        try:
            [last] = await self._at_turn(head["turn"], head["timeline"])
            await self._own(await self.end_of(last))
        except (HistoryError, ValueError) as error:
            _log.warning("Where campaign %r was left is in no checkpoint: %s", self.context.campaign, error)
            return False
        return True

    async def _last_finished(self, thread: str) -> StateSnapshot | None:
        """Return the state with which the last finished turn of a thread ended; None if it has none."""
        async for state in self._back({**self.config, "configurable": {"thread_id": thread}}):
            if not due(state):
                return state if state.values.get("turn") else None
        return None

    async def _stand(self, target: StateSnapshot, line: str | None = None) -> StateSnapshot:
        """Make a copy of a finished state the newest of the thread, and the campaign's head; return it."""
        if thread_of(target) == self._id and origin_of(target) is None:
            await self.graph.aupdate_state(self._from(target), None, as_node="__copy__")
        else:
            await self._copy(target)
        if line is not None and line != target.values.get("line", "main"):
            await self.graph.aupdate_state(self._thread(), {"line": line}, as_node="condense")
        return await self._headed()

    async def _headed(self) -> StateSnapshot:
        state = await self.now()
        await move_head(self._state.model_validate(state.values), self._store(), self.context, self._id)
        return state

    async def _keeping(self, line: str, state: StateSnapshot, node: str) -> RunnableConfig:
        """Return the config to run from, on that line; the name may have been given after the state was written."""
        config = await self._own(state)
        if state.values.get("line", "main") == line:
            return config
        config = await self.graph.aupdate_state(config, {"line": line}, as_node=node)
        return {**self.config, "configurable": config["configurable"]}

    async def _own(self, state: StateSnapshot) -> RunnableConfig:
        """Return the config to run from; a state that another thread played is copied to this one first."""
        return self._from(state) if thread_of(state) == self._id else await self._copy(state)

    async def _copy(self, state: StateSnapshot) -> RunnableConfig:
        if not isinstance(self.graph.checkpointer, BaseCheckpointSaver):
            raise HistoryError("The graph was compiled without a checkpointer, so there is nothing to go to.")
        named = {"user": self.context.user, "campaign": self.context.campaign}  # so that forgetting finds the thread
        to: RunnableConfig = {**self._thread(), "metadata": {**self.config.get("metadata", {}), **named}}
        config = await copy_to(self.graph.checkpointer, state, to)
        return {**self.config, "configurable": config["configurable"]}


def _stands_at(state: StateSnapshot, head: Mapping[str, Any]) -> bool:
    timeline = [list(segment) for segment in state.values.get("timeline") or ()]
    return bool(state.values["turn"] == head["turn"] and timeline == [list(segment) for segment in head["timeline"]])


def resend(text: str) -> dict[str, Any]:
    """Make the input that sends a message."""
    return {"messages": [HumanMessage(text)]}
