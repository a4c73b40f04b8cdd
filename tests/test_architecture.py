"""The house rules that a reader relies on: one import name, rooms with doors, who may import whom."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from benchmarks import house

ROOT = Path(__file__).parent.parent
FOLDERS = ("notebooks", "memory", "graphs")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PROGRAMS = [path for folder in ("tests", "examples", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Who may import whom: a room (a folder, or a loose module) to the rooms that it may import, besides itself.
MEMORY = {
    "errors": set(),
    "tracing": set(),
    "sync": set(),
    "text": {"errors"},
    "embeddings": {"errors", "text", "sync"},
    "store": {"embeddings", "text", "errors", "tracing", "sync"},
    "timeline": {"store", "text", "errors"},
    "recall": {"timeline", "store", "embeddings", "text", "errors", "tracing"},
    "facts": {"recall", "timeline", "store", "embeddings", "text", "errors"},
    "buffer": {"text", "errors"},
    "archive": {"recall", "timeline", "store", "text", "errors"},
    "lore": {"timeline", "store", "text", "errors"},
    "ltm": {"recall", "timeline", "store", "embeddings", "text", "errors"},
}
LOOSE = {"errors", "settings"}
GRAPHS = {
    "errors": set(),
    "settings": {"errors"},
    "identity": {"errors"},
    "offline": set(),
    "models": {"offline"} | LOOSE,
    "turn": {"models"} | LOOSE,
    "monitoring": {"turn", "local"} | LOOSE,
    "events": {"turn"},
    "history": {"turn"} | LOOSE,
    "reflect": {"turn", "models"} | LOOSE,
    "local": {"turn", "history", "models", "events", "identity"} | LOOSE,
    "forgetting": {"turn", "history", "local"} | LOOSE,
    "pruning": {"turn", "local"} | LOOSE,
    "dungeon_master.why": {"dungeon_master", "forgetting", "local", "turn", "history", "models"} | LOOSE,
    "dungeon_master": {"turn", "models", "reflect", "history"} | LOOSE,
    "companion": {"turn", "models", "reflect", "history"} | LOOSE,
    "agent": {"turn", "models", "reflect", "history"} | LOOSE,
    "middleware": {"turn", "reflect"} | LOOSE,
    "memories": {"dungeon_master.why", "forgetting", "turn", "history"} | LOOSE,
    "interface": {"dungeon_master.why", "companion", "forgetting", "local", "turn"} | LOOSE,
}
DOORS = ("terminal", "web", "server")
ROOMS = (
    {"notebooks": {"types"}}
    | {f"memory.{room}": {f"memory.{other}" for other in others} | {"types"} for room, others in MEMORY.items()}
    | {
        f"graphs.{room}": {f"graphs.{other}" for other in others}
        | {f"memory.{other}" for other in MEMORY}
        | {"notebooks", "types"}
        for room, others in GRAPHS.items()
    }
)
FORBIDDEN_WORDS = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
"""Words that no module's name may hold: they say nothing, or what every module is."""
LONG_FUNCTIONS: set[str] = set()
"""Functions of more than 60 lines that are left. No name is added here."""


MODULES = house.modules_of(ROOT)
NAMES = {path: module for module, path in MODULES.items()}


@cache
def imports_of(path):
    """List the modules that a file imports; `from x import y` is x.y where that is a module of ours, else x."""
    return sorted(set(house.imports_of(path, MODULES).values()))


def module_of(path):
    return NAMES[path]


def room_of(module):
    """Return the room of a module of Questbook: "memory.store", "graphs.errors", "notebooks", "types"; "" outside."""
    parts = module.split(".")
    if parts[0] != "questbook":
        return ""
    if parts[2:] in (["dungeon_master", "why"], ["dungeon_master", "retract"]):
        return "graphs.dungeon_master.why"  # a room of its own, which the machine does not know
    return ".".join(parts[1:2] if parts[1:2] in (["notebooks"], ["types"]) else parts[1:3])


def name_of(path):
    return str(path.relative_to(ROOT))


