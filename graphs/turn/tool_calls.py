"""What a model asked of its tools, and what it is told back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, ToolMessage

from questbook.notebooks import Notebook, NotebookError, PatchError

PageT = TypeVar("PageT", bound=Notebook)

_UNREADABLE = "The model sent arguments that are no JSON object."


class Call(NamedTuple):
    """One tool call; `problem` says why its arguments could not be read."""

    id: str
    name: str
    args: dict[str, Any]
    problem: str = ""


class Edit(NamedTuple, Generic[PageT]):
    """What one call made of a page.

    Attributes:
        page: The page after it; as it was, if the call did not fit.
        result: What the model is told.
        notes: Values that code corrected.
        problem: Why the call was refused, without anything secret, for people to see; "" if it fitted.
    """

    page: PageT
    result: ToolMessage
    notes: list[str]
    problem: str = ""


class Written(NamedTuple, Generic[PageT]):
    """What a model's calls made of pages.

    Attributes:
        pages: The pages, in the order given, after every call that fitted.
        results: One tool message a call, for the model.
        notes: Values that code corrected.
        problems: Why calls were refused, without anything secret, for people to see; empty if all fitted.
        refused: Names of the tools whose calls were refused.
    """

    pages: list[PageT]
    results: list[ToolMessage]
    notes: list[str]
    problems: list[str]
    refused: set[str]


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


def answer(call: Call, text: str, *, ok: bool = True) -> ToolMessage:
    """Make the result of a call."""
    return ToolMessage(text, tool_call_id=call.id, name=call.name, status="success" if ok else "error")


def edit(page: PageT, call: Call, done: str = "Noted.") -> Edit[PageT]:
    """Apply a call of a page's tool; one that does not fit changes nothing and is told why.

    Args:
        page: The page.
        call: The call.
        done: What a call that fitted is answered.
    """
    if call.problem:
        return Edit(page, answer(call, call.problem, ok=False), [], _UNREADABLE)
    try:
        change = page.apply(call.args, by_model=True)
    except NotebookError as error:
        return Edit(page, answer(call, str(error), ok=False), [], _without_secrets(error, type(page)))
    return Edit(change.page, answer(call, " ".join([done, *change.notes])), change.notes)


def write_pages(
    pages: Sequence[PageT], message: AIMessage, done: str = "Noted.", *, besides: Collection[str] = ()
) -> Written[PageT]:
    """Apply a message's calls of the pages' tools, in order; each that does not fit is refused with the reason.

    Args:
        pages: The pages whose tools were offered.
        message: The model's answer.
        done: What a call that fitted is answered.
        besides: Names of other tools that were offered; their calls are for the caller to read, and are answered here.
    """
    written: Written[PageT] = Written(list(pages), [], [], [], set())
    tools = [type(page).__name__ for page in pages]
    for call in calls_of(message):
        if call.name in tools:
            place = tools.index(call.name)
            written.pages[place], result, notes, problem = edit(written.pages[place], call, done)
            written.notes.extend(notes)
        elif call.name in besides:
            result = answer(call, call.problem or done, ok=not call.problem)
            problem = _UNREADABLE if call.problem else ""
        else:
            known = ", ".join([*tools, *besides])
            only = "the only one is" if len(tools) + len(besides) == 1 else "there are"
            problem = f"There is no tool {call.name!r}; {only} {known}."
            result = answer(call, problem, ok=False)
        written.results.append(result)
        if problem:
            written.problems.append(problem)
            written.refused.add(call.name)
    return written


def refuse_pages(pages: Sequence[PageT], message: AIMessage, reason: str) -> Written[PageT]:
    """Answer a message's calls without doing any of them; nobody has made a mistake, so there are no problems."""
    return Written(list(pages), [answer(call, reason, ok=False) for call in calls_of(message)], [], [], set())


def _without_secrets(error: NotebookError, page: type[Notebook]) -> str:
    """Say what was wrong with a patch without quoting fields that players may not see."""
    if not isinstance(error, PatchError):
        return str(error)
    open_problems = [p for p in error.problems if p.split(".")[0].split(":")[0] not in page.SECRET]
    kept = open_problems if len(open_problems) == len(error.problems) else [*open_problems, "A secret did not fit."]
    return str(PatchError(error.page, kept))
