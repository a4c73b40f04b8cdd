"""An agent's nodes: `begin`, `fill`, `recall`, `respond`, `update_pages` and `remember`.

`use_tools` is beside the tools in `tools`; `condense` is that of every machine, in `questbook.graphs.turn`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from questbook.graphs.agent import prompts
from questbook.graphs.agent.context import Context, FactContext
from questbook.graphs.agent.state import AgentState, FactAgentState
from questbook.graphs.agent.tools import tools_of
from questbook.graphs.errors import PastUnknownError, PromptTooLongError, QuestbookError
from questbook.graphs.reflect.trigger import note_in_background
from questbook.graphs.turn import exchanges, facts
from questbook.graphs.turn.beginning import Beginning, beginning_of
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.exchanges import (
    transcript_through,
)
from questbook.graphs.turn.facts import FACTS
from questbook.graphs.turn.interview import interview
from questbook.graphs.turn.notes import IN_SHORT, in_short, oldest_within, take_notes
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.recall import Recall, assistant_plan, recall_for_turn, with_recalled
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.retriever import recall_or_notice
from questbook.graphs.turn.scope import check_owner
from questbook.graphs.turn.sessions import join
from questbook.graphs.turn.shared_pages import publish_pages, read_pages
from questbook.graphs.turn.turn import is_private, notice, open_turn, public_turns
from questbook.graphs.turn.upkeep import GaveWay, give_way
from questbook.notebooks import Notebook
from questbook.types import JSON

_log = logging.getLogger(__name__)


async def begin(state: AgentState, runtime: Runtime[Context]) -> JSON:
    """Open the turn in its mode: from where a team has the agent's conversation, or else from the campaign's past.

    Raises:
        InputError: The team's conversation with the agent is another user's.
        PastUnknownError: The store cannot say whether the campaign has a past.
    """
    seat = {name: value for name, value in state.seat.items() if name not in state.PAGES}
    past = await join(state.model_copy(update=seat), runtime)
    channels = past | state.seat
    check_owner(channels.get("campaign", []), runtime.context)
    pages = {name: page.load(channels.pop(name)) for name, page in state.PAGES.items() if name in channels}
    now = state.model_copy(update=channels | pages)
    begun = Beginning("", []) if now.timeline else await beginning_of(now, runtime)
    if begun.branch:
        now = now.model_copy(update={"timeline": [(begun.branch, 0)]})
    shared = await read_pages(now, runtime)
    noted = {name: getattr(now, name).apply(shared[name], bounded=False).page for name in state.PAGES if name in shared}
    now = now.model_copy(update=noted)
    patches = {name: getattr(now, name).patch_from(getattr(state, name)) for name in state.PAGES}
    opened = open_turn(now, runtime)
    return {
        **channels,
        **opened,
        **{name: value for name, value in shared.items() if name == "agreed"},
        "notices": [*channels.get("notices", []), *begun.notices, *opened["notices"], *shared.get("notices", [])],
        **{name: patch for name, patch in patches.items() if patch or not state.turn},  # JSON from the first turn on
        "mode": state.AGENT.mode(now).name,
        "recalled": None,
        "seat": {},
        "handover": "",
    }


async def fill(state: AgentState, runtime: Runtime[Context]) -> JSON:
    """Interview the person for a page; once nothing is missing, the next mode answers in the same turn.

    Nothing is noted of a private turn.

    Raises:
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    mode = state.AGENT.named(state.mode)
    assert mode.fills is not None  # noqa: S101 (the edges lead here for no other mode)
    channel = mode.fills.channel()
    before: Notebook = getattr(state, channel)

    def make_prompt(page: Notebook, messages: list[AnyMessage]) -> Prompt:
        now = state.model_copy(update={channel: page, "messages": [*state.messages, *messages]})
        return prompts.interview_prompt(now, runtime.context, mode, page)

    page, messages, notices, window = await interview(
        state,
        before,
        runtime,
        make_prompt,
        node=mode.name,
        turn=state.turn,
        question=prompts.QUESTION,
        private=is_private(state),
    )
    update: JSON = {"messages": messages, "notices": notices, channel: page.patch_from(before)} | window
    if page.complete:
        messages[-1] = messages[-1].model_copy(update={"content": prompts.COMPLETE})
        update["mode"] = state.AGENT.mode(state.model_copy(update={channel: page})).name
    return update


async def recall(state: AgentState, runtime: Runtime[Context]) -> JSON:
    """Recall for the turn; if the store fails, the conversation goes on without, and a notice says so."""
    return await recall_or_notice(state, memories_for(state, runtime))