def code_blocks(path):
    return re.findall(r"```(?:python|py|pycon)\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_everything_is_imported_as_questbook():
    bare = re.compile(r"^\s*(?:from|import) (?:(?:memory|graphs|notebooks)\b|\.).*$", re.MULTILINE)
    lines = [(name_of(path), line) for path in (*SOURCES, *PROGRAMS) for line in bare.findall(path.read_text("utf-8"))]
    assert lines == []


def test_what_is_known_of_langgraph_s_server_is_in_one_module():
    known = re.compile(
        r"langgraph_(?:api|runtime|auth_user)|__pregel_(?!tasks)|\bget_client\b|LANG(?:GRAPH|SERVE)_|/noauth"
    )
    found = {name_of(path): sorted(set(known.findall(path.read_text("utf-8")))) for path in SOURCES}
    assert found.pop("graphs/turn/api_server.py")
    assert {name: words for name, words in found.items() if words} == {}


def test_documents_import_questbook_and_name_no_bare_module():
    bare = r"^\s*(?:>>> )?(?:from|import) (?:memory|graphs|notebooks)\b"
    lines = [(name_of(path), line) for path in TEXTS for block in code_blocks(path) for line in block.splitlines()]
    assert [(name, line) for name, line in lines if re.match(bare, line)] == []


def test_a_room_imports_only_the_rooms_below_it():
    free = {"memory", "graphs", *(f"graphs.{door}" for door in DOORS)}
    rooms = {path: room_of(module_of(path)) for path in SOURCES}
    assert set(rooms.values()) - free - set(ROOMS) == set(), "a new room: say in ROOMS what it may import"
    wrong = [
        (name_of(path), module)
        for path, room in rooms.items()
        for module in imports_of(path)
        if room not in free and module.count(".") and room_of(module)
        if room_of(module) not in ROOMS[room] | {room}
    ]
    assert wrong == []


def assert_no_circle(below):
    """Check that a mapping of names to those that they import can be built up from the bottom."""
    done = set()
    while left := set(below) - done:
        free = {name for name in left if below[name] <= done}
        assert free, f"a circle among {sorted(left)}"
        done |= free


def test_neither_rooms_nor_modules_form_a_circle():
    """Of modules, imports inside functions and for type checkers count, too."""
    assert_no_circle({room: others - {"types"} for room, others in ROOMS.items()})
    assert_no_circle({module: {*imports_of(path)} & MODULES.keys() - {module} for module, path in MODULES.items()})


def test_nothing_imports_the_doors():
    doors = {f"graphs.{door}" for door in DOORS}
    for path in SOURCES:
        room = room_of(module_of(path))
        others = {room_of(module) for module in imports_of(path)} & doors - {room}
        assert others == set(), name_of(path)


def test_notebooks_need_pydantic_alone():
    allowed = {"questbook", "pydantic", "pydantic_core"}
    others = {module.split(".")[0] for path in (ROOT / "notebooks").rglob("*.py") for module in imports_of(path)}
    assert others - allowed - set(sys.stdlib_module_names) == set()


def test_what_the_product_imports_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = sum(project["optional-dependencies"].values(), project["dependencies"])
    declared = {re.match(r"[\w-]+", line)[0].lower() for line in lines} | {
        "markupsafe",
        "pydantic-core",
        "langgraph-api",
    }
    known = packages_distributions()
    imported = {module.split(".")[0] for path in SOURCES for module in imports_of(path)}
    others = imported - set(sys.stdlib_module_names) - {"questbook", "langgraph"}
    dists = {name: {dist.lower().replace("_", "-") for dist in known.get(name, [name])} for name in others}
    assert {name for name, candidates in dists.items() if not candidates & declared} == set()


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name == "__init__.py"], ids=name_of)
def test_each_room_says_in_its_first_line_what_it_is_for(path):
    first = path.read_text("utf-8").partition("\n")[0]
    assert first.startswith('"""')
    words = re.findall(r"\w+", first)
    assert len(words) >= 4, "more than the folder's name"


