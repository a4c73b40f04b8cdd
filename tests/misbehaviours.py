"""Thirty ways in which a model misbehaves at the table, planned over forty turns.

Each entry changes the answer that an honest model would give to one kind of request in one turn: `forty_turns.py` plays
them. All have been seen with real models and providers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from fake_openai import Behaviour, Reply, call, cut, hang, hang_midstream, say, status

SECRET = "the ferryman Orrin drowned the twins and sold their boat to the abbot"
"""What only the dungeon master knows of the script's story, word for word."""


class Misbehaviour(NamedTuple):
    """One way to misbehave."""

    name: str  # what the model or its provider does
    turn: int  # in which turn; of a summary, which is not made in every turn: from which turn on
    job: str  # in which kind of request: "quest", "update" or "condense"
    change: Callable[[Reply], Behaviour]  # makes of the honest answer what is sent
    times: int = 1  # in how many requests of this kind in this turn; afterwards the model is honest again


def _first_call(answer: Reply) -> tuple[str, dict[str, Any]]:
    tool, arguments = answer.calls[0]
    return tool, json.loads(arguments)


def _as_text(pattern: str) -> Callable[[Reply], Behaviour]:
    """Write the calls as text: `pattern` has places for `name`, `arguments` and, for both, `both`."""

    def change(answer: Reply) -> Behaviour:
        texts = []
        for tool, arguments in answer.calls:
            both = json.dumps({"name": tool, "arguments": json.loads(arguments)})
            texts.append(pattern % {"name": tool, "arguments": arguments, "both": both})
        return say(answer.text + "\n".join(texts))

    return change


def _with(tool: str, **fields: Any) -> Callable[[Reply], Behaviour]:
    """Add fields to the call of one tool; make the call if there is none."""

    def change(answer: Reply) -> Behaviour:
        calls = {name: json.loads(arguments) for name, arguments in answer.calls}
        calls.setdefault(tool, {})
        calls[tool] |= fields
        return replace(answer, calls=tuple((name, json.dumps(arguments)) for name, arguments in calls.items()))

    return change


def _with_fact(**fields: Any) -> Callable[[Reply], Behaviour]:
    """Add a fact to the call of the tool Facts."""

    def change(answer: Reply) -> Behaviour:
        facts = [json.loads(arguments)["facts"] for name, arguments in answer.calls if name == "Facts"]
        return _with("Facts", facts=[*(facts[0] if facts else []), fields])(answer)

    return change


def _broken_arguments(answer: Reply) -> Behaviour:
    return replace(answer, calls=tuple((tool, arguments[:-2]) for tool, arguments in answer.calls))


def _bad_roll(**fields: Any) -> Callable[[Reply], Behaviour]:
    return lambda answer: _with("roll_dice", **fields)(answer) if answer.calls else answer


SECTION = f"<quest>\nsecrets: {SECRET}\n</quest>"
OVERFLOW = {
    "message": "This model's maximum context length is 4096 tokens. However, your messages are longer.",
    "code": "context_length_exceeded",
}
PLAN = [
    # The narrator.
    Misbehaviour("answers with nothing", 3, "quest", lambda _: say("")),
    Misbehaviour("is refused with 429, then served", 4, "quest", lambda _: status(429, headers={"Retry-After": "0"})),
    Misbehaviour("breaks off in the middle of the reply", 5, "quest", lambda answer: cut(6, answer)),
    Misbehaviour("closes the stream politely, unfinished", 6, "quest", lambda answer: cut(6, answer, politely=True)),
    Misbehaviour("falls silent in the middle of the reply", 7, "quest", lambda answer: hang_midstream(6, answer)),
    Misbehaviour("asks for a roll in fenced JSON", 9, "quest", _as_text("```json\n%(both)s\n```")),
    Misbehaviour("asks for a roll in <tool_call> tags", 10, "quest", _as_text("<tool_call>\n%(both)s\n</tool_call>")),
    Misbehaviour("asks for a roll as Mistral does", 11, "quest", _as_text("[TOOL_CALLS] [%(both)s]")),
    Misbehaviour("rolls with advantage none", 12, "quest", _bad_roll(advantage="none")),
    Misbehaviour("rolls dice that there are not", 13, "quest", _bad_roll(expression="1d20 + DEX mod")),
    Misbehaviour("calls a tool that there is not", 14, "quest", lambda _: call("open_door", {"door": "abbey"})),
    Misbehaviour("tells the secret once", 15, "quest", lambda answer: say(f"You think of it: {SECRET}. {answer.text}")),
    Misbehaviour("tells the secret twice", 16, "quest", lambda answer: say(f"{answer.text} And {SECRET}!"), times=2),
    Misbehaviour("repeats the prompt's sections", 17, "quest", lambda answer: say(f"{SECTION}\n{answer.text}")),
    Misbehaviour("never stops", 18, "quest", lambda answer: say(answer.text + " The bells toll on." * 4_000)),
    Misbehaviour("overflows its context", 19, "quest", lambda _: status(400, **OVERFLOW)),
    Misbehaviour("writes the page itself", 20, "quest", _with("StateNotebook", gold=1000)),
    # The note-taker.
    Misbehaviour("notes in fenced JSON", 21, "update", _as_text("Here are the notes:\n```json\n%(both)s\n```")),
    Misbehaviour("notes as Llama does", 22, "update", _as_text('{"name": "%(name)s", "parameters": %(arguments)s}')),
    Misbehaviour("notes in prose, twice", 23, "update", lambda _: say("I have noted all that happened."), times=2),
    Misbehaviour("sends the engine's fields back", 24, "update", _with("StateNotebook", condition={"max_hp": 8})),
    Misbehaviour("sends two fields that there are not", 25, "update", _with("StateNotebook", STR=12, golds=3)),
    Misbehaviour("sends arguments that are no JSON", 26, "update", _broken_arguments),
    Misbehaviour("does not answer when it should note", 27, "update", lambda _: hang()),
    Misbehaviour("deletes what matters", 28, "update", _with("StateNotebook", facts={"ledger": None})),
    Misbehaviour(
        "raises the dead", 29, "update", _with("StateNotebook", people={"Brother Anselm": {"alive": True}}), times=9
    ),
    Misbehaviour("overfills the page", 30, "update", _with("StateNotebook", scene="The rain falls. " * 600)),
    Misbehaviour("notes a fact of a kind that there is not", 31, "update", _with_fact(text="It rains.", kind="mood")),
    # The summary.
    Misbehaviour("does not answer when it should summarise", 8, "condense", lambda _: hang()),
    Misbehaviour("summarises with nothing", 24, "condense", lambda _: say(""), times=2),
    Misbehaviour(
        "puts tags into the summary", 32, "condense", lambda answer: say(f"</summary><quest>{answer.text}</quest>")
    ),
]
"""The plan; a turn may have several."""
