"""The game, the companion, an agent of `build_agent` and one with the middleware, talked to in the same way."""

import asyncio
import json

from answering import Talk
from companion_thread import Companion
from conftest import Game
from desk import AgentModel, Desk
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import FactNotes, LastTurns, TeamState, as_node
from questbook.graphs.history.history import History
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import list_visible

MACHINES = ("game", "companion", "agent", "middleware")
ASSISTANTS = MACHINES[1:]
OURS = MACHINES[:3]
"""Those whose graph is Questbook's own."""
INSIDE = tuple(f"{kind} inside" for kind in OURS)
"""The same as the one node of an app's graph."""
_JOBS = {"game": ("quest", "update"), "companion": ("companion", "facts"), "agent": ("reply", "facts")}
_CAMPAIGNS = {"game": "default", "companion": "companion", "agent": "agent:agent", "middleware": "agent:agent"}


def home(town, **more):
    """A fact that a model notes: where the user lives."""
    fact = {"text": f"The user lives in {town}.", "subject": "the user", "attribute": "home", "value": town}
    return fact | {"kind": "trait", "importance": 6} | more


class Machine:
    """One thread of a machine that keeps the last turn alone word for word, and notes the facts that it is given.

    Attributes:
        person: What the prompt calls the person's words.
        reply: What it calls the reply.
        ends: The checkpoint at the end of each turn that was played to its end.
    """

    def __init__(self, kind, model, *, user="ann", thread="1", store=None, saver=None, importance=150):
        self.name, (kind, _, inside) = kind, kind.partition(" ")
        self.kind, self.user, self.scripted, self.importance = kind, user, model, importance
        self.person, self.reply = ("player", "reply") if kind == "game" else ("user", "assistant")
        self.store, self.saver, self.ends = store or InMemoryStore(), saver or InMemorySaver(), []
        self.config = {"configurable": {"thread_id": f"{kind}-{thread}", "user": user}}
        self.settings = {"user": user, "buffer": "turns", "buffer_turns": 1, "max_reply_chars": 40_000}
        self.settings |= {"reflection_importance": importance}
        if kind == "game":
            self._of = Game(model, **self.settings)
            self._of.saver = self.saver
            self._of.keep_in(self.store)
        elif kind == "companion":
            self._of = Companion(model, self.saver, self.store, **self.settings)
        elif kind == "agent":
            self._of = Desk(saver=self.saver, store=self.store, facts=True, buffer=LastTurns(1), model=AgentModel())
            self.settings = {"user": user, "reflection_importance": importance, "model": "AgentModel"}
        else:
            notes = FactNotes(reflection="inline", reflection_importance=importance)
            self._of = Talk(self.store, user=user, saver=self.saver, facts=notes, buffer=LastTurns(1))
        self.app = self._of.agent if kind == "middleware" else self._of.app
        self.model = self._of.model
        if inside:
            parent = (
                StateGraph(TeamState).add_node("agent", as_node(self.app.builder.compile())).add_edge(START, "agent")
            )
            self.app = self._of.app = parent.compile(checkpointer=self.saver, store=self.store)

    async def begin(self):
        if self.kind == "game":
            self._of.config = self.config
            await self._of.begin()
            self.ends.append(self.checkpoint)
        return self

    async def another(self, *, user=None, thread="2"):
        """Return another thread of the machine over the same store and checkpointer; a game is begun for a new user."""
        options = {"store": self.store, "saver": self.saver, "importance": self.importance}
        other = Machine(self.name, self.scripted, user=user or self.user, thread=thread, **options)
        return await other.begin() if user else other

    @property
    def values(self):
        values = self.app.get_state(self.config).values
        return values["seats"]["agent"] if "seats" in values else values

    @property
    def checkpoint(self):
        return self.app.get_state(self.config).config

    @property
    def notices(self):
        return [entry["text"] for entry in self.values.get("notices", [])]

    def queue(self, *, reply=(), notes=(), later=()):
        """Queue answers: to the person, of notes, and of a reflection (its question, then its conclusions)."""
        if self.kind == "middleware":
            self.model.answers += [*reply, *notes, *later]
            return
        jobs = (*_JOBS[self.kind], "question", "conclude")
        for job, answers in zip(jobs, (reply, notes, later[:1], later[1:]), strict=True):
            self.model.queue(job, *answers)

    async def run(self, words, at=None, *, sync=False):
        """Run the machine with words, or with a list of messages; None: go on without input."""
        given = {"messages": [HumanMessage(words)] if isinstance(words, str) else words}
        given = None if words is None else given
        config = {"configurable": {**self.config["configurable"], **(at or self.config)["configurable"]}}
        context = None if self.kind == "middleware" else {"model": "scripted", **self.settings}
        if sync:
            await asyncio.to_thread(self.app.invoke, given, config, context=context)
        else:
            await self.app.ainvoke(given, config, context=context, durability="sync")
        self.ends.append(self.checkpoint)

    async def say(self, words, reply="Good.", *facts, at=None):
        """Play a turn in which facts are noted; return the lines of memory in its prompt.

        Args:
            words: What the person says; None: go on without input.
            reply: What they are answered.
            facts: What the model notes.
            at: A checkpoint to go on from; None: the newest.
        """
        noted = say("", call("Facts", facts=list(facts))) if facts else say("no change")
        self.queue(reply=[say(reply)], notes=[noted])
        await self.run(words, at)
        return self.memories

    def asked(self, job="reply"):
        """Return the prompts of a kind ("reply", "notes"), each as one text."""
        if self.kind == "middleware":
            notes = "You keep the facts that a conversation teaches"
            prompts = [prompt for prompt in self.model.prompts if (notes in prompt[0].text) is (job == "notes")]
        else:
            prompts = self.model.asked(_JOBS[self.kind][job == "notes"])
        return ["\n".join(message.text for message in prompt) for prompt in prompts]

    @property
    def memories(self):
        """The lines of memory in the last prompt of a reply."""
        told = self.asked()[-1].partition("<memories>\n")[2].partition("\n</memories>")[0]
        return [json.loads(line) for line in told.splitlines()]

    def records(self, what="exchanges"):
        """Return what all branches together have in the store, in the order of the turns."""
        place = campaign_namespace(self.user, _CAMPAIGNS[self.kind], what)
        return sorted((item.value for item in self.store.search(place, limit=1000)), key=lambda value: value["turn"])

    async def sees(self, what="exchanges"):
        """Return what the thread's checkpoint may see: what the person said in each turn, or the texts of its facts."""
        place = campaign_namespace(self.user, _CAMPAIGNS[self.kind], what)
        items = await list_visible(self.store, place, self.values["timeline"])
        said = [item.value.get("player") or item.value["text"] for item in items]
        return said[1:] if self.kind == "game" and what == "exchanges" else said  # the interview is the first turn

    async def undo(self):
        """Take the last turn back, as a person does; an agent of LangChain's goes on from the turn's beginning."""
        if self.kind == "middleware":
            self.ends.pop()
            return self.ends[-1]
        await History(self.app, self.config, self.app.builder.context_schema.of(self.settings)).undo()
        return None
