"""Endpoints that change the pages by hand: a field, an entry that is new, a section of core memory.

A field is a text, a number, a choice, a thing with parts, or a list to which one can add. Every change goes through the
page's own gate (`History.write`), and a refusal is shown at the field.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from questbook.graphs.dungeon_master.sheet import fill_sheet
from questbook.graphs.dungeon_master.why import FACT, MEMORY, value_at, why
from questbook.graphs.errors import HistoryError, InputError
from questbook.graphs.interface.text import clean
from questbook.graphs.local.game import Game
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.web.app_state import acts, html, shows
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.notebooks import CharacterNotebook, CoreNotebook, Notebook, StateNotebook, by_engine
from questbook.types import JSON

PAGES: Mapping[str, type[Notebook]] = {"character": CharacterNotebook, "quest": StateNotebook}
"""The pages that a person edits, by channel."""


class Part(NamedTuple):
    """A field, or a part of one."""

    name: str  # as the page has it
    kind: str  # "text", "number", "choice", "parts" (a thing with fields of its own), or "list" (things by name)
    hint: str = ""  # what belongs in it
    choices: tuple[Any, ...] = ()  # as the page has them
    parts: tuple["Part", ...] = ()  # its own fields; of a list, those of each thing in it; none if that is a value
    each: str = ""  # of a list: the kind of each thing in it


def part_at(page: str, names: Sequence[str]) -> Part | None:
    """Return what a page has at a path, whether or not anything is written there; None: nothing that one may edit."""
    if page not in PAGES:
        return None
    here = Part(page, "parts", parts=tuple(_parts_of(PAGES[page])))
    for name in names:
        if here.kind == "list":
            here = here._replace(name=name, kind=here.each, hint="", each="")
            continue
        if (below := next((part for part in here.parts if part.name == name), None)) is None:
            return None
        here = below
    return here


def _parts_of(page: type[BaseModel]) -> Iterator[Part]:
    secret = page.SECRET if issubclass(page, Notebook) else frozenset()
    for name, field in page.model_fields.items():
        if name not in secret and (not by_engine(field) or name == "hit_points"):  # a person may set their maximum
            yield _part(field.alias or name, field.annotation, field.description or "")


def _part(name: str, annotation: Any, hint: str = "") -> Part:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        hints = [extra.description for extra in inner[1:] if isinstance(extra, FieldInfo) and extra.description]
        return _part(name, inner[0], hint or "".join(hints[:1]))
    if origin in (Union, UnionType):
        return _part(name, next(kind for kind in inner if kind is not type(None)), hint)
    if origin is Literal:
        return Part(name, "choice", hint, inner)
    if origin is dict:
        each = _part(name, inner[1])
        return Part(name, "list", hint, each.choices, each.parts, each.kind)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Part(name, "parts", hint, parts=tuple(_parts_of(annotation)))
    if annotation is bool:
        return Part(name, "choice", hint, (True, False))
    return Part(name, "number" if annotation in (int, float) else "text", hint)


def settings_part(name: str, field: FieldInfo) -> Part:
    """Return what a setting is."""
    return _part(name, field.annotation, field.description or "")


def patch_of(names: Sequence[str], value: Any) -> dict[str, Any]:
    """Make the merge patch that sets one field; None deletes it."""
    for name in reversed(names):
        value = {name: value}
    assert isinstance(value, dict)  # noqa: S101 (a path has one name at least)
    return value


def read_value(part: Part, text: str) -> Any:
    """Read what a person wrote into a field: nothing deletes it; what is no number is refused where one belongs."""
    text = text.strip()
    if part.kind == "choice":
        return next((choice for choice in part.choices if str(choice) == text), text or None)
    if part.kind != "number" or not text:
        return text or None
    if len(text) > 15 or not text[text[0] in "+-" :].isdecimal():
        raise InputError(f"{text!r:.40} is no whole number, and this field holds one. Nothing was changed.")
    return int(text)


_LONGEST_NAME = 80
_MOST_CAUSES = 4  # turns that are named


async def field(request: Request, campaign: OpenCampaign) -> Response:
    """Show a field's card: its value, a control for it, and where it comes from."""
    page, names, game = request.query_params.get("page", ""), request.query_params.getlist("path"), campaign.game
    part, saved = part_at(page, names), await game.saved_game()
    if part is None or not names or saved is None:
        return html(request, "problem.html", {"text": "There is nothing here that can be changed."}, 404)
    value = _value_of(saved.view, page, names)
    nothing: JSON = {"causes": [], "reason": "Nothing is written here yet."}
    causes = nothing if value is None else await origin(game, ".".join(names))
    return html(request, "card.html", {"page": page, "names": names, "part": part, "value": value, **causes})


