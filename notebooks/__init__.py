"""Pages: what an agent keeps in graph state (not Jupyter notebooks)."""

from questbook.notebooks.base import Change, Entry, Notebook, Number, Place
from questbook.notebooks.character import Abilities, CharacterNotebook
from questbook.notebooks.core import CoreNotebook, Section, sections_of
from questbook.notebooks.core_edits import CORE_TOOLS, Edited, edit_core
from questbook.notebooks.declaration import check_declarations
from questbook.notebooks.errors import (
    DeclarationError,
    EditError,
    NotebookError,
    PageFullError,
    PatchError,
    SectionFullError,
    VersionError,
)
from questbook.notebooks.merge import Count, difference
from questbook.notebooks.patch import diff_patch, merge_patch, patch_schema
from questbook.notebooks.render import parse_fields, render_fields, render_value
from questbook.notebooks.state import Clock, Condition, Person, Quest, StateNotebook
from questbook.notebooks.update import Update, every, every_turn, on_demand, once

__all__ = [
    "CORE_TOOLS",
    "Abilities",
    "Change",
    "CharacterNotebook",
    "Clock",
    "Condition",
    "CoreNotebook",
    "Count",
    "DeclarationError",
    "EditError",
    "Edited",
    "Entry",
    "Notebook",
    "NotebookError",
    "Number",
    "PageFullError",
    "PatchError",
    "Person",
    "Place",
    "Quest",
    "Section",
    "SectionFullError",
    "StateNotebook",
    "Update",
    "VersionError",
    "check_declarations",
    "diff_patch",
    "difference",
    "edit_core",
    "every",
    "every_turn",
    "merge_patch",
    "on_demand",
    "once",
    "parse_fields",
    "patch_schema",
    "render_fields",
    "render_value",
    "sections_of",
]
