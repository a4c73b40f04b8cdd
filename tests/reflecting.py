"""What a scripted model says to a reflection, and what the store holds of it."""

import re

from fact_play import play, stored
from scripted import call, say

from questbook.memory.timeline.namespaces import campaign_namespace

REFLECTIONS, SETTLED = (campaign_namespace("adventurer", "default", name) for name in ("reflections", "settled"))
MILL = {"text": "Oda never leaves the mill.", "subject": "Oda", "kind": "trait", "importance": 6}
FAIR = {"text": "Oda danced at the fair of Brack.", "subject": "Oda", "kind": "event", "importance": 6}
DEBT = {"text": "Goran owes the ferryman forty crowns.", "subject": "Goran", "kind": "event", "importance": 6}
INSIGHT = "Goran avoids the river because of what he owes."


def ask(*questions):
    return say("", call("Questions", questions=list(questions or ["What does Goran fear?"])))


def numbers(messages):
    """Numbers of the memories in a prompt, by their text."""
    return {m[2]: int(m[1]) for m in re.finditer(r'"number": (\d+).*?"text": "(.*?)"', messages[-1].text)}


def conclude(*insights, ended="", holds="", **more):
    """Answer with insights, each (text, texts that it cites), and one judgement, by the numbers in the prompt."""

    def answer(messages):
        known = numbers(messages)
        given = [{"text": text, "cites": [known[c] for c in cites], **more} for text, cites in insights]
        judged = [{"ended": known[ended], "holds": known[holds]}] if ended else []
        return say("", call("Reflection", insights=given, contradictions=judged))

    return answer


async def tell(game, words, *given, reply=None, **answers):
    """Play a turn whose reply says the facts that it hands over."""
    reply = reply or " ".join(["So it is.", *(fact["text"] for fact in given)])
    return await play(game, words, *given, reply=reply, **answers)


async def insights(game):
    return {key: v for key, v in (await stored(game)).items() if v["cites"]}


def queue_client(runs_of):
    """Return a class in the place of the server's client, whose queue is what `runs_of(thread, status)` returns."""

    class Queue:
        runs = property(lambda self: self)

        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            return None

        async def list(self, thread, *, status, limit):
            return runs_of(thread, status)

    return Queue


class Client:
    """Stands for LangGraph Server: keeps what was asked of it."""

    def __init__(self):
        self.threads = self.runs = self
        self.made, self.waiting = [], []
        self.thread = {"status": "idle", "values": None}

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def create(self, *args, **fields):
        if args:
            self.made.append((*args, fields))
            self.waiting.append(fields)

    async def get(self, thread):
        return self.thread

    async def list(self, thread, *, status=None, limit):
        if status is None:
            return [{"run_id": f"run {len(self.made)}"}] if self.made else []
        return self.waiting[:limit] if status == "pending" else []
