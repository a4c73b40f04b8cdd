"""Arguments that make no sense are refused when an object is made, with the value and what is expected."""

import re

import pytest
from langchain.tools import tool
from langgraph.store.memory import InMemoryStore

from questbook import (
    FactNotes,
    LastTurns,
    Mode,
    Query,
    Recall,
    RunningSummary,
    TimelineMemoryMiddleware,
    TokenBudget,
    Weights,
    build_agent,
)


@tool
def search_web(words: str) -> str:
    """Search."""
    return words


def middleware(**options):
    return TimelineMemoryMiddleware(user="ann", **options)


def agent(**options):
    return build_agent([], **options)


NONSENSE = [
    (middleware, "tools", ["yes", [search_web], None, 1], "expected True or False"),
    (middleware, "shared", ["x", 1], "expected True or False"),
    (middleware, "scope", ["campaign", "everyone", 5], "expected 'user' or 'thread'"),
    (middleware, "recall", [800, {}], "expected Recall"),
    (middleware, "buffer", [6, LastTurns], "expected a buffer policy"),
    (middleware, "agent_name", ["a:b", "", 5], "expected a name without a colon"),
    (agent, "tools", ["yes", [5], search_web, {"a": search_web}, ["search_web"]], "expected a list of tools"),
    (agent, "shared", ["x", 5], "expected a list of the notebooks"),
    (agent, "scope", ["everyone", None], "expected 'thread', 'user' or 'campaign'"),
    (agent, "facts", ["x", 5], "expected True or False"),
    (agent, "handoffs", [["desk"], {"desk": 5}], "expected node to when"),
    (agent, "modes", [["help"]], "expected a list of modes"),
    (agent, "instructions", [5], "expected a text"),
    *((made, "model", [5, "", object()], "expected a chat model") for made in (middleware, agent)),
    *((made, "remember_tools", ["search", [search_web], {"a": 1}], "expected names") for made in (middleware, agent)),
    (Recall, "tokens", [-1, 0.5, True, None], "whole number from 0"),
    (Recall, "most", [0, -1, "x"], "whole number from 1"),
    (Recall, "max_cosine_distance", [-0.1, 3, "x", float("nan")], "number from 0 to 2, or None"),
    (Recall, "weights", [{}, 1, Weights], "expected Weights"),
    (Recall, "rerank", [5, object], "expected an async function"),
    *(
        (made, "metadata", [5, {1: 2}, {"a": object()}], "expected a JSON object")
        for made in (Recall, middleware, agent)
    ),
    (LastTurns, "turns", [-1, 1.5, "x", None], "whole number from 0"),
    (TokenBudget, "tokens", [-1, "x", None], "whole number from 0"),
    (RunningSummary, "offset", [-1, "x", None], "whole number from 0"),
    (lambda **given: TokenBudget(100, **given), "keep", [-1, 2, "x"], "number from 0 to 1"),
    (lambda **given: TokenBudget(100, **given), "summarizer", ["x", object], "with the method fold"),
    (lambda **given: RunningSummary(1, **given), "summarizer", ["x", None], "with the method fold"),
    (FactNotes, "noting", ["x", None], "expected 'inline' or 'background'"),
    (FactNotes, "reflection", ["x", None, True], "expected 'inline', 'background' or 'off'"),
    (FactNotes, "reflection_importance", [0, -1, "x"], "whole number from 1"),
    (Query, "text", [5, None], "as a text"),
    (lambda **given: Query("a", **given), "limit", [-1, "x", None], "whole number from 0"),
    (lambda **given: Query("a", **given), "budget", [-1, "x"], "whole number from 0, or None"),
    (lambda **given: Query("a", **given), "reranked", [-1, "x"], "whole number from 0"),
    (lambda **given: Query("a", **given), "visibility", ["x", None], "expected 'viewer' or 'all'"),
    (lambda **given: Query("a", **given), "weights", [{}], "expected Weights"),
    (lambda **given: Query("a", **given), "metadata", [["x"]], "expected a JSON object"),
    (agent().compile, "store", [{}, "memory.db", InMemoryStore], "expected a store"),
]


@pytest.mark.parametrize(
    ("made", "name", "value", "expected"),
    [(made, name, value, expected) for made, name, values, expected in NONSENSE for value in values],
)
def test_what_makes_no_sense_is_refused_by_name_and_value(made, name, value, expected):
    with pytest.raises(ValueError, match=re.escape(expected)) as error:
        made(**{name: value})
    assert name.removeprefix("agent_") in str(error.value)
    shown = value[0] if name in ("tools", "modes") and isinstance(value, list) and made is agent else value
    assert repr(shown)[:40] in str(error.value)


def test_what_makes_sense_is_taken():
    middleware(tools=True, model="offline", shared=True, scope="thread", remember_tools=["search_web"], recall=Recall())
    agent(tools=[search_web, len], handoffs={"desk": "an invoice"}, modes=[Mode("a")], scope="campaign", facts=True)
    assert LastTurns(0).turns == RunningSummary(0).offset == Recall(tokens=0).tokens == 0
    assert agent().compile(store=InMemoryStore())
