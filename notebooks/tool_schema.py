"""Tool schemas in the OpenAI function format, made of the pydantic model that checks the arguments."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from questbook.notebooks.patch import JSON

_KEPT = ("description", "type", "minimum", "maximum", "items", "enum", "default")


def tool_schema(name: str, arguments: type[BaseModel]) -> JSON:
    """Describe a tool; what it does stands in the docstring of its arguments."""
    schema = arguments.model_json_schema()
    fields = {field: _field(told) for field, told in schema["properties"].items()}
    parameters = {"type": "object", "properties": fields, "required": schema.get("required", [])}
    described = " ".join((arguments.__doc__ or "").split())
    return {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}


def first_problem(error: ValidationError, arguments: type[BaseModel]) -> str:
    """Say in a sentence or two what is wrong with a call's arguments, and which it takes."""
    problem = error.errors(include_url=False)[0]
    name = ".".join(map(str, problem["loc"])) or "arguments"
    got = "it is missing" if problem["type"] == "missing" else f"got {problem['input']!r:.60}; {problem['msg']}"
    return f"{name}: {got}. It takes {', '.join(arguments.model_fields)}."


def _field(told: JSON) -> JSON:
    """Keep what models read; `X | None` becomes X, since a field that may be left out need not be sent as null."""
    options = [option for option in told.get("anyOf", []) if option.get("type") != "null"]
    return {key: part[key] for part in (*options[:1], told) for key in _KEPT if part.get(key) is not None}
