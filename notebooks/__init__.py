"""Pages: what an agent keeps in graph state, as typed notebooks (not Jupyter notebooks). Apps import from `questbook`.

Read `character` first, then `base`: what a notebook is. `state` and `core` are the other pages of this project.
"""

from questbook.notebooks.base import (
    Entry,
    Notebook,
    PromptPlace,
    Scope,
    check_declarations,
    on_demand,
    once,
    parse_fields,
    render_fields,
    render_value,
)
from questbook.notebooks.character import CharacterNotebook
from questbook.notebooks.core import CoreNotebook, Section, sections_of
from questbook.notebooks.core_tools import CORE_TOOLS, CoreTool, core_tool, edit_core
from questbook.notebooks.errors import DeclarationError, EditError, NotebookError, PatchError
from questbook.notebooks.patch import PartialChange, apply_fitting, diff_patch, merge_patch
from questbook.notebooks.schema import by_engine, obvious, patch_schema
from questbook.notebooks.state import StateNotebook

__all__ = [
    "CORE_TOOLS", "CharacterNotebook", "CoreNotebook", "CoreTool", "DeclarationError", "EditError", "Entry", "Notebook",
    "NotebookError", "PartialChange", "PatchError", "PromptPlace", "Scope", "Section", "StateNotebook", "apply_fitting",
    "by_engine", "check_declarations", "core_tool", "diff_patch", "edit_core", "merge_patch", "obvious", "on_demand",
    "once", "parse_fields", "patch_schema", "render_fields", "render_value", "sections_of",
]  # fmt: skip
