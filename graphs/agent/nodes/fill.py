"""fill: an interview that fills a page once."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from questbook.graphs.agent import prompts
from questbook.graphs.agent.context import Context
from questbook.graphs.agent.sections import interview_prompt
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.interview import interview
from questbook.graphs.turn.prompt_stack import Prompt
from questbook.graphs.turn.withheld import private
from questbook.notebooks import Notebook


async def fill(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Talk with the person and note what they said; once nothing is missing, the next mode answers in the same turn.

    Of what the person asks not to be remembered, nothing is noted.

    Raises:
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    mode = state.AGENT.named(state.mode)
    assert mode.fills is not None  # noqa: S101 (the edges lead here for no other mode)
    channel = mode.fills.channel()
    before: Notebook = getattr(state, channel)

    def prompt(page: Notebook, said: list[AnyMessage]) -> Prompt:
        now = state.model_copy(update={channel: page, "messages": [*state.messages, *said]})
        return interview_prompt(now, runtime.context, mode, page)

    page, said, notices = await interview(
        before,
        runtime,
        prompt,
        node=mode.name,
        turn=state.turn,
        question=prompts.QUESTION,
        silent=private(state),
    )
    update: dict[str, Any] = {"messages": said, "notices": notices}
    update[channel] = page.patch_from(before)
    if page.complete:
        said[-1] = said[-1].model_copy(update={"content": prompts.COMPLETE})
        update["mode"] = state.AGENT.mode(state.model_copy(update={channel: page})).name
    return update
