"""Context: every setting of an agent."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import AfterValidator, Field, create_model

from questbook.graphs.reflect.context import NotingContext
from questbook.graphs.settings import Settings, own_name


class Context(Settings):
    """An agent's settings: those that graphs share, and its own."""

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "assistant"

    max_tool_rounds: int = Field(default=6, ge=1, le=20, description="Times the model may call tools in one turn.")


class FactContext(Context, NotingContext):
    """Settings of an agent that notes facts, and reflects on them."""


def context_of(name: str, model: str | BaseChatModel | None, *, facts: bool = False) -> type[Context]:
    """Make the class of an agent's settings.

    Args:
        name: The agent's name. Its campaign is "agent:" and the name; campaigns that a caller names get that prefix,
            too, so that they are not those of a game or an assistant.
        model: Default of the setting `model`; a chat model is used whatever the setting says.
        facts: Whether there are settings of reflections, too.
    """
    about = {field: Context.model_fields[field].description for field in ("campaign", "model")}
    own = f"agent:{name}"
    campaign = Annotated[str, AfterValidator(partial(own_name, own=own))]
    fields: dict[str, Any] = {"campaign": (campaign, Field(default=own, max_length=200, description=about["campaign"]))}
    if model is not None:
        label = model if isinstance(model, str) else getattr(model, "model_name", None) or type(model).__name__
        fields["model"] = (str, Field(default=label, min_length=1, description=about["model"]))
    base: type[Context] = FactContext if facts else Context
    context = create_model("Context", __base__=base, __module__=__name__, **fields)
    context.CHAT_MODEL = model if isinstance(model, BaseChatModel) else None
    return context
