"""What a model asked of its tools, and what it is told back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, ToolMessage

from notebooks import Notebook, NotebookError, PatchError

PageT = TypeVar("PageT", bound=Notebook)


class Call(NamedTuple):
    """One tool call; `problem` says why its arguments could not be read."""

    id: str
    name: str
    args: dict[str, Any]
    problem: str = ""


class Written(NamedTuple, Generic[PageT]):
    """What a model's calls made of a page.

    Attributes:
        page: The page after every call that fitted, in order.
        results: One tool message a call, for the model.
        notes: Values that code corrected.
        problems: Why calls were refused, without anything secret, for people to see; empty if all fitted.
    """

    page: PageT
    results: list[ToolMessage]
    notes: list[str]
    problems: list[str]


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


def write_page(
    page: PageT, message: AIMessage, done: str = "Noted.", *, besides: Collection[str] = ()
) -> Written[PageT]:
    """Apply a message's calls of the page's tool, in order; each that does not fit is refused with the reason.

    Args:
        page: The page.
        message: The model's answer.
        done: What a call that fitted is answered.
        besides: Names of other tools that were offered; their calls are for the caller to read, and are answered here.
    """
    tool = type(page).__name__
    written: Written[PageT] = Written(page, [], [], [])
    for call in calls_of(message):
        problem, shown = call.problem, "The model sent arguments that are no JSON object." if call.problem else ""
        if call.name in besides and not problem:
            written.results.append(answer(call, done))
            continue
        if call.name != tool and call.name not in besides:
            known = ", ".join([tool, *besides])
            only = "the only one is" if not besides else "there are"
            problem = shown = f"There is no tool {call.name!r}; {only} {known}."
        if not problem:
            try:
                change = written.page.patched(call.args, by_model=True)
            except NotebookError as error:
                problem, shown = str(error), _without_secrets(error, type(page))
            else:
                written = written._replace(page=change.page)
                written.notes.extend(change.notes)
                written.results.append(answer(call, " ".join([done, *change.notes])))
        if problem:
            written.problems.append(shown)
            written.results.append(answer(call, problem, ok=False))
    return written


def refuse_page(page: PageT, message: AIMessage, reason: str) -> Written[PageT]:
    """Answer a message's calls without doing any of them; nobody has made a mistake, so there are no problems."""
    return Written(page, [answer(call, reason, ok=False) for call in calls_of(message)], [], [])


def _without_secrets(error: NotebookError, page: type[Notebook]) -> str:
    """Say what was wrong with a patch without quoting fields that players may not see."""
    if not isinstance(error, PatchError):
        return str(error)
    open_problems = [p for p in error.problems if p.split(".")[0].split(":")[0] not in page.SECRET]
    kept = open_problems if len(open_problems) == len(error.problems) else [*open_problems, "A secret did not fit."]
    return str(PatchError(error.page, kept))
