"""A probe: what the model would see if a player asked now. It only reads, so the campaign does not know of it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime

from questbook.graphs.dungeon_master.prompts import quest_prompt
from questbook.graphs.dungeon_master.quest import recall
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.local.game import Game
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.turn.recall import memory_line
from questbook.memory.facts.supersession import replace_superseded
from questbook.memory.recall.query import Query, WeightedText
from questbook.memory.recall.recall import recall as recall_records
from questbook.memory.timeline.namespaces import campaign_namespace

FIRST = 10
"""Records that count as found, before the budget of the prompt."""


class Probe(NamedTuple):
    """What came of a question; all texts in small letters.

    Attributes:
        found: The first ten records that recall puts in order, searched as the game does, with their other names.
        conversation: The turns that stand in the prompt word for word.
        summary: The running summary.
        memories: The lines that recall put into the prompt.
        facts: Those of them that tell a fact as it is, neither a rumour nor what was said.
        player: All that the player may see of it: the view, what is recalled for them, the recap.
    """

    found: str
    conversation: str
    summary: str
    memories: str
    facts: str
    player: str

    @property
    def prompt(self) -> str:
        """What of the prompt counts: the conversation and the memories, neither the summary nor the quest's page."""
        return f"{self.conversation}\n{self.memories}"


async def state_of(game: Game) -> dict[str, Any]:
    """Return the state after the last turn, as the next one finds it."""
    graph = await game.load()
    return dict((await graph.aget_state(game.config)).values)


async def probe(game: Game, values: dict[str, Any], question: str) -> Probe:
    """Ask, by the nodes and prompts of the game itself, up to the prompt that the model would be given."""
    graph, context = await game.load(), game.context
    info = ExecutionInfo(
        checkpoint_id="", checkpoint_ns="", task_id="", thread_id=game.thread_id, run_id=None, node_attempt=1
    )
    runtime: Runtime[Any] = Runtime(context=context, store=graph.store, execution_info=info)
    said = HumanMessage(question, id="probe")
    asked = DungeonState.model_validate(values | {"messages": [*values["messages"], said]})
    opened = await recall(asked, runtime)
    if opened["notices"]:
        raise SystemExit(f"The probe {question!r} failed: {opened['notices']}")
    timeline = [(branch, turn) for branch, turn in opened["timeline"]]
    state = asked.model_copy(update={"turn": opened["turn"], "timeline": timeline, "recalled": opened["recalled"]})
    prompt = quest_prompt(state, context)
    exchanges, facts = (campaign_namespace(context.user, context.campaign, name) for name in ("exchanges", "facts"))

    async def records(limit: int, *, secrets: bool) -> str:
        found = await recall_records(
            graph.store,
            [exchanges, facts],
            Query(
                question,
                hints=[WeightedText(state.quest.scene, 0.3)],
                timeline=timeline,
                limit=limit,
                visibility="all" if secrets else "viewer",
                viewer=[state.character.name],
                aliases=True,
                refine=partial(replace_superseded, graph.store, facts=facts, timeline=timeline),
            ),
        )
        return "\n".join(str(one.value["text"]) for one in found).casefold()

    view = PlayerView.of(values | {"recalled": state.recalled})
    recalled = state.recalled or []
    told = [one for one in recalled if one["kind"] not in ("exchange", "rumour") and not one.get("claimed_by")]
    return Probe(
        found=await records(FIRST, secrets=True),
        conversation="\n".join(message.text for message in prompt.conversation[:-1]).casefold(),
        summary=state.summary.casefold(),
        memories=next((section.text for section in prompt.behind if section.name == "memories"), "").casefold(),
        facts="\n".join(memory_line(one) for one in told).casefold(),
        player=f"{view.model_dump_json()}\n{view.recap()}\n{await records(24, secrets=False)}".casefold(),
    )
