"""What turns cost: calls of the model, tokens, and where LangChain knows the price, dollars."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any, NamedTuple

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from questbook.types import JSON


class Cost(NamedTuple):
    """What some turns cost.

    Attributes:
        calls: Calls of a model.
        prompt: Tokens of prompts, as the provider counted them.
        answers: Tokens of answers.
        dollars: The price; None: LangChain does not know it.
    """

    calls: int = 0
    prompt: int = 0
    answers: int = 0
    dollars: float | None = 0.0

    def plus(self, other: Cost) -> Cost:
        """Add two."""
        known = self.dollars is not None and other.dollars is not None
        return Cost(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.answers + other.answers,
            (self.dollars or 0.0) + (other.dollars or 0.0) if known else None,
        )

    @classmethod
    def of(cls, kept: JSON) -> Cost:
        """Read what the shelf kept."""
        fields = {name: kept[name] for name in cls._fields if name in kept}
        return cls(**fields)


class UsageMeter(BaseCallbackHandler):
    """Counts what the models of a run used. Built-in models cost nothing, and are counted as calls alone."""

    def __init__(self) -> None:
        self._lock, self._cost = threading.Lock(), Cost()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:  # noqa: ARG002 (LangChain's method)
        """Count a call."""
        cost = Cost(calls=1)
        for generations in response.generations:
            for generation in generations:
                message = generation.message if isinstance(generation, ChatGeneration) else None
                if isinstance(message, AIMessage) and (usage := message.usage_metadata):
                    model = str(message.response_metadata.get("model_name") or "")
                    price = _price(model, usage["input_tokens"], usage["output_tokens"])
                    cost = Cost(1, usage["input_tokens"], usage["output_tokens"], price)
        with self._lock:
            self._cost = self._cost.plus(cost)

    def read(self) -> Cost:
        """Return what was counted since the last time, and begin at zero."""
        with self._lock:
            cost, self._cost = self._cost, Cost()
        return cost


def _price(model: str, prompt: int, answer: int) -> float | None:
    """Return dollars, by the price list of langchain-community; None: the model is not on it."""
    prices = import_module("langchain_community.callbacks.openai_info")
    try:
        name = prices.standardize_model_name(model)
        answers = prices.get_openai_token_cost_for_model(name, answer, token_type=prices.TokenType.COMPLETION)
        return float(answers) + float(prices.get_openai_token_cost_for_model(name, prompt))
    except ValueError:
        return None
