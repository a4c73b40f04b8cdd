"""`TurnWatch`: sees every turn that is played in this process, on the page or on LangGraph's server.

It is one of LangChain's callback handlers, so the machines know nothing of it. It keeps times and counts, no words.
"""

import asyncio
import logging
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from langgraph.constants import TAG_NOSTREAM

from questbook.graphs.local.costs import paid_calls
from questbook.graphs.monitoring import metrics
from questbook.graphs.turn.node import SPEAKS, upkeep_nodes
from questbook.types import JSON

MACHINES = ("dungeon_master", "companion", "reflect")
"""The graphs whose runs are turns; `reflect` is one where it runs by itself, in the background of a server."""
_IDS = ("user", "campaign", "thread_id", "run_id")
_log = logging.getLogger(__name__)


@dataclass
class _Turn:
    """A turn; times are seconds of `perf_counter`."""

    machine: str
    ids: JSON  # of its run
    began: float = field(default_factory=perf_counter)
    spoke: float | None = None  # when the first of the reply left
    replied: float | None = None  # when the reply was complete
    runs: list[UUID] = field(default_factory=list)  # runs of LangChain that are part of it, its own first


class TurnWatch(BaseCallbackHandler):
    """Counts turns and what belongs to them; the end of each is a line in the log.

    A chain is a graph or a node. Of questions to a model, those count whose answer reaches the person. Of searches,
    "recall" is ours, and its end counts also if it failed.
    """

    run_inline = True  # LangChain would take a thread for each call

    def __init__(self) -> None:
        self._turns, self._recalls = dict[UUID | None, _Turn](), dict[UUID, float]()

    def on_chain_start(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **more: Any) -> None:  # noqa: D102
        name, metadata, turn = more.get("name"), more.get("metadata") or {}, self._turns.get(parent_run_id)
        if turn is None:
            machine = name if name in MACHINES or parent_run_id else metadata.get("graph_id")
            if machine not in MACHINES:
                return
            turn = _Turn(str(machine), {"run_id": run_id} | {key: metadata[key] for key in _IDS if key in metadata})
        elif turn.replied is None and name in _upkeep_of(turn.machine):
            turn.replied = perf_counter()
            metrics.BACKLOG.inc()
        self._join(turn, run_id)

    def on_chain_end(self, *_: Any, run_id: UUID, **more: Any) -> None:  # noqa: ARG002, D102 (LangChain's method)
        self._end(run_id, "replied")

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:  # noqa: ARG002, D102
        is_stop = isinstance(error, asyncio.CancelledError | GeneratorExit)
        self._end(run_id, "stopped" if is_stop else "failed", "" if is_stop else type(error).__name__)

    def on_chat_model_start(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **more: Any) -> None:  # noqa: D102
        turn, tags = self._turns.get(parent_run_id), more.get("tags") or ()
        if turn and SPEAKS in (more.get("metadata") or {}) and TAG_NOSTREAM not in tags:
            self._join(turn, run_id)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **more: Any) -> None:  # noqa: ARG002, D102
        if token and (turn := self._turns.get(run_id)) and turn.spoke is None:
            turn.spoke = perf_counter()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:  # noqa: ARG002, D102
        self._turns.pop(run_id, None)
        for _, prompt, answer in paid_calls(response):
            metrics.TOKENS.labels("prompt").inc(prompt)
            metrics.TOKENS.labels("answer").inc(answer)

    def on_retriever_start(self, *_: Any, run_id: UUID, **more: Any) -> None:  # noqa: D102
        if more.get("name") == "recall":
            self._recalls[run_id] = perf_counter()

    def on_retriever_end(self, *_: Any, run_id: UUID, **more: Any) -> None:  # noqa: ARG002, D102
        if (began := self._recalls.pop(run_id, None)) is not None:
            metrics.RECALL.observe(perf_counter() - began)

    on_retriever_error = on_retriever_end

    def _join(self, turn: _Turn, run: UUID) -> None:
        turn.runs.append(run)
        self._turns[run] = turn

    def _end(self, run: UUID, outcome: str, error: str = "") -> None:
        turn, ended = self._turns.pop(run, None), perf_counter()
        if turn is None or turn.runs[0] != run:
            return
        for each in turn.runs:  # of those that were stopped, some have said nothing
            self._turns.pop(each, None)
        if turn.replied is not None:
            outcome = "replied"  # what comes after the reply costs nobody the turn: a later turn does it
            metrics.BACKLOG.dec()
        if error:
            metrics.FAILURES.labels(turn.machine, error).inc()
        replied = turn.replied or (ended if outcome == "replied" else None)
        if turn.spoke is not None:
            metrics.FIRST_TOKEN.labels(turn.machine).observe(turn.spoke - turn.began)
        if replied is not None:
            metrics.REPLY.labels(turn.machine).observe(replied - turn.began)
            metrics.UPKEEP.labels(turn.machine).observe(ended - replied)
        metrics.TURNS.labels(turn.machine, outcome).inc()
        took = {"first_token_seconds": turn.spoke, "reply_seconds": replied, "seconds": ended}
        fields: JSON = {name: round(moment - turn.began, 3) for name, moment in took.items() if moment is not None}
        fields |= {"machine": turn.machine, "outcome": outcome} | ({"error": error} if error else {})
        _log.info("A turn has ended.", extra={"fields": fields, "ids": turn.ids})


@cache
def _upkeep_of(machine: str) -> frozenset[str]:
    return upkeep_nodes(import_module(f"questbook.graphs.{machine}.graph").graph)


@cache
def watch_turns() -> TurnWatch:
    """Count the turns of this process from now on, in whatever task or thread they are played, and what fails."""
    watching = TurnWatch()
    register_configure_hook(ContextVar("questbook_turns", default=watching), inheritable=True)
    logging.getLogger("questbook").addHandler(metrics.Failures(logging.WARNING))
    return watching
