"""Pages: what an agent keeps in graph state, as typed notebooks (not Jupyter notebooks).

Apps import from `questbook`, the other rooms the names below. Read `character` first, then `base`.

* `base`: `Notebook`, its entries and declarations, and when it is written: `once`, `every_turn`, `every`, `on_demand`.
* `character`, `state`, `core`: the notebooks of this project.
* `patch`: merge patches; `fitting`: a patch of which not all has to fit; `tool_schema`: the tools for both.
* `core_tools`: how an assistant edits its core memory.
* `render`: the prompt text of a page.
* `errors`: all of them `NotebookError`; `problems`: what is wrong with a value, in words.
"""

from questbook.notebooks.base import Entry as Entry
from questbook.notebooks.base import Notebook as Notebook
from questbook.notebooks.base import PromptPlace as PromptPlace
from questbook.notebooks.base import Scope as Scope
from questbook.notebooks.base import check_declarations as check_declarations
from questbook.notebooks.base import on_demand as on_demand
from questbook.notebooks.base import once as once
from questbook.notebooks.character import CharacterNotebook as CharacterNotebook
from questbook.notebooks.core import CoreNotebook as CoreNotebook
from questbook.notebooks.core import Section as Section
from questbook.notebooks.core import sections_of as sections_of
from questbook.notebooks.core_tools import CORE_TOOLS as CORE_TOOLS
from questbook.notebooks.core_tools import CoreTool as CoreTool
from questbook.notebooks.core_tools import core_tool as core_tool
from questbook.notebooks.core_tools import edit_core as edit_core
from questbook.notebooks.errors import DeclarationError as DeclarationError
from questbook.notebooks.errors import EditError as EditError
from questbook.notebooks.errors import NotebookError as NotebookError
from questbook.notebooks.errors import PatchError as PatchError
from questbook.notebooks.fitting import PartialChange as PartialChange
from questbook.notebooks.fitting import apply_fitting as apply_fitting
from questbook.notebooks.patch import diff_patch as diff_patch
from questbook.notebooks.patch import merge_patch as merge_patch
from questbook.notebooks.render import parse_fields as parse_fields
from questbook.notebooks.render import render_fields as render_fields
from questbook.notebooks.render import render_value as render_value
from questbook.notebooks.state import StateNotebook as StateNotebook
from questbook.notebooks.tool_schema import patch_schema as patch_schema
