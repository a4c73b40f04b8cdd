"""What the narrator hands over together with its reply: secrets, which the player must not see.

The tool `keep_secret` needs no further round of the model. Its calls leave the reply before it is kept (`questbook.
graphs.turn.reply`), wait in the channel `new_secrets`, and `update_state` writes them on the quest's page, for good and
all, and among the facts that wait to be written to the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from questbook.graphs.dungeon_master.facts import secret_facts
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.memory.facts.fact import MAX_FIELD, MAX_TEXT
from questbook.notebooks import NotebookError, StateNotebook
from questbook.notebooks.schema import tool_schema
from questbook.types import JSON


class KeepSecret(BaseModel):
    """Keep what only you know and the player may find out later: who lies, what waits behind a door, what a foe plans.

    Call it beside the text of your answer, never in its place. The player is not shown it.
    """

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    about: str = Field(min_length=1, max_length=MAX_FIELD, description="Whom or what it is about, by name.")
    secret: str = Field(min_length=1, max_length=MAX_TEXT, description="A sentence that can be understood by itself.")


KEEP_SECRET: JSON = tool_schema("keep_secret", KeepSecret)


def read_secrets(arguments: Iterable[Any]) -> list[JSON]:
    """Return the secrets in the arguments of calls, as {"about", "secret"}; what does not fit is left out."""
    secrets = []
    for each in arguments:
        try:
            secrets.append(KeepSecret.model_validate(each).model_dump())
        except ValidationError:
            continue
    return secrets


def with_secrets(state: DungeonState) -> tuple[StateNotebook, list[JSON]]:
    """Return the quest's page with the new secrets, and facts of them that wait to be written.

    What does not fit on a full page is still among the facts.
    """
    page, secrets = state.quest, read_secrets(state.new_secrets)  # a person may have edited them
    for new in secrets:
        try:
            page = page.apply({"secrets": {new["about"]: new["secret"]}}, by_model=True).page
        except NotebookError:
            continue
    return page, secret_facts(state, secrets)
