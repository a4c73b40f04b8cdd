"""Merge patches (RFC 7396) and the tool schema that lets a model write one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

JSON = dict[str, Any]


def is_deeper(value: Any, most: int) -> bool:
    """Whether a JSON value has more levels than `most`; found without recursion, which deep ones would break."""
    level = [value]
    for _ in range(most):
        parts = [
            part.values() if isinstance(part, Mapping) else part
            for part in level
            if isinstance(part, Mapping | list | tuple)
        ]
        level = [inner for part in parts for inner in part]
    return bool(level)


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply `patch` to `target` as RFC 7396 says: objects merge, null deletes, all else replaces.

    Neither argument is changed.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def diff_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> JSON:
    """Return the merge patch that turns `before` into `after`; empty if they are alike.

    Where `after` holds null, the patch deletes: for a page that means its default.
    """
    patch: JSON = {key: None for key in before if after.get(key) is None and before[key] is not None}
    for key, value in after.items():
        old = before.get(key)
        if value is None or value == old:
            continue
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            patch[key] = diff_patch(old, value)
        else:
            patch[key] = value
    return patch


def patch_schema(model: type[BaseModel]) -> JSON:
    """Derive the JSON schema of a patch for `model`: every field optional, every field may be null.

    References are written out, because several providers do not follow `$ref` in tool schemas. Fields marked
    `json_schema_extra={"engine": True}` belong to code and are left out.
    """
    schema = model.model_json_schema(by_alias=True)
    return _object(schema, schema.get("$defs", {}))


def _object(node: JSON, defs: JSON) -> JSON:
    fields = {
        name: _nullable(_resolve(field, defs)) for name, field in node["properties"].items() if not field.get("engine")
    }
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _resolve(node: JSON, defs: JSON) -> JSON:
    described = {"description": node["description"]} if "description" in node else {}
    if "$ref" in node:
        return _resolve(defs[node["$ref"].rsplit("/", 1)[1]], defs) | described
    if "anyOf" in node:  # X | None: null is added for every field anyway
        options = [_resolve(option, defs) for option in node["anyOf"] if option.get("type") != "null"]
        return (options[0] if len(options) == 1 else {"anyOf": options}) | described
    if "properties" in node:
        return _object(node, defs) | described
    if isinstance(node.get("additionalProperties"), dict):
        values = _nullable(_resolve(node["additionalProperties"], defs))
        return {"type": "object", "additionalProperties": values} | described
    items = {"items": _resolve(node["items"], defs)} if "items" in node else {}
    kept_keys = ("type", "enum", "const", "minimum", "maximum")
    return {key: node[key] for key in kept_keys if key in node} | items | described


def _nullable(node: JSON) -> JSON:
    described = {"description": node["description"]} if "description" in node else {}
    bare = {key: value for key, value in node.items() if key != "description"}
    return {"anyOf": [bare, {"type": "null"}]} | described
