"""What a campaign costs: calls of the model, tokens, and where LangChain knows the price, dollars.

Every turn that was played here counts, also one that was stopped, undone or played again: it was paid for. So the sum
is no part of the graph's state, which goes back, but a record beside it. Not counted are runs on LangGraph's server,
the built-in model, and calls that failed or whose provider says nothing of tokens.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple, Self

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.local.home import Home
from questbook.graphs.settings import OFFLINE
from questbook.memory.errors import StoreError
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.types import JSON

_KEY = "cost"
_log = logging.getLogger(__name__)


class Cost(NamedTuple):
    """What some turns cost: calls of a model, tokens as the provider counted them, dollars."""

    calls: int = 0
    prompt: int = 0
    answers: int = 0
    dollars: float | None = 0.0  # None: LangChain does not know the price

    def plus(self, other: Self) -> Self:
        """Add two."""
        known = None not in (self.dollars, other.dollars)
        dollars = (self.dollars or 0.0) + (other.dollars or 0.0) if known else None
        return type(self)(self.calls + other.calls, self.prompt + other.prompt, self.answers + other.answers, dollars)

    def __str__(self) -> str:
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}, {self.prompt + self.answers:,} tokens"
        return calls + (f", ${self.dollars:.4f}" if self.dollars else "")


class Costs(NamedTuple):
    """What a campaign costs: its last turn, and all turns since `since` (ISO 8601; "": none was played)."""

    last: Cost = Cost()
    total: Cost = Cost()
    since: str = ""

    @classmethod
    def of(cls, record: JSON | None) -> Self:
        """Read what was kept."""
        kept: JSON = record or {}
        last, total = (
            Cost(**{field: part for field, part in (kept.get(name) or {}).items() if field in Cost._fields})
            for name in ("last", "total")
        )
        return cls(last, total, str(kept.get("since") or ""))


async def costs_of(home: Home, user: str, campaign: str) -> Costs:
    """Return what a campaign costs, as far as it was kept."""
    return Costs.of(await home.read_item(campaign_namespace(user, campaign, _KEY), _KEY))


class UsageMeter(AsyncCallbackHandler):
    """Counts what the models of a run used, as their providers say it."""

    run_inline = True  # LangChain would make a task for each piece of an answer, or take a thread
    ignore_chain = ignore_retriever = True

    def __init__(self) -> None:
        self._lock, self._cost = threading.Lock(), Cost()

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:  # noqa: ARG002 (LangChain's method)
        """Count a call."""
        for model, prompt, answer in paid_calls(response):
            price = await asyncio.to_thread(_price, model, prompt, answer)
            with self._lock:
                self._cost = self._cost.plus(Cost(1, prompt, answer, price))

    async def keep(self, store: BaseStore, user: str, campaign: str) -> None:
        """Add what a run cost to what its campaign costs, and begin at zero. Only one process may play the campaign.

        If the store cannot write it, that is logged, because the turn itself is saved.
        """
        with self._lock:
            turn, self._cost = self._cost, Cost()
        if not turn.calls:
            return
        place = campaign_namespace(user, campaign, _KEY)
        try:
            item = await store.aget(place, _KEY, refresh_ttl=False)
            before = Costs.of(item.value if item else None)
            since = before.since or datetime.now(UTC).isoformat(timespec="seconds")
            record = {"last": turn._asdict(), "total": before.total.plus(turn)._asdict(), "since": since}
            await put_all(store, [PutOp(place, _KEY, record, False)])
        except StoreError as error:
            _log.warning("What the last turn of %r cost was not kept: %s", campaign, error)


def paid_calls(response: LLMResult) -> Iterator[tuple[str, int, int]]:
    """Yield model, tokens of the prompt and of the answer, as a provider counted them; the built-in model has none."""
    for generation in (each for several in response.generations for each in several):
        message = generation.message if isinstance(generation, ChatGeneration) else None
        usage = message.usage_metadata if isinstance(message, AIMessage) else None
        model = str(message.response_metadata.get("model_name") or "") if message else ""
        if usage and model != OFFLINE:
            yield model, usage["input_tokens"], usage["output_tokens"]


def _price(model: str, prompt: int, answer: int) -> float | None:
    """Return dollars, by the price list of langchain-community; None: the model is not on it, or has no name."""
    if not model:
        return None
    prices = import_module("langchain_community.callbacks.openai_info")
    try:
        name = prices.standardize_model_name(model)
        answers = prices.get_openai_token_cost_for_model(name, answer, token_type=prices.TokenType.COMPLETION)
        return float(answers) + float(prices.get_openai_token_cost_for_model(name, prompt))
    except ValueError:
        return None