@pytest.mark.parametrize(("folder", "most"), [("graphs", 5), ("memory", 3)])
def test_few_modules_lie_loose_beside_the_rooms(folder, most):
    assert len([path for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"]) <= most


def test_a_room_keeps_to_its_budget_of_lines():
    """Growth is paid for: a room may grow when another shrinks. What a room has saved is not given back."""
    budgets, rooms = house.budgets(ROOT), {room: lines for room, (_, lines) in house.rooms(ROOT).items()}
    assert budgets.keys() == rooms.keys(), "benchmarks/rooms.toml has a line for each room"
    over = {room: f"{lines} lines of {budgets[room]}" for room, lines in rooms.items() if lines > budgets[room]}
    assert over == {}, "make it shorter, or take the lines from another room's budget"
    under = {room: lines for room, lines in rooms.items() if lines < min(budgets[room] * 0.9, budgets[room] - 50)}
    assert under == {}, "write these into benchmarks/rooms.toml: more than a tenth of the budget is free"


def test_a_function_has_at_most_60_lines():
    long = house.long_functions(ROOT)
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}
    assert LONG_FUNCTIONS - long.keys() == set(), "short now: take them out of LONG_FUNCTIONS"


def test_a_modules_name_is_a_noun_that_says_something():
    stems = {path.stem for path in SOURCES}
    assert [stem for stem in stems if set(stem.lower().split("_")) & FORBIDDEN_WORDS or stem.endswith("_node")] == []


def test_tests_are_flat():
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_every_write_to_a_store_goes_through_put_all():
    """`put_all` leaves out what PostgreSQL refuses, indexes the text of records alone, and lets nothing expire."""
    write = re.compile(r"store(?:\(\))?\.a?(?:put\(|batch\((?!.*GetOp)).*")
    others = [path for path in SOURCES if path.parent.name != "store" and path.name != "sync.py"]
    assert [(name_of(path), line) for path in others for line in write.findall(path.read_text("utf-8"))] == []


# Who opens a file by its name, and which: never one that SQLite may have open, because to close it drops the locks.
OPENS = {
    "graphs/forgetting/suppression.py": "append_line since",  # the list of what was forgotten, and the audit log
    "graphs/interface/forgetting.py": "_typed_entries remove_typed",  # the prompt's history
    "graphs/local/file_home.py": "secret",  # a file of its own
    "graphs/local/backup.py": "back_up restore",  # when a copy was begun
    "graphs/local/campaign_file.py": "_open _write_archive",  # a zip that a person names, in a command that then ends
    "graphs/offline/model.py": "load_texts",  # a table of this package
    "graphs/terminal/cli.py": "main parser",  # the null device; a text of this package
    "graphs/terminal/play.py": "__init__",  # the prompt's history
    "graphs/terminal/memories.py": "_write",  # a file that a person names, in a command that then ends
    "graphs/web/app_state.py": "__post_init__",  # templates of this package
    "graphs/web/campaigns.py": "export",  # an exported zip in a temporary directory
    "memory/embeddings/bert.py": "load_tokenizer read_safetensors",  # a model's vocabulary
    "memory/embeddings/minilm.py": "_checksum _copy _download",  # a model's weights
    "memory/lore/documents.py": "read_bytes",  # texts that a person names, known by their endings
    "memory/lore/langchain_index.py": "_bytes_of",  # index.faiss and index.pkl of LangChain
    "memory/ltm/config.py": "read write",  # the extension's settings
    "memory/ltm/extension_files.py": "_copy read_csv write_csv",  # a copy in a temporary directory
    "memory/ltm/migration.py": "_decode _header",  # an array of the extension
    "memory/store/database_file.py": "_link_file",  # a file that has no other name yet
    "memory/store/snapshots.py": "_checksum _create read_snapshot write_snapshot",  # a snapshot of an index
    "memory/text/parts.py": "_texts_beside read_parts",  # a table of this package
}
OPENING = {
    "open", "fdopen", "read_bytes", "read_text", "write_bytes", "write_text", "touch", "ZipFile", "mkstemp", "FileIO",
    "NamedTemporaryFile", "mmap", "memmap", "fromfile", "read_index", "write_index", "FileResponse", "truncate",
    "copyfile", "copy2", "copytree", "move", "make_archive",
}  # fmt: skip
"""Names of functions that open a file by its name."""
OTHERS = {"pool.open",
    "FaissStore.open", "archive.open", "backend.open", "webbrowser.open", "read_bytes", "read_index",
}  # fmt: skip
"""What has such a name and opens no file by itself: of `read_bytes` and `read_index`, ours."""


def openings(path):
    """Return the functions of a module that open a file by its name."""
    found = set()

    def walk(node, function):
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.Call):
                called = ast.unparse(child.func)
                opens = called.rpartition(".")[2] in OPENING or called == "shutil.copy"
                if opens and ".".join(called.split(".")[-2:]) not in OTHERS:
                    found.add(inside)
            walk(child, inside)

    walk(house.tree_of(path), "")
    return found


def test_nobody_opens_a_database_file_beside_sqlite():
    """May SQLite have this file open? `memory.store.database_file` reads such files."""
    found = {name_of(path): " ".join(sorted(openings(path))) for path in SOURCES}
    assert {name: opens for name, opens in found.items() if opens} == OPENS
