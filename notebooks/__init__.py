"""Pages: what an agent keeps in graph state (not Jupyter notebooks)."""

from notebooks.base import Change, Entry, Notebook
from notebooks.character import Abilities, CharacterNotebook
from notebooks.errors import NotebookError, PageFullError, PatchError, VersionError
from notebooks.patch import diff_patch, merge_patch, patch_schema
from notebooks.render import parse_fields, render_fields, render_value
from notebooks.state import Clock, Condition, Person, Quest, StateNotebook

__all__ = [
    "Abilities",
    "Change",
    "CharacterNotebook",
    "Clock",
    "Condition",
    "Entry",
    "Notebook",
    "NotebookError",
    "PageFullError",
    "PatchError",
    "Person",
    "Quest",
    "StateNotebook",
    "VersionError",
    "diff_patch",
    "merge_patch",
    "parse_fields",
    "patch_schema",
    "render_fields",
    "render_value",
]
