"""The game, the companion, an agent of `build_agent` and one with the middleware, talked to in the same way."""

import json

from answering import Talk
from companion_thread import Companion
from conftest import Game
from desk import Desk
from scripted import call, say

from questbook import FactNotes, LastTurns

MACHINES = ("game", "companion", "agent", "middleware")
ASSISTANTS = MACHINES[1:]


class Machine:
    """One thread of a machine that keeps the last turn alone word for word, and notes the facts that it is given.

    Attributes:
        person: What the prompt calls the person's words.
        reply: What it calls the reply.
    """

    def __init__(self, kind, model):
        self.kind = kind
        self.person, self.reply = ("player", "reply") if kind == "game" else ("user", "assistant")
        settings = {"buffer": "turns", "buffer_turns": 1, "max_reply_chars": 40_000}
        self._of = {
            "game": lambda: Game(model, **settings),
            "companion": lambda: Companion(model, **settings),
            "agent": lambda: Desk(facts=True, buffer=LastTurns(1)),
            "middleware": lambda: Talk(facts=FactNotes(), buffer=LastTurns(1)),
        }[kind]()
        self.config = self._of.thread if kind == "middleware" else self._of.config

    async def begin(self):
        if self.kind == "game":
            await self._of.begin()
        return self

    @property
    def checkpoint(self):
        app = self._of.agent if self.kind == "middleware" else self._of.app
        return app.get_state(self.config).config

    async def say(self, words, reply="Good.", *facts, at=None):
        """Play a turn in which facts are noted; return the lines of memory in its prompt.

        Args:
            words: What the person says.
            reply: What they are answered.
            facts: What the model notes.
            at: A checkpoint to go on from; None: the newest.
        """
        noted = say("", call("Facts", facts=list(facts))) if facts else say("no change")
        of, config = self._of, at or self.config
        if self.kind == "middleware":
            await of.say(words, config, reply, noted)
            prompt = of.model.prompts[-2][0].text
        elif self.kind == "agent":
            await of.say(words, config=config, reply=say(reply), facts=noted)
            prompt = of.prompts("reply")[-1]
        else:
            job, notes = ("quest", "update") if self.kind == "game" else ("companion", "facts")
            of.model.queue(job, say(reply)).queue(notes, noted)
            of.config = config
            await (of.play(words) if self.kind == "game" else of.say(words))
            of.config = self.config
            prompt = "\n".join(message.text for message in of.model.asked(job)[-1])
        told = prompt.partition("<memories>\n")[2].partition("\n</memories>")[0]
        return [json.loads(line) for line in told.splitlines()]
