"""What the model is asked when it reflects, and the two tools with which it answers."""

import json
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from questbook.graphs.turn.prompt import Section, tag
from questbook.memory.facts.reflection import MAX_INSIGHTS, MAX_QUESTIONS, QUESTIONS, REFLECTION, Evidence
from questbook.memory.text.words import count_tokens
from questbook.notebooks import render_value
from questbook.types import JSON

_SHOWN = ("kind", "turn", "story_time", "subject", "claimed_by", "known_by", "importance", "text")
_TEXTS: JSON = tomllib.loads(files("questbook.graphs.reflect").joinpath("prompts.toml").read_text("utf-8"))
_TOOLS = files("questbook.graphs.reflect").joinpath("tools.json").read_text("utf-8")
QUESTION = _TEXTS["QUESTION"].format(MAX_QUESTIONS=MAX_QUESTIONS, QUESTIONS=QUESTIONS)
CONCLUDE = _TEXTS["CONCLUDE"].format(MAX_INSIGHTS=MAX_INSIGHTS, REFLECTION=REFLECTION)


def question_prompt(facts: Sequence[Evidence]) -> list[BaseMessage]:
    """Make the prompt that asks for questions about facts, which come in the order of their turns."""
    ordered = sorted(facts, key=lambda fact: (int(fact.value.get("turn") or 0), str(fact.value.get("at")), fact.key))
    lines = [render_value(_shown_fields(fact.value)) for fact in ordered]
    return [SystemMessage(QUESTION), HumanMessage(_lines("facts", lines))]


def conclude_prompt(evidence: Sequence[Evidence], questions: Sequence[str]) -> list[BaseMessage]:
    """Make the prompt that asks for insights and contradictions; memories are numbered from 1."""
    memories = [render_value({"number": n} | _shown_fields(record.value)) for n, record in enumerate(evidence, 1)]
    lines = [render_value(question) for question in questions]
    return [SystemMessage(CONCLUDE), HumanMessage(f"{_lines('memories', memories)}\n\n{_lines('questions', lines)}")]


def fit_budget(evidence: Sequence[Evidence], budget: int) -> list[Evidence]:
    """Keep the first records that fit into a budget of tokens, at least one; skip those that do not fit."""
    kept: list[Evidence] = []
    for record in evidence:
        cost = count_tokens(render_value(_shown_fields(record.value)))
        if cost <= budget or not kept:
            kept.append(record)
            budget -= cost
    return kept


def questions_tool() -> JSON:
    """Return the tool by which a model hands over its questions."""
    tool = _tool(QUESTIONS)
    tool["function"]["parameters"]["properties"]["questions"]["maxItems"] = MAX_QUESTIONS
    return tool


def reflection_tool() -> JSON:
    """Return the tool by which a model hands over what it concluded."""
    return _tool(REFLECTION)


def _lines(name: str, lines: Sequence[str]) -> str:
    return tag(Section(name, "\n".join(lines)))


def _shown_fields(record: JSON) -> JSON:
    return {name: record[name] for name in _SHOWN if record.get(name) not in (None, "", [])}


def _tool(name: str) -> JSON:
    return {"type": "function", "function": {"name": name, **json.loads(_TOOLS)[name]}}
