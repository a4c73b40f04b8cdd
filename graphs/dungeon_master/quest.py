"""A turn of the quest: `recall` opens it and finds memories of this timeline, `run_quest` answers the player."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.dice import ROLL_DICE
from questbook.graphs.dungeon_master.facts import KEEP_SECRET, read_secrets
from questbook.graphs.dungeon_master.prompts import quest_prompt
from questbook.graphs.dungeon_master.sheet import fill_sheet
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.dungeon_master.told_rolls import NOTICE, ToldRolls
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.recall import Always, Recall, RecallPlan, Seen, recall_or_notice, with_recalled
from questbook.graphs.turn.repetition import Told
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.state import Notice, failure_notice, notice
from questbook.graphs.turn.tool_calls import MOST_CALLS, schemas_of
from questbook.graphs.turn.turn import is_private, open_turn
from questbook.memory.facts.reflection import importance_of
from questbook.memory.facts.validity import keep_valid, read_records
from questbook.memory.recall.query import Reason, Recalled, WeightedText
from questbook.memory.store.any_store import newest_items
from questbook.memory.timeline.namespaces import player_namespace
from questbook.memory.timeline.records import WITHHELD
from questbook.memory.timeline.timeline import Segment, exchange_key, visible_filters
from questbook.notebooks import NotebookError, render_value
from questbook.types import JSON

_SCENE_WEIGHT = 0.3  # the scene helps where the words say little ("I ask her again"), and must not outvote them
_SHARE = 4  # secrets of the turns in the buffer may take a quarter of the budget; so may the player's wishes
_LATEST = 2  # turns before this one that are in the prompt whatever the message says, also in a new session
_LEAST_FOR_WISHES = 100  # tokens: a small budget must hold a limit of the player's, too
_MOST_READ = 64  # of either, the latest are read


async def recall(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Open the turn and recall for it; what a person changed on the character's page by hand takes effect here."""
    opened = open_turn(state, runtime)
    notices: list[Notice] = opened["notices"]
    try:
        opened |= fill_sheet(state.character, state.character, state.quest)
    except NotebookError as error:
        text = "The rules could not fill up the character's page."
        notices.append(failure_notice(opened["turn"], "recall", text, error))
    now = state.model_copy(update={"turn": opened["turn"], "timeline": opened["timeline"]})
    recalled = await recall_or_notice(now, runtime, recall_plan)
    return {**opened, **recalled, "notices": [*notices, *recalled["notices"]]}


async def run_quest(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Answer the player, or ask for dice first; what the model keeps secret beside that waits for `update_state`."""
    state = await with_recalled(state, runtime, recall_plan)
    private, told = is_private(state), ToldRolls(roll for roll in state.rolls if roll.get("turn") == state.turn)
    prompt, rounds = quest_prompt(state, runtime.context), runtime.context.max_roll_rounds
    tools = [ROLL_DICE, *([] if private else [KEEP_SECRET]), *schemas_of(runtime.context.TOOLS)]
    silent = [KEEP_SECRET["function"]["name"]]
    update, handed_over = await reply(
        state, runtime, prompt, node="run_quest", tools=tools, silent=silent, most_rounds=rounds, marker=told
    )
    if told.found:
        update["notices"].append(notice(state.turn, "run_quest", NOTICE))
    secrets = [] if private else read_secrets(call.args for call in handed_over[:MOST_CALLS])
    if len(secrets) < len(handed_over) and not private:
        text = "The dungeon master meant to keep something in mind that could not be read."
        update["notices"].append(notice(state.turn, "run_quest", text))
    return update | {"new_secrets": [*state.new_secrets, *secrets]}


async def recall_plan(state: DungeonState, runtime: Runtime[Context]) -> RecallPlan:
    """Return the plan: what fits the player's message best, and the scene a little: exchanges, facts, the player, lore.

    What the player likes and does not want comes along whatever the message says, and so do the last two turns and the
    secrets of the turns that are in the prompt.
    """
    context = runtime.context
    exchanges, facts, lore = (context.campaign_namespace(name) for name in ("exchanges", "facts", "lore"))
    player = player_namespace(context.user, "facts")

    secrets = partial(buffered_secrets, facts=facts)
    latest = partial(latest_turns, exchanges=exchanges, written=state.remembered_through)
    shown, page = conversation(state, context), state.quest.as_json()
    entries = (entry for field in ("quests", "people", "facts", "secrets") for entry in page[field].items())
    said = (message.text for message in shown if isinstance(message, AIMessage))
    return RecallPlan(
        Recall.of(context),
        shown=shown,
        told=Told([*(f"{name} {render_value(entry)}" for name, entry in entries), state.summary, *said]),
        now=datetime.now(UTC).astimezone(),  # days change at the player's midnight
        facts=facts,
        shown_facts=False,
        lasting=[lore, player],
        hints=[WeightedText(state.quest.scene, _SCENE_WEIGHT)],
        always=[
            Always(partial(player_wishes, player=player), lambda n: min(n, max(n // _SHARE, _LEAST_FOR_WISHES))),
            Always(secrets, lambda n: n // _SHARE),
            Always(latest, lambda n: n // 2, shortens=True),
        ],
        character=state.character.name or "",
        day=state.quest.clock.day,
        aliases=True,  # "the Heron" of the message is also called Goran, mostly
    )


async def buffered_secrets(store: BaseStore, seen: Seen, facts: tuple[str, ...]) -> list[Recalled]:
    """Return the secrets of the turns that are in the prompt word for word, as far as they hold; the latest first.

    Nobody said them, and the dungeon master must not forget them until the turn leaves the buffer.
    """
    filters = [{"kind": "secret"} | segment for segment in visible_filters(seen.timeline, first=seen.since)]
    return await _valid(store, facts, filters, seen.timeline, "a secret that the scene may need")


async def player_wishes(store: BaseStore, _: Seen, player: tuple[str, ...]) -> list[Recalled]:
    """Return what the player likes and does not want, as far as it holds; what matters most first, then the latest."""
    wishes = await _valid(store, player, [{"kind": "preference"}], None, "you said what you like or do not want")
    return sorted(wishes, key=lambda wish: importance_of(wish.value), reverse=True)


async def latest_turns(store: BaseStore, seen: Seen, exchanges: tuple[str, ...], written: int) -> list[Recalled]:
    """Return the exchanges of the latest turns that are `written` and not in the prompt, the latest first."""
    turns = range(max(seen.turn - _LATEST, 1), min(seen.since, written + 1))
    keys = [exchange_key(seen.timeline, turn) for turn in reversed(turns)]
    records = await read_records(store, exchanges, keys) if keys else {}
    recalled = partial(Recalled, namespace=exchanges, reason=Reason(because="is one of the last turns"))
    return [recalled(key, value) for key, value in records.items() if not value.get(WITHHELD)]


async def _valid(
    store: BaseStore, space: tuple[str, ...], filters: Sequence[JSON], timeline: Sequence[Segment] | None, because: str
) -> list[Recalled]:
    items, why = await newest_items(store, space, filters, _MOST_READ), Reason(because=because)
    records = [Recalled(item.key, item.value, namespace=tuple(item.namespace), reason=why) for item in reversed(items)]
    return await keep_valid(store, records, timeline=timeline)
