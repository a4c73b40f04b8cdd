"""The reply: one question to the model, streamed; the tools that it calls, and what the calls are answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.runtime import Runtime

from questbook.graphs.errors import ModelError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.context_window import ask_fitted
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.reply_guard import guard_notices, guard_of
from questbook.graphs.turn.state import TurnState
from questbook.notebooks import Notebook, NotebookError, PatchError, apply_fitting
from questbook.types import JSON

PageT = TypeVar("PageT", bound=Notebook)
SettingsT = TypeVar("SettingsT", bound=Settings)

MOST_CALLS = 10
"""Calls of tools that one answer may make; those beyond are answered with an error."""

_UNREADABLE = "The model sent arguments that are no JSON object."


class Call(NamedTuple):
    """One tool call; `problem` says why its arguments could not be read."""

    id: str
    name: str
    args: JSON
    problem: str = ""


class PageEdit(NamedTuple, Generic[PageT]):
    """What one call made of a page: the page with what fits, the answer to the model, values that code corrected.

    `problem` says why parts were refused, without anything secret, for people to see; "" if none was.
    """

    page: PageT
    result: ToolMessage
    notes: list[str]
    problem: str = ""


class PageEdits(NamedTuple, Generic[PageT]):
    """What a model's calls made of pages."""

    pages: list[PageT]  # the pages, in the order given, with all that fits
    results: list[ToolMessage]  # one tool message for each call, for the model
    notes: list[str]  # values that code corrected
    problems: list[str]  # why calls or parts of them were refused, without anything secret, for people to see
    refused: set[str]  # names of the tools whose calls were refused, also in part


class Reply(NamedTuple):
    """The channels to write, and the calls of the silent tools, which are in no message."""

    update: JSON
    silent: list[Call]


async def reply(
    state: TurnState,
    runtime: Runtime[SettingsT],
    prompt: Prompt,
    *,
    node: str,
    tools: list[JSON],
    most_rounds: int,
    silent: Collection[str] = (),
) -> Reply:
    """Ask the model; a report of the prompt goes out on the stream first.

    Calls of tools beyond `most_rounds` in one turn are dropped. `silent` tools need no answer: their calls are taken
    out of the reply and never streamed, and the model is asked once more only if it says nothing beside them.

    Raises:
        ModelError: The model failed or said nothing. The player's message is in the checkpoint; run the thread again
            without input to retry the turn.
    """
    context = runtime.context
    more, said = list[BaseMessage](), list[Call]()
    update: JSON = {"notices": []}
    for _ in range(2):
        guard = guard_of(state, prompt, context, silent)
        whole, window, notices = await ask_fitted(
            runtime, prompt, node=node, turn=state.turn, guard=guard, tools=tools, more=more
        )
        update = update | ({"window": window} if window else {}) | {"notices": [*update["notices"], *notices]}
        message, calls = take_out(whole, lambda call: call.name in silent)
        said += calls
        if not calls or message.text.strip() or calls_of(message):
            break
        more = [whole, *(answer(call, "Kept. Now answer, in words.") for call in calls)]
    spent = tool_rounds(state) >= most_rounds
    if not message.text.strip() and (spent or not calls_of(message)):
        raise ModelError(f"{context.model} keeps calling tools and tells nothing. Try the turn again.")
    if calls_of(message) and spent:
        message = AIMessage(message.text, id=message.id)  # it said something: the calls beyond the limit are dropped
    notices = [*update["notices"], *guard_notices(guard, context, state.turn, node)]
    return Reply(update | {"messages": [message], "notices": notices}, said)


def take_out(message: AIMessage, wanted: Callable[[Call], bool]) -> tuple[AIMessage, list[Call]]:
    """Return a message without some of its calls, in whatever form it has them, and these calls."""
    taken = [call for call in calls_of(message) if wanted(call)]
    if not taken:
        return message, []
    ids = {call.id for call in taken}
    rest = {
        "tool_calls": [call for call in message.tool_calls if (call["id"] or "") not in ids],
        "invalid_tool_calls": [call for call in message.invalid_tool_calls if (call["id"] or "") not in ids],
    }
    content = message.content
    if any(rest.values()) and isinstance(content, list):  # what else a provider put there belongs to the other calls
        blocks = [b for b in content if not isinstance(b, dict) or not ids & {b.get("id"), b.get("call_id")}]
        return message.model_copy(update=rest | {"content": blocks}), taken
    kept = {"response_metadata": message.response_metadata, "usage_metadata": message.usage_metadata}
    return AIMessage(message.text, id=message.id, **kept, **rest), taken


