"""What a model may write: tool schemas in the OpenAI function format, and in words what is wrong with what it wrote."""

import difflib
import types
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from functools import cache, reduce
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from questbook.types import JSON

_WHOLE, _NUMBER = "expected a whole number, such as 3", "expected a number, such as 0.5"
_PLAIN = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    "string_type": "expected text",
}  # what pydantic expects, in the words of people, by the kind of its error
_MOST = 20  # problems that are listed; a page of five hundred wrong names needs no more to be mended
_KEYS = ("description", "type", "minimum", "maximum", "items", "enum", "default")


def tool_schema(name: str, arguments: type[BaseModel]) -> JSON:
    """Return the schema of a tool. Its description is the docstring of `arguments`, the model that checks a call."""
    schema = arguments.model_json_schema()
    fields = {field: _argument(description) for field, description in schema["properties"].items()}
    parameters = {"type": "object", "properties": fields, "required": schema.get("required", [])}
    text = " ".join((arguments.__doc__ or "").split())
    return {"type": "function", "function": {"name": name, "description": text, "parameters": parameters}}


def argument_problems(error: ValidationError, arguments: type[BaseModel]) -> str:
    """Say all that is wrong with a call's arguments, and which arguments the tool takes."""
    return f"{' '.join(shorten(list_problems(error, arguments)))} It takes {', '.join(arguments.model_fields)}."


def by_engine(field: FieldInfo) -> bool:
    """Return whether code alone writes a field: `json_schema_extra={"engine": True}`."""
    return isinstance(field.json_schema_extra, dict) and bool(field.json_schema_extra.get("engine"))


def fields_of(model: Any) -> dict[str, FieldInfo]:
    """Return the fields of a page or an entry by their names in JSON; of another type none."""
    fields = model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}
    return {field.alias or name: field for name, field in fields.items()}


def own_names(model: Any, patch: Any, left_out: list[str] | None = None, path: str = "") -> Any:
    """Return a patch with a class's own names of fields: its `WORDS` say what else they are called.

    Of a field that is sent under two names the other stays as it was sent. With the list `left_out`, what is like no
    field of an entry, beside some that are its fields, goes, and the list says so; but nothing that is secret.
    """
    if not isinstance(patch, Mapping):
        return patch
    model, kept = _bare(model), JSON()
    fields, words = fields_of(model), getattr(model, "WORDS", {})
    known: JSON = {word: field for field in fields if words for word in (field, *words.get(field, "").split())}
    for sent, value in patch.items():
        own = str(known.get("_".join(str(sent).casefold().replace("-", " ").split()), sent))
        name = sent if sent in fields or own in patch or own in kept else own
        inner = None if name in getattr(model, "SECRET", ()) else left_out
        kept[name] = own_names(_part_of(model, name), value, inner, f"{path}{name}.")
    if left_out is not None and path and not fields.keys().isdisjoint(kept):
        for odd in [n for n in kept if n not in fields and (str(n).casefold() in known or not nearest(str(n), fields))]:
            del kept[odd]
            left_out.append(f"{path}{odd}: there is no such field; it was left out.")
    return kept


def obvious(description: str, default: Any, **more: Any) -> Any:
    """Declare a field of a page whose name tells a model enough: the description is for people, and costs no tokens."""
    return Field(default=default, description=description, json_schema_extra={"obvious": True}, **more)


def patch_schema(model: type[BaseModel]) -> JSON:
    """Return the JSON schema of a patch for `model`: every field may be left out, and every entry may be null.

    References are written out, because several providers do not follow `$ref` in tool schemas. Fields marked
    `json_schema_extra={"engine": True}` belong to code and are left out.
    """
    return deepcopy(_patch_schema(model))  # LangChain's adapters may add to what they are given


@cache  # pydantic takes 8 ms for a large page, and every turn offers the tool
def _patch_schema(model: type[BaseModel]) -> JSON:
    schema = model.model_json_schema(by_alias=True)
    return _object(schema, schema.get("$defs", {}))


