"""Pages: what an agent keeps in graph state (not Jupyter notebooks)."""

from notebooks.base import Change, Entry, Notebook
from notebooks.character import Abilities, CharacterNotebook
from notebooks.core import CoreNotebook, Section, sections_of
from notebooks.core_edits import CORE_TOOLS, Edited, edit_core
from notebooks.errors import EditError, NotebookError, PageFullError, PatchError, SectionFullError, VersionError
from notebooks.patch import diff_patch, merge_patch, patch_schema
from notebooks.render import parse_fields, render_fields, render_value
from notebooks.state import Clock, Condition, Person, Quest, StateNotebook

__all__ = [
    "CORE_TOOLS",
    "Abilities",
    "Change",
    "CharacterNotebook",
    "Clock",
    "Condition",
    "CoreNotebook",
    "EditError",
    "Edited",
    "Entry",
    "Notebook",
    "NotebookError",
    "PageFullError",
    "PatchError",
    "Person",
    "Quest",
    "Section",
    "SectionFullError",
    "StateNotebook",
    "VersionError",
    "diff_patch",
    "edit_core",
    "merge_patch",
    "parse_fields",
    "patch_schema",
    "render_fields",
    "render_value",
    "sections_of",
]