def calls_of(message: AIMessage) -> list[Call]:
    """List the calls of a message, those with unreadable arguments last."""
    readable = [Call(call["id"] or "", call["name"], call["args"]) for call in message.tool_calls]
    broken = [
        Call(
            call["id"] or "",
            call["name"] or "",
            {},
            f"the arguments are no JSON object: {(call['args'] or '')[:80]!r}. Send one JSON object.",
        )
        for call in message.invalid_tool_calls
    ]
    return readable + broken


def has_calls(state: TurnState) -> bool:
    """Whether the last message calls tools."""
    return isinstance(state.messages[-1], AIMessage) and bool(calls_of(state.messages[-1]))


def tool_rounds(state: TurnState) -> int:
    """Count how often the model has called tools in this turn."""
    return sum(1 for message in state.current_turn if isinstance(message, AIMessage) and calls_of(message))


def answer(call: Call, text: str, *, ok: bool = True) -> ToolMessage:
    """Make the result of a call."""
    return ToolMessage(text, tool_call_id=call.id, name=call.name, status="success" if ok else "error")


def edit_page(page: PageT, call: Call, stored: PageT | None = None) -> PageEdit[PageT]:
    """Apply what fits of a call of a page's tool; the answer says of all the rest why it does not fit, and what would.

    `page` is as earlier calls left it; `stored` is the one in state (None: the same): its reducer gets one patch of all
    calls, so that has to fit, too.
    """
    if call.problem:
        return PageEdit(page, answer(call, call.problem, ok=False), [], _UNREADABLE)
    name, (edited, notes, problems) = type(page).__name__, apply_fitting(page, call.args)
    try:
        if stored is not None and stored is not page:
            stored.apply(edited.patch_from(stored))
    except NotebookError as error:
        edited, notes = page, []
        problems = [*problems, *(error.problems if isinstance(error, PatchError) else [str(error)])]
    if not problems:
        return PageEdit(edited, answer(call, " ".join(["Noted.", *notes])), notes)
    kept = "What fits is noted; send only the rest again." if edited is not page else f"{name} was left as it is."
    result = answer(call, " ".join([kept, *notes, *problems]), ok=False)
    return PageEdit(edited, result, notes, " ".join([kept, *_without_secrets(problems, type(page))]))


def edit_pages(
    pages: Sequence[PageT],
    message: AIMessage,
    *,
    other_tools: Collection[str] = (),
    stored: Sequence[PageT] | None = None,
) -> PageEdits[PageT]:
    """Apply what fits of a message's calls of the pages' tools, in order; what does not is refused with the reason.

    Calls of `other_tools` are answered here, and the caller reads them. `stored`: as for `edit_page`.
    """
    edits: PageEdits[PageT] = PageEdits(list(pages), [], [], [], set())
    tools = [type(page).__name__ for page in pages]
    for call in calls_of(message):
        if call.name in tools:
            index = tools.index(call.name)
            edits.pages[index], result, notes, problem = edit_page(edits.pages[index], call, (stored or pages)[index])
            edits.notes.extend(notes)
        elif call.name in other_tools:
            result = answer(call, call.problem or "Noted.", ok=not call.problem)
            problem = _UNREADABLE if call.problem else ""
        else:
            known = ", ".join([*tools, *other_tools])
            only = "the only one is" if len(tools) + len(other_tools) == 1 else "there are"
            problem = f"There is no tool {call.name!r}; {only} {known}."
            result = answer(call, problem, ok=False)
        edits.results.append(result)
        if problem:
            edits.problems.append(problem)
            edits.refused.add(call.name)
    return edits


def refuse_edits(pages: Sequence[PageT], message: AIMessage, reason: str) -> PageEdits[PageT]:
    """Answer a message's calls without doing any of them; that is no mistake of the model's, so no problem."""
    return PageEdits(list(pages), [answer(call, reason, ok=False) for call in calls_of(message)], [], [], set())


def _without_secrets(problems: Sequence[str], page: type[Notebook]) -> list[str]:
    """Say what was wrong with a patch without quoting fields that players may not see."""
    public = [problem for problem in problems if problem.split(".")[0].split(":")[0] not in page.SECRET]
    return public if len(public) == len(problems) else [*public, "A secret did not fit."]