async def respond(state: AgentState, runtime: Runtime[Context]) -> JSON:
    """Answer the person as the turn's mode says, call tools, or both.

    Raises:
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    state = await with_recalled(state, runtime, memories_for)
    mode = state.AGENT.named(state.mode)
    prompt, rounds = prompts.reply_prompt(state, runtime.context, mode), runtime.context.max_tool_rounds
    tools = tools_of(state.AGENT, private=is_private(state))
    update, _ = await reply(state, runtime, prompt, node=mode.name, tools=tools, most_rounds=rounds)
    return update


async def remember(state: AgentState, runtime: Runtime[Context]) -> JSON:
    """Write the turn to the store, and then, since it has its place, what it changed on pages that threads share."""
    update = await exchanges.remember(state, runtime)
    published = await publish_pages(state.model_copy(update=update), runtime)
    return {**update, **published, "notices": [*update.get("notices", []), *published.get("notices", [])]}


async def learn(state: FactAgentState, runtime: Runtime[FactContext]) -> JSON:
    """Note what the turn taught: now, or in the background."""
    background = runtime.context.noting == "background"
    return await (note_in_background(state, runtime) if background else facts.learn(state, runtime))


async def update_pages(
    state: AgentState, runtime: Runtime[Context], most: int | None = None, *, short: bool = False
) -> JSON:
    """Ask the model, once for all pages that are due, for patches of them; no call means no change.

    What fits of a patch is noted; for the rest the model is asked twice more. If some still does not fit, or the model
    fails, a notice says so, and the next turn's update covers this turn too. The model does not see private turns. It
    sees the oldest turns that fit in `most` tokens (None: as many as the buffer has), their long texts cut if `short`.
    """
    due = due_pages(state)
    first = min(state.noted.get(name, 0) for name in due) + 1
    try:
        public = public_turns(await transcript_through(state, runtime, first))
    except PastUnknownError as error:
        text = f"The pages ({', '.join(due)}) were not updated; the next turn will catch up. {error}"
        return {"notices": [notice(state.turn, "update_pages", text)]}
    budget = state.fit_tokens(runtime.context.buffer_tokens, runtime.context.model) if most is None else most
    turns = [in_short(turn) if short else turn for turn in oldest_within(public, budget)]
    last = state.turn if len(turns) == len(public) else turns[-1]["turn"]  # private turns need no notes
    due = [name for name in due if state.noted.get(name, 0) < last]
    if not turns:
        return {"noted": state.noted | dict.fromkeys(due, last)}
    pages: list[Notebook] = [getattr(state, name) for name in due]
    try:
        notes = await give_way(take_notes(pages, prompts.update_prompt(state, due, turns), runtime.context), runtime)
    except GaveWay:  # the person's next message is here
        return {}
    except QuestbookError as error:
        if isinstance(error, PromptTooLongError) and not short:
            return await update_pages(state, runtime, 0, short=len(turns) == 1)
        _log.warning("Turn %d was not noted: %s", state.turn, error)
        text = f"The pages ({', '.join(due)}) were not updated; the next turn will catch up. {error}"
        return {"notices": [notice(state.turn, "update_pages", text)]}
    refused = [name for name, page in zip(due, pages, strict=True) if type(page).__name__ in notes.refused]
    remarks = [*([IN_SHORT] if short else []), *notes.remarks]
    if notes.problems:
        _log.warning("Not all was noted of turn %d: %s", state.turn, notes.problems)
        outcome = (
            f"Not all was noted; the next turn will catch up ({', '.join(refused)})."
            if refused
            else "A call that is no page's was not done; no later turn will come back to it."
        )
        remarks.append(f"{outcome} {' '.join(notes.problems)}")
    return {
        "noted": state.noted | {name: last for name in due if name not in refused},
        **{name: patch for name, patch in zip(due, notes.patches, strict=True) if patch},
        "notices": [notice(state.turn, "update_pages", text) for text in remarks],
    }


def due_pages(state: AgentState) -> list[str]:
    """Return the channels of the pages that are written after this turn, as their policies say."""
    kept = state.AGENT.kept.items()
    return [name for name, page in kept if page.UPDATE.due(state.turn, state.noted.get(name, 0))]


async def memories_for(state: AgentState, runtime: Runtime[Context]) -> list[JSON]:
    """Recall the exchanges, and facts, that fit the message best and are not in the prompt."""
    options = state.AGENT.recall or Recall.of(runtime.context)
    facts = runtime.context.campaign_namespace(FACTS) if state.AGENT.facts else None
    plan = assistant_plan(options, conversation(state, runtime.context), datetime.now(UTC).astimezone(), facts)
    return await recall_for_turn(state, runtime, plan)
