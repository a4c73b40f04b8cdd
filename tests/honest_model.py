"""A scripted model that is honest: asked about the past, it answers what its prompt says, or that it does not know."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from fake_openai import Reply, call, say
from forty_turns_script import CHARACTER, FILLER, HIDDEN_IN, SCRIPT
from misbehaviours import SECRET


def job(body: Mapping[str, Any]) -> str:
    """Say what a request is for: "interview", "quest", "update", "reflect" or "condense"."""
    tools = {tool["function"]["name"] for tool in body.get("tools", [])}
    jobs = {
        "CharacterNotebook": "interview",
        "roll_dice": "quest",
        "StateNotebook": "update",
        "Questions": "reflect",
        "Reflection": "reflect",
    }
    return next((kind for name, kind in jobs.items() if name in tools), "condense")


def text_of(body: Mapping[str, Any]) -> str:
    """Return all that the model is given, but the newest message of the player."""
    contents = [str(message.get("content") or "") for message in body["messages"]]
    return "\n".join(contents).replace(_newest(body), "")


def honest_answer(body: dict[str, Any]) -> Reply:
    """Answer as an honest model would that sees nothing but this prompt."""
    kind = job(body)
    if kind == "interview":
        return call("CharacterNotebook", CHARACTER)
    if kind == "quest":
        return _narration(body)
    if kind == "update":
        return _notes(body)
    if kind == "condense":
        return _summary(body)
    return say("nothing")


def _newest(body: Mapping[str, Any]) -> str:
    """Return the newest message of the player: in tags behind sections, or all there is."""
    players = {turn.player for turn in SCRIPT}
    users = [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
    said = [(re.findall(r"<message>\n(.*?)\n</message>", text, re.DOTALL) or [text])[-1] for text in users]
    return next((text for text in map(html.unescape, reversed(said)) if text in players), SCRIPT[0].player)


def _narration(body: dict[str, Any]) -> Reply:
    newest = _newest(body)
    turn = next(turn for turn in SCRIPT if turn.player == newest)
    if turn.answer is not None:
        knows = turn.answer and turn.answer in text_of(body)
        return say(f"You remember: {turn.answer}." if knows else "You do not know.")
    if turn.roll and body["messages"][-1]["role"] != "tool":
        return call("roll_dice", turn.roll)
    answer = say(f"{turn.reply} {FILLER}")
    tools = [tool["function"] for tool in body["tools"] if "secret" in tool["function"]["name"].lower()]
    if SCRIPT.index(turn) == HIDDEN_IN - 1 and tools:
        *names, text = tools[0]["parameters"]["required"]
        answer += call(tools[0]["name"], dict.fromkeys(names, "the twins") | {text: SECRET})
    return answer


def _notes(body: dict[str, Any]) -> Reply:
    """Note the turns that stand in the prompt's section of turns."""
    text = str(body["messages"][-1]["content"])
    section = re.findall(r"<turns>(.*?)</turns>", "\n".join(str(m["content"]) for m in body["messages"]), re.DOTALL)
    text = section[-1] if section else text
    page: dict[str, Any] = {}
    facts: list[Mapping[str, Any]] = []
    for turn in SCRIPT:
        if turn.reply and turn.reply in text:
            for name, value in turn.page.items():
                page[name] = {**page.get(name, {}), **value} if isinstance(value, Mapping) else value
            facts += turn.facts
    answer = Reply()
    if page:
        answer += call("StateNotebook", page)
    if facts:
        answer += call("Facts", {"facts": facts})
    return answer if page or facts else say("no change")


def _summary(body: dict[str, Any]) -> Reply:
    """Keep the summary that was there, and add the first sentences of the replies."""
    text = "\n".join(str(message["content"]) for message in body["messages"])
    before = re.findall(r"<summary>\n(.*?)\n</summary>", text, re.DOTALL)
    lines = [turn.reply.split(". ")[0] + "." for turn in SCRIPT if turn.reply and turn.reply in text]
    return say(" ".join([*before[-1:], *lines]))
