"""An interview without a language model: ask for one field after the other, and note the answer as it is."""

from __future__ import annotations

from langchain_core.messages import ToolMessage

from questbook.graphs.offline.offline_model import Asked
from questbook.graphs.offline.offline_prompt import Prompt, text_of

_ASKED = "Please tell me your {}."


def interviewed(prompt: Prompt) -> tuple[str, list[Asked]]:
    """Take what the person said as the answer to what they were asked last, if they were; ask for what is missing."""
    first, *others = prompt.missing
    if isinstance(prompt.last, ToolMessage):
        refused = f"{text_of(prompt.last).partition('. ')[2]} " if prompt.last.status == "error" else ""
        return f"{refused}{_asking(first)}", []
    if not prompt.asked_last.endswith(_asking(first)):
        return _asking(first), []
    [tool] = prompt.tools
    return _asking(others[0]) if others else "Thank you.", [(tool, {first: prompt.words.strip()})]


def _asking(field: str) -> str:
    return _ASKED.format(field.replace("_", " "))
