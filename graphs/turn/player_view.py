"""PlayerView: what a player may see of a campaign. Every door that shows the game uses this and nothing else."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from questbook.memory.facts.fact import is_secret_record
from questbook.notebooks import CharacterNotebook, StateNotebook
from questbook.types import JSON

_MOST_NOTED = 80  # characters that are told of what was noted
# Fields of a memory: what was noted with it, and who else knows.
_INTERNAL = frozenset({"noted", "sheet", "taught", "known_by", "rolls"})


def _quest(page: Any) -> JSON:
    return StateNotebook.load(page).player_view()


def shown_memories(memories: Iterable[Mapping[str, Any]] | None) -> list[JSON]:
    """Return the memories that a player may see, without internal fields."""
    shown = [memory for memory in memories or () if not is_secret_record(memory)]
    return [{name: value for name, value in memory.items() if name not in _INTERNAL} for memory in shown]


def shown_fields(paths: Iterable[str]) -> list[str]:
    """Return dotted paths of the quest's page as a player may read them: a secret's own name is one, too."""
    return list(dict.fromkeys(path.split(".")[0] if is_secret(path) else path for path in paths))


def is_secret(path: str) -> bool:
    """Whether a dotted path of the quest's page leads to what only the dungeon master knows."""
    return path.split(".")[0].strip().casefold() in StateNotebook.SECRET


def noted_on(node: str, update: Mapping[str, Any]) -> JSON:
    """Return what a node noted on a page, as a player may read it: {"page", "text"}; {} if nothing to tell of."""
    if node == "build_character" and "hit_points" in (update.get("character") or ()):
        return {"page": "sheet", "text": "Your character's sheet is complete."}
    patch: Mapping[str, Any] = (update.get("quest") if node == "update_state" else None) or {}
    fields = sorted((field for field in patch if not is_secret(field)), key="scene".__eq__)  # the reply tells the scene
    noted = " ".join("; ".join(_changed(field, patch[field]) for field in fields).split())
    text = f"{noted.rstrip('.')}." if len(noted) <= _MOST_NOTED else f"{noted[:_MOST_NOTED].rsplit(' ', 1)[0]}…"
    return {"page": "quest", "text": f"Noted: {text}"} if fields else {}


def _changed(name: str, value: Any) -> str:
    """Say in a few words what a merge patch does to a field: its new value, or the entries that change."""
    if value is None:
        return f"no {name} any more"
    if not isinstance(value, Mapping):
        return f"{name} {value}"
    if "$add" in value:
        return f"{name} {value['$add']:+}"
    parts = value.items()
    entries = (part if isinstance(of, Mapping) and "$add" not in of else _changed(part, of) for part, of in parts)
    return f"{name}: {', '.join(entries)}"


class PlayerView(BaseModel):
    """What a player may see, made of a state's channels, a checkpoint's values or the campaign's head; no secrets."""

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True)

    character: Annotated[CharacterNotebook, BeforeValidator(CharacterNotebook.load)] = Field(
        default_factory=CharacterNotebook
    )
    quest: Annotated[JSON, BeforeValidator(_quest)] = Field(default_factory=dict)
    summary: str = ""
    recalled: Annotated[list[JSON], BeforeValidator(shown_memories)] = Field(default_factory=list)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Make the view of a state's values; a page that is none, or a newer Questbook's, is a NotebookError."""
        pages = {"character": CharacterNotebook.load(values.get("character")), "quest": _quest(values.get("quest"))}
        return cls.model_validate({"summary": values.get("summary") or "", "recalled": values.get("recalled")} | pages)

    def recap(self) -> str:
        """Tell the player where the story is: the summary, the open quests, the last scene."""
        view = self.quest
        open_quests = {title: one for title, one in view.get("quests", {}).items() if one.get("status") == "open"}
        quests = [f"{title}: {one['notes']}" if one.get("notes") else title for title, one in open_quests.items()]
        clock, scene = view.get("clock", {}), str(view.get("scene", ""))
        times = [f"day {clock['day']}" if "day" in clock else "", str(clock.get("time", ""))]
        # The scene often says where and when; what it says is not said twice.
        when = ", ".join(part for part in times if part and part.casefold() not in scene.casefold())
        where = str(view.get("location", ""))
        where = f"You are at {where}" if where and where.casefold() not in scene.casefold() else ""
        lines = [
            self.summary,
            f"Open: {'; '.join(quests)}" if quests else "",
            f"Now: {scene}" if scene else "",
            f"{where}{f' ({when})' if when else ''}." if where else f"It is {when}." if when and scene else "",
        ]
        text = "\n\n".join(filter(None, lines))
        return "**Previously on…**" + (f"\n\n{text}" if text else " nothing yet: the story is about to begin.")
