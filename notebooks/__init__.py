"""Pages: what an agent keeps in graph state, as typed notebooks (not Jupyter notebooks).

Others may use the names in `__all__`:

* a notebook of your own: `Notebook`, `Entry`, `Number`, `Count`, `PromptPlace`, `Scope`, and when it is written:
  `once`, `every_turn`, `every`, `on_demand` (each an `Update`); `check_declarations` checks a list of them
* the notebooks of this project: `CharacterNotebook`, `StateNotebook`, `CoreNotebook` with their entries
* patches: `Notebook.apply` returns a `Change`; `apply_fitting`, for patches of which not all has to fit, a
  `PartialChange`; `merge_patch`, `diff_patch`, `patch_schema`
* core memory's tools: `CORE_TOOLS`, `edit_core`, `core_tool`
* prompt text: `render_value`, `render_fields`, `parse_fields`
* the errors, all of them `NotebookError`

Read `character.py` first, then `base.py`.
"""

from questbook.notebooks.base import (
    Change,
    Entry,
    Notebook,
    PromptPlace,
    Scope,
    Update,
    check_declarations,
    every,
    every_turn,
    on_demand,
    once,
)
from questbook.notebooks.character import Abilities, CharacterNotebook
from questbook.notebooks.core import CoreNotebook, Section, sections_of
from questbook.notebooks.core_tools import CORE_TOOLS, CoreEdit, CoreTool, core_tool, edit_core
from questbook.notebooks.errors import (
    DeclarationError,
    EditError,
    NotebookError,
    PageFullError,
    PatchError,
    SectionFullError,
    VersionError,
)
from questbook.notebooks.fitting import PartialChange, apply_fitting
from questbook.notebooks.patch import Count, Number, diff_patch, merge_patch
from questbook.notebooks.render import parse_fields, render_fields, render_value
from questbook.notebooks.state import Clock, Condition, Person, Quest, StateNotebook
from questbook.notebooks.tool_schema import patch_schema

__all__ = [
    "CORE_TOOLS",
    "Abilities",
    "Change",
    "CharacterNotebook",
    "Clock",
    "Condition",
    "CoreEdit",
    "CoreNotebook",
    "CoreTool",
    "Count",
    "DeclarationError",
    "EditError",
    "Entry",
    "Notebook",
    "NotebookError",
    "Number",
    "PageFullError",
    "PartialChange",
    "PatchError",
    "Person",
    "PromptPlace",
    "Quest",
    "Scope",
    "Section",
    "SectionFullError",
    "StateNotebook",
    "Update",
    "VersionError",
    "apply_fitting",
    "check_declarations",
    "core_tool",
    "diff_patch",
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
