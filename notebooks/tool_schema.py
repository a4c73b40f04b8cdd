"""Tool schemas in the OpenAI function format: of a patch that a model may write, and of a tool's arguments."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

from pydantic import BaseModel, ValidationError

from questbook.notebooks.problems import list_problems, shorten
from questbook.types import JSON

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


def patch_schema(model: type[BaseModel]) -> JSON:
    """Return the JSON schema of a patch for `model`: every field may be left out, and every field may be null.

    References are written out, because several providers do not follow `$ref` in tool schemas. Fields marked
    `json_schema_extra={"engine": True}` belong to code and are left out.
    """
    return deepcopy(_patch_schema(model))  # LangChain's adapters may add to what they are given


@cache  # pydantic takes 8 ms for the quest's page, and every turn offers the tool
def _patch_schema(model: type[BaseModel]) -> JSON:
    schema = model.model_json_schema(by_alias=True)
    return _object(schema, schema.get("$defs", {}))


def _argument(node: JSON) -> JSON:
    """Keep the keys that models read. `X | None` becomes X: a field that may be left out need not be sent as null."""
    options = [option for option in node.get("anyOf", []) if option.get("type") != "null"]
    return {key: part[key] for part in (*options[:1], node) for key in _KEYS if part.get(key) is not None}


def _object(node: JSON, defs: JSON) -> JSON:
    fields = {
        name: _nullable(_resolve(field, defs)) for name, field in node["properties"].items() if not field.get("engine")
    }
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _resolve(node: JSON, defs: JSON) -> JSON:
    description = {"description": node["description"]} if "description" in node else {}
    if "$ref" in node:
        return _resolve(defs[node["$ref"].rsplit("/", 1)[1]], defs) | description
    if "anyOf" in node:  # X | None: null is added for every field anyway
        options = [_resolve(option, defs) for option in node["anyOf"] if option.get("type") != "null"]
        return (options[0] if len(options) == 1 else {"anyOf": options}) | description
    if "properties" in node:
        return _object(node, defs) | description
    if isinstance(node.get("additionalProperties"), dict):
        values = _nullable(_resolve(node["additionalProperties"], defs))
        return {"type": "object", "additionalProperties": values} | description
    items = {"items": _resolve(node["items"], defs)} if "items" in node else {}
    kept_keys = ("type", "enum", "const", "minimum", "maximum", "maxLength")
    return {key: node[key] for key in kept_keys if key in node} | items | description


def _nullable(node: JSON) -> JSON:
    description = {"description": node["description"]} if "description" in node else {}
    bare = {key: value for key, value in node.items() if key != "description"}
    return {"anyOf": [bare, {"type": "null"}]} | description