def _argument(node: JSON) -> JSON:
    """Keep the keys that models read. `X | None` becomes X: a field that may be left out need not be sent as null."""
    options = [option for option in node.get("anyOf", []) if option.get("type") != "null"]
    return {key: part[key] for part in (*options[:1], node) for key in _KEYS if part.get(key) is not None}


def _object(node: JSON, defs: JSON) -> JSON:
    fields = {name: _resolve(field, defs) for name, field in node["properties"].items() if not field.get("engine")}
    return {"type": "object", "properties": fields}


def _resolve(node: JSON, defs: JSON) -> JSON:
    description = {"description": node["description"]} if node.get("description") and not node.get("obvious") else {}
    if "$ref" in node:  # a class's docstring is for readers of the code: a field says what it is
        return _resolve(defs[node["$ref"].rsplit("/", 1)[1]] | {"description": None}, defs) | description
    if "anyOf" in node:
        return {"anyOf": [_resolve(option, defs) for option in node["anyOf"]]} | description
    if "properties" in node:
        return _object(node, defs) | description
    if isinstance(node.get("additionalProperties"), dict):
        entry = _resolve(node["additionalProperties"], defs)
        if isinstance(entry.get("type"), str) and "enum" not in entry:
            entry["type"] = [entry["type"], "null"]  # shorter than `anyOf`; providers that know none pass over entries
        else:
            entry = {"anyOf": [entry, {"type": "null"}]}
        return {"type": "object", "additionalProperties": entry} | description
    items = {"items": _resolve(node["items"], defs)} if "items" in node else {}
    kept_keys = ("type", "enum", "const", "minimum", "maximum", "maxLength")
    return {key: node[key] for key in kept_keys if key in node} | items | description


def list_problems(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return one sentence for each problem that pydantic has with a value of a class: path, value, what fits."""
    # A page's secrets, and the whole page, which has them, are not shown: messages end up in logs.
    problems, secret = list[str](), {"", *getattr(model, "SECRET", ())}
    for problem in error.errors(include_url=False):
        path = ".".join(str(part) for part in problem["loc"]) or "the whole"
        if problem["type"] == "extra_forbidden":
            *place, name = problem["loc"]
            inner = _bare(reduce(lambda within, part: _part_of(_bare(within), part), place, model))
            known = [own for own, field in fields_of(inner).items() if not by_engine(field)]
            there_are = f"there are {', '.join(known)}." if known else "leave it out."
            fits = f"did you mean {near}?" if (near := nearest(str(name), known)) else there_are
            problems.append(f"{path}: there is no such field; {fits}")
        elif problem["type"] == "missing":
            problems.append(f"{path}: it is missing.")
        elif str((*problem["loc"], "")[0]) in secret:
            problems.append(f"{path}: {expected(problem)}.")
        else:
            sent = repr(problem["input"])
            sent = sent if len(sent) <= 80 else f"{sent[:77]}..."
            problems.append(f"{path}: got {sent}; {expected(problem)}.")
    return problems


def shorten(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and how many more there are."""
    more = len(problems) - _MOST
    return [*problems[:_MOST], *([f"And {more} more of the kind."] if more > 0 else [])]


def expected(problem: ErrorDetails) -> str:
    """Say what a value should have been, in plain words where there are any."""
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return _PLAIN.get(problem["type"]) or message[:1].lower() + message[1:]


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known name that a wrong one is most like, or is short for; "" if there is none."""
    folded, wrong = {other.casefold(): other for other in known}, name.casefold().strip()
    begin_alike = [other for other in folded if len(wrong) > 1 and (other.startswith(wrong) or wrong.startswith(other))]
    alike = begin_alike or difflib.get_close_matches(wrong, list(folded), n=1, cutoff=0.6)
    return folded[alike[0]] if alike else ""


def _part_of(annotation: Any, part: Any) -> Any:
    if part in (fields := fields_of(annotation)):
        return fields[part].annotation
    arguments = get_args(annotation)
    return arguments[-1] if arguments and get_origin(annotation) in (dict, list) else None


def _bare(annotation: Any) -> Any:
    """Return a type without its marks, and X of `X | None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return _bare(options[0]) if len(options) == 1 else None
    return annotation
