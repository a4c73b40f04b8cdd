"""Spec: what an application says of an agent of its own: what is tracked, whose it is, how much of it comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar, get_args

from langchain_core.language_models import BaseChatModel
from pydantic import AfterValidator, Field, create_model

from questbook.graphs.settings import Settings, own_name
from questbook.graphs.turn.recall import Recall
from questbook.memory.buffer.policies import BufferPolicy
from questbook.notebooks import DeclarationError, Notebook, Scope, check_declarations, on_demand, once

SettingsT = TypeVar("SettingsT", bound=Settings)

NODES = frozenset({"begin", "recall", "use_tools", "update_pages", "remember", "learn", "reflect", "condense"})
"""Nodes of every agent; each mode is a node, too."""
SECTIONS = frozenset({"instructions", "summary", "memories", "missing", "due", "turns"})
"""Sections of every agent's prompts; each page is a section, too."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What an agent remembers.

    Attributes:
        name: Keeps its memories apart from those of other agents.
        notebooks: What is tracked; the prompt has them in this order.
        buffer: Which turns are in the prompt; None: as the settings say.
        recall: How much of what was said earlier comes back; None: as the settings say.
        shared: Notebooks that several agents of a team write.
        scope: Whose its exchanges and facts are; each page says its own.
    """

    name: str = "agent"
    notebooks: Sequence[type[Notebook]] = ()
    buffer: BufferPolicy | None = None
    recall: Recall | None = None
    shared: Sequence[type[Notebook]] = ()
    scope: Scope = "user"

    @property
    def pages(self) -> dict[str, type[Notebook]]:
        """Its notebooks by channel."""
        return {page.channel(): page for page in self.notebooks}

    @property
    def interviewed(self) -> dict[str, type[Notebook]]:
        """Those that are filled once."""
        return {channel: page for channel, page in self.pages.items() if once == page.UPDATE}

    @property
    def on_demand(self) -> dict[str, type[Notebook]]:
        """Those that the model may write in its replies."""
        return {channel: page for channel, page in self.pages.items() if on_demand == page.UPDATE}

    @property
    def kept(self) -> dict[str, type[Notebook]]:
        """Those that are written after replies."""
        return {channel: page for channel, page in self.pages.items() if page.UPDATE.turns}

    def is_shared(self, page: type[Notebook]) -> bool:
        """Whether others write a page at the same time, so that its limit cannot hold at each write."""
        return page in self.shared or page.SCOPE == "user"

    def check(self, taken: Sequence[str]) -> None:
        """Refuse a spec that makes no sense.

        Args:
            taken: Channels that every agent has.

        Raises:
            DeclarationError: It names what is wrong, and what is allowed.
        """
        if not isinstance(self.name, str) or not self.name.strip() or ":" in self.name:
            raise DeclarationError(f"name: got {self.name!r:.80}; expected a name without a colon, such as 'desk'.")
        if self.scope not in get_args(Scope):
            raise DeclarationError(f"scope: got {self.scope!r:.80}; expected 'thread', 'user' or 'campaign'.")
        if not isinstance(self.recall, Recall | None):
            raise DeclarationError(f"recall: got {self.recall!r:.80}; expected Recall(…), such as Recall(tokens=400).")
        if self.buffer is not None and (isinstance(self.buffer, type) or not isinstance(self.buffer, BufferPolicy)):
            raise DeclarationError(f"buffer: got {self.buffer!r:.80}; expected a buffer policy, such as LastTurns(6).")
        if isinstance(self.notebooks, type | Notebook):
            raise DeclarationError(
                f"notebooks: got {self.notebooks!r:.80}; expected a list of classes, such as [MyNotebook]."
            )
        check_declarations(self.notebooks)
        for channel, page in self.pages.items():
            if channel in {*taken, *NODES, *SECTIONS}:
                raise DeclarationError(
                    f"{page.__name__}: every agent has something called {channel!r} already. Set its CHANNEL to "
                    "another name."
                )
        if strange := [page.__name__ for page in self.shared if page not in self.notebooks]:
            raise DeclarationError(f"shared: {strange[0]} is none of the notebooks.")
        if both := [page.__name__ for page in self.shared if page.SCOPE == "user"]:
            raise DeclarationError(
                f"shared: {both[0]} has SCOPE 'user', so the store shares it with all threads already. Leave it out of "
                "`shared`, or give it the scope 'thread'."
            )

    def settings(self, base: type[SettingsT], model: str | BaseChatModel | None) -> type[SettingsT]:
        """Make the class of the agent's settings.

        Its campaign is "agent:" and the agent's name. Campaigns that a caller names get that prefix, too, so that they
        are not those of a game or an assistant.

        Args:
            base: The settings that it has.
            model: Default of the setting `model`; a chat model is used whatever the setting says.
        """
        about = {field: base.model_fields[field].description for field in ("campaign", "model")}
        own = f"agent:{self.name}"
        campaign = Annotated[str, AfterValidator(partial(own_name, own=own))]
        campaign_field = Field(default=own, max_length=200, description=about["campaign"])
        fields: dict[str, Any] = {"campaign": (campaign, campaign_field)}
        if model is not None:
            label = model if isinstance(model, str) else getattr(model, "model_name", None) or type(model).__name__
            fields["model"] = (str, Field(default=label, min_length=1, description=about["model"]))
        settings = create_model("Context", __base__=base, __module__=__name__, **fields)
        settings.CHAT_MODEL = model if isinstance(model, BaseChatModel) else None
        return settings