async def change(_: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Change or delete a field, or add an entry to a list."""
    page, names = str(form.get("page", "")), [str(name) for name in form.getlist("path")]
    part, saved = part_at(page, names), await campaign.game.saved_game()
    if part is None or not names or saved is None:
        raise HTTPException(404, "There is no such field.")
    value: Any = None if form.get("delete") else read_value(part, str(form.get("value", "")))
    if part.kind == "list" and not form.get("delete"):
        value = _new_entry(part, form, _value_of(saved.view, page, names) or {})
    changed = _check_fits(PAGES[page].load(saved.values.get(page)), names, value)
    patches = {page: patch_of(names, value)}
    if isinstance(changed, CharacterNotebook) and (before := saved.character).complete:
        if not changed.complete:
            raise InputError("Since the quest has begun, this cannot be empty. Write something else here.")
        patches = fill_sheet(before, changed, saved.quest)
    async with campaign.change(is_same_line=True):
        await (await campaign.game.history()).write(patches)


async def core(_: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Change a section of core memory."""
    async with campaign.change(is_same_line=True):
        saved = await campaign.game.saved_game()
        if saved is None or "core" not in saved.values:
            raise InputError("Core memory is a companion's, and begins with your first message to it.")
        patch = _core_patch(CoreNotebook.load(saved.values.get("core")), form)
        await (await campaign.game.history()).write({"core": patch})


ROUTES = [shows("/field", field), acts("/page", change), acts("/core", core)]


def _value_of(view: PlayerView, page: str, names: Sequence[str]) -> Any:
    """Return what a page says in a field, as the player may see it; None if there is no such field."""
    return value_at(view.character.player_view() if page == "character" else view.quest, names)


async def origin(game: Game, what: str, reason: str = "", *, of_player: bool = True, turn: int | None = None) -> JSON:
    """Return which turns set a field or left a memory, the newest first, each with what it set; or why nobody knows.

    Of several turns, `turn` is the one that is meant. `reason` says why nobody knows, where `why` does not.
    """
    try:
        causes = await why(await game.load(), game.config, game.context, what, of_player=of_player)
    except HistoryError as error:
        return {"causes": [], "reason": reason or str(error)}
    turns: dict[tuple[str, int], JSON] = {}
    for cause in [cause for cause in causes if cause.turn == turn] or causes:
        shown = turns.setdefault((cause.branch, cause.turn), cause._asdict() | {"sets": []})
        name = "" if cause.field in (MEMORY, FACT) else cause.field.split(".")[-1].replace("_", " ")
        if name and cause.value != "":
            shown["sets"].append((name, cause.value, cause.holds))
    return {"causes": list(turns.values())[:_MOST_CAUSES], "reason": ""}


def _check_fits(page: Notebook, names: Sequence[str], value: Any) -> Notebook:
    """Return the changed page; refuse what it would correct: a model is corrected without a word, a person asked."""
    change = page.apply(patch_of(names, value), by_model=False)
    if any(note.startswith(f"{'.'.join(names)}: ") for note in change.notes):
        nearest: Any = change.page.as_json()
        for name in names:
            nearest = nearest.get(name) or {}  # of what is used up there is none
        raise InputError(f"{value} does not fit here; the nearest that does is {nearest or 0}. Nothing was changed.")
    return change.page


def _new_entry(part: Part, form: FormData, there: Mapping[str, Any]) -> JSON:
    """Make the patch of a list that adds what a form says, under a name that the list does not have yet."""
    name = " ".join(clean(str(form.get("name", ""))).split())
    if not name or len(name) > _LONGEST_NAME:
        raise InputError(f"A new entry needs a name of 1 to {_LONGEST_NAME} characters, got {name!r:.100}.")
    if (same := next((other for other in there if other.casefold() == name.casefold()), None)) is not None:
        raise InputError(f"{same!r} is on the page already. Choose it there to change it.")
    if not part.parts:
        empty = 1 if part.each == "number" else ""
        value = read_value(part._replace(kind=part.each), str(form.get("value", "")))
        return {name: empty if value is None else value}
    values = {each.name: read_value(each, str(form.get(f"part.{each.name}", ""))) for each in part.parts}
    return {name: {inner: value for inner, value in values.items() if value is not None}}


def _core_patch(core: CoreNotebook, form: FormData) -> JSON:
    """Make the patch of core memory that a form asks for: a section new, changed, removed or further up."""
    label, labels = " ".join(str(form.get("label", "")).split()), core.labels
    if (form.get("delete") or form.get("up")) and label not in labels:
        raise InputError(f"There is no section {label!r:.60}. Nothing was changed.")
    if form.get("delete"):
        return {"sections": {label: None}}
    if form.get("up"):
        place = max(labels.index(label) - 1, 0)
        labels.remove(label)
        return {"order": [*labels[:place], label, *labels[place:]]}
    if form.get("new") and label.casefold() in (other.casefold() for other in labels):
        raise InputError(f"There is a section {label!r} already.")
    text, section = str(form.get("value", "")), core.sections.get(label)
    is_text = section is None or isinstance(section.value, str)  # of a list, the page leaves blank lines out
    return {"sections": {label: {"value": text if is_text else text.splitlines()}}}
