"""An agent's nodes `begin`, `fill`, `recall` and `respond`.

`use_tools` is in `tools`, `update_pages` and `remember` in `turn.pages`, `condense` in `turn.buffer`.
"""

from __future__ import annotations

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from questbook.graphs.agent import prompts
from questbook.graphs.agent.context import AgentContext
from questbook.graphs.agent.state import AgentState
from questbook.graphs.agent.tools import tools_of
from questbook.graphs.turn import sessions
from questbook.graphs.turn.interview import interview
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.recall import RecallPlan, assistant_plan, recall_or_notice, with_recalled
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.scope import check_owner
from questbook.graphs.turn.turn import is_private
from questbook.notebooks import Notebook
from questbook.types import JSON


async def begin(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Open the turn in its mode: from where a team has the agent's conversation, or else from the campaign's past.

    Raises:
        InputError: The team's conversation with the agent is another user's.
        PastUnknownError: The store cannot say whether the campaign has a past.
    """
    seat = dict(state.seat)
    check_owner(seat.get("campaign", []), runtime.context)
    pages = {name: page.load(seat.pop(name)) for name, page in state.PAGES.items() if name in seat}
    now, update, _ = await sessions.begin(state.model_copy(update=seat | pages), runtime)
    return {
        **seat,
        **update,
        **{name: getattr(now, name).patch_from(getattr(state, name)) for name in pages},
        "notices": [*seat.get("notices", []), *update["notices"]],
        "mode": state.SPEC.mode(now).name,
        "recalled": None,
        "seat": {},
        "handover": "",
    }


async def fill(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Interview the person for a page; once nothing is missing, the next mode answers in the same turn.

    Nothing is noted of a private turn.

    Raises:
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    mode = state.SPEC.named(state.mode)
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
        update["mode"] = state.SPEC.mode(state.model_copy(update={channel: page})).name
    return update


async def recall(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Recall for the turn; if the store fails, the conversation goes on without, and a notice says so."""
    return await recall_or_notice(state, runtime, recall_plan)


async def respond(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Answer the person as the turn's mode says, call tools, or both.

    Raises:
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    state = await with_recalled(state, runtime, recall_plan)
    mode = state.SPEC.named(state.mode)
    prompt, rounds = prompts.reply_prompt(state, runtime.context, mode), runtime.context.max_tool_rounds
    tools = tools_of(state.SPEC, private=is_private(state))
    update, _ = await reply(state, runtime, prompt, node=mode.name, tools=tools, most_rounds=rounds)
    return update


async def recall_plan(state: AgentState, runtime: Runtime[AgentContext]) -> RecallPlan:
    """Return what an agent recalls: the exchanges, and facts, that fit the message best and are not in the prompt."""
    return assistant_plan(state, runtime.context, state.SPEC.recall, facts=state.SPEC.facts)
