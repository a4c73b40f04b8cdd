"""CompanionContext: every setting of the companion, in one place."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, ClassVar, Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from questbook.graphs.settings import MachineContext, own_name
from questbook.memory.errors import BadQueryError
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.recall.query import Reranker
from questbook.notebooks import CoreTool, sections_of
from questbook.types import JSON

_OWN = "companion"


def own_campaign(name: str) -> str:
    """Keep the companion's threads and records apart from those of a game with the same name."""
    return own_name(name, _OWN)


def assistant_name(campaign: str) -> str:
    """Return the name by which a person knows the assistant."""
    return campaign.removeprefix(f"{_OWN}:")


def _valid(check: Callable[[Any], object]) -> AfterValidator:
    """Make a setting's check of a function that raises a ValueError, which names each wrong value."""
    return AfterValidator(lambda value: (check(value), value)[1])


def find_timezone(name: str) -> tzinfo:
    """Return the timezone with an IANA name; "" is this machine's own; a BadQueryError says that there is none."""
    if not name:
        return datetime.now().astimezone().tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        problem = f"There is no timezone {name!r:.60}; expected an IANA name, such as Europe/Berlin."
        raise BadQueryError(problem) from error


class Extras(NamedTuple):
    """What an application has of its own."""

    core_tools: tuple[CoreTool, ...] = ()  # tools that edit core memory
    rerank: Reranker | None = None  # orders what is recalled; None: the weights alone do


class CompanionContext(MachineContext):
    """The companion's settings: those that graphs share, and its own."""

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "assistant"

    EXTRAS: ClassVar[Extras] = Extras()
    """What an application has of its own that is code and no setting."""

    campaign: Annotated[str, AfterValidator(own_campaign)] = Field(default=_OWN, max_length=200)
    core: Annotated[JSON, _valid(sections_of)] = Field(default={})
    facts: bool = True
    timezone: Annotated[str, _valid(find_timezone)] = ""
    # A file is read when a turn begins.
    ltm_config: Annotated[str | JSON, _valid(lambda ltm: isinstance(ltm, dict) and LtmConfig.of(ltm))] = ""
    search_results: int = Field(default=5, ge=1, le=20)
    max_tool_rounds: int = Field(default=6, ge=1, le=20)

    @property
    def zone(self) -> tzinfo:
        """The timezone in which the person's days begin."""
        return find_timezone(self.timezone)

    @property
    def notes_facts(self) -> bool:
        """Whether facts are noted and recalled; recall as the LTM extension has it knows none."""
        return self.facts and self.ltm_config == ""
