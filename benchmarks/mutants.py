"""Mutants: break the code on purpose, one place at a time, and count how many of the breaks a test notices.

    python benchmarks/mutants.py                       100 mutants of four rooms (about half an hour on two cores)
    python benchmarks/mutants.py --count 25 --rooms memory/recall
    python benchmarks/mutants.py --seed 2              other places
    python benchmarks/mutants.py --tests 'test_recall_*' 'test_dungeon_*'      only these tests, which is quicker
    python benchmarks/mutants.py --changes benchmarks/mutants_by_hand.json     changes that people wrote, of all rooms

A mutant is one small change in a copy of the project: a comparison turned round, a condition negated, `and` for `or`,
a number one greater, an argument left out, `min` for `max`. Or a change of a list that people wrote, who broke a rule
at places drawn by chance and did not see the tests: objects with `path`, `before` (a text that the file has once),
`after` and `rule` (what a user loses); those whose text the code no longer has are counted as outdated.

First all quick tests run once with coverage, which says which tests reach which line. Then each mutant runs the tests
that reach its line and then its module, the quickest and those of the least reach first, for at most a minute, until
one fails that passes without the change. Who survives is shown to the slow tests of `--last`, if any. A mutant that no
test notices is printed. The last lines are `name: value unit`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from fork_pytest import ENDLESS, ForkedPytest, environment

ROOT = Path(__file__).parent.parent
ROOMS = ("memory/recall", "memory/facts", "memory/timeline", "graphs/dungeon_master")
ALL_ROOMS = ("graphs", "memory", "notebooks", "questbook")  # where people's changes are
WORKERS = 2
MOST_SECONDS = 60.0  # of tests for one mutant, as they took in the measuring run
LONGEST_TEST = 12.0  # seconds; a longer one is left out
SURVIVED, NOTICED, OUTDATED = "survived", "noticed", "outdated"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


# Coverage's own contexts lose the test where LangGraph runs a node in a task of its own.
_PLUGIN = """
import json, os, time
import coverage
import pytest

seconds = {}

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    function = item.nodeid.partition("[")[0]
    coverage.Coverage.current().switch_context(function)
    start = time.perf_counter()
    result = yield
    seconds[function] = seconds.get(function, 0.0) + time.perf_counter() - start
    return result

def pytest_sessionfinish():
    with open(os.environ["REACH_SECONDS"], "w") as file:
        json.dump(seconds, file)
"""


class Mutant(NamedTuple):
    """One change: where it is, and the text before and after."""

    path: str
    line: int
    end_line: int
    column: int
    end_column: int
    before: str
    after: str
    rule: str = ""  # what a user loses; "" of a drawn one


class Reach(NamedTuple):
    """Which tests reach each (path, line), and how many seconds each test function takes."""

    tests: dict[tuple[str, int], set[str]]
    seconds: dict[str, float]


def changes_of(file: Path) -> tuple[list[Mutant], int]:
    """Read a list of changes by hand; return them, and how many of them no longer fit the code."""
    mutants: list[Mutant] = []
    outdated = 0
    for change in json.loads(file.read_text("utf-8")):
        path, before, after = ROOT / change["path"], change["before"], change["after"]
        source = path.read_text("utf-8") if path.exists() else ""
        if source.count(before) != 1:
            outdated += 1
            continue
        head = _same(before, after)
        tail = _same(before[head:][::-1], after[head:][::-1])
        start = source.index(before) + head
        end = start + len(before) - head - tail
        line, column = _line_and_column(source, start)
        end_line, end_column = _line_and_column(source, end)
        texts = (source[start:end], after[head : len(after) - tail], change["rule"])
        mutants.append(Mutant(change["path"], line, end_line, column, end_column, *texts))
    return mutants, outdated


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _line_and_column(source: str, offset: int) -> tuple[int, int]:
    """Return the line (from 1) and the column in bytes, as `ast` counts them."""
    head = source[:offset]
    return head.count("\n") + 1, len(head.rpartition("\n")[2].encode())


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield each mutant of a module; annotations, docstrings, log calls and errors' texts are left alone."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        for statement in function.body:
            for node in _code_of(statement):
                for changed in _changes(node):
                    before = ast.get_source_segment(source, node) or ""
                    after = ast.unparse(ast.fix_missing_locations(changed))
                    if isinstance(node, (ast.BoolOp, ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp)):
                        after = f"({after})"
                    place = (node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0)
                    yield Mutant(str(path.relative_to(ROOT)), *place, before, after)


def _code_of(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement, without nested functions, raised errors and log calls, and `strict`.

    `strict` of `zip` only asserts what holds.
    """
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Raise, ast.ClassDef)):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("_log.", "log.")):
            continue
        if isinstance(node, ast.expr):
            yield node
        children = [] if isinstance(node, ast.JoinedStr) else list(ast.iter_child_nodes(node))
        children = [child for child in children if not (isinstance(child, ast.keyword) and child.arg == "strict")]
        if isinstance(node, ast.AnnAssign):
            children.remove(node.annotation)
        queue.extend(children)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        changed = copy.deepcopy(node)
        changed.ops = [_COMPARISONS[type(node.ops[0])]()]
        yield changed
    elif isinstance(node, ast.BoolOp):
        changed_bool = copy.deepcopy(node)
        changed_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed_bool
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        changed_operator = copy.deepcopy(node)
        changed_operator.op = _OPERATORS[type(node.op)]()
        yield changed_operator
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.IfExp):
        changed_choice = copy.deepcopy(node)
        changed_choice.body, changed_choice.orelse = changed_choice.orelse, changed_choice.body
        yield changed_choice
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            changed_call = copy.deepcopy(node)
            changed_call.func = ast.Name(_FUNCTIONS[node.func.id])
            yield changed_call
        for number, keyword in enumerate(node.keywords):
            if keyword.arg and keyword.arg != "strict":
                shorter = copy.deepcopy(node)
                del shorter.keywords[number]
                yield shorter


def copy_of_project(directory: Path) -> Path:
    """Copy what git knows of the project, links included."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        source, target = ROOT / name, directory / name
        if source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.readlink(source))
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return directory


def measure_reach(tree: Path, rooms: list[str], files: list[str], number: int) -> Path:
    """Run test files with coverage and return the data file: which test function reached which line."""
    data, settings = tree / f"reach{number}", tree / f"reach{number}.ini"
    include = "\n    ".join(f"{tree}/{room}/*" for room in rooms)
    settings.write_text(f"[run]\nconcurrency = thread\ninclude =\n    {include}\n", "utf-8")
    (tree / "reach_by_test.py").write_text(_PLUGIN, "utf-8")
    command = [sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--rcfile={settings}", "-m", "pytest"]
    command += ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "reach_by_test", "--timeout=600", *files]
    known = environment(tree) | {"REACH_SECONDS": f"{data}.seconds"}
    subprocess.run(command, cwd=tree, env=known, capture_output=True, check=False)
    return data


def reach_of(data: Path) -> dict[tuple[str, int], set[str]]:
    """Read a data file: (path, line) to the tests that reach it, such as "tests/test_recall.py::test_x"."""
    from coverage.numbits import numbits_to_nums

    reach: dict[tuple[str, int], set[str]] = defaultdict(set)
    with sqlite3.connect(data) as database:
        rows = database.execute(
            "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
            "JOIN file ON file.id = file_id JOIN context ON context.id = context_id WHERE context.context != ''"
        )
        for path, context, numbits in rows:
            for line in numbits_to_nums(numbits):
                reach[path, line].add(context)
    database.close()
    return reach


@contextmanager
def applied(mutant: Mutant, tree: Path) -> Iterator[None]:
    """Change a module of a copy as a mutant says, and put it back."""
    path = tree / mutant.path
    source = path.read_text("utf-8")
    lines = source.encode().splitlines(keepends=True)
    head = lines[mutant.line - 1][: mutant.column]
    tail = lines[mutant.end_line - 1][mutant.end_column :]
    lines[mutant.line - 1 : mutant.end_line] = [head + mutant.after.encode() + tail]
    path.write_bytes(b"".join(lines))
    try:
        yield
    finally:
        path.write_text(source, "utf-8")


def is_noticed(mutant: Mutant, pytest: ForkedPytest, tests: list[str]) -> bool:
    """Return whether a test fails for a mutant, and does not fail without it."""
    while tests:
        with applied(mutant, pytest.tree):
            failure = pytest.first_failure(tests)
        if failure in ("", ENDLESS) or not pytest.first_failure([failure]):
            return failure != ""
        tests = [test for test in tests if test != failure]
    return False


def nearest_tests(mutant: Mutant, reach: Reach, counts: Counter[str]) -> list[str]:
    """Return the tests that reach a mutant's lines, then those that reach its module, as many as the time allows.

    The cheapest come first. A table that is read at import, or what a cached function calls, is reached by one test or
    none, and held by others.
    """
    lines = range(mutant.line, mutant.end_line + 1)
    reaching = {test for line in lines for test in reach.tests.get((mutant.path, line), ())}
    beside = {test for (path, _), tests in reach.tests.items() if path == mutant.path for test in tests} - reaching
    chosen, spent = [], 0.0
    for tests in (reaching, beside):
        for test in sorted(tests, key=lambda test: (counts[test] * (1 + reach.seconds.get(test, 0.0)), test)):
            seconds = reach.seconds.get(test, 0.0)
            if seconds <= LONGEST_TEST and spent + seconds <= MOST_SECONDS:
                chosen.append(test)
                spent += seconds
    return chosen


def main() -> None:
    """Make mutants, run their tests, and print who survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="mutants in all (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="which places (default: 1)")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help="folders to change")
    parser.add_argument("--tests", nargs="+", default=["test_*"], help="patterns of test files (default: all)")
    parser.add_argument("--survivors", type=Path, help="write the survivors to this JSON file")
    parser.add_argument("--changes", type=Path, help="judge the changes of this JSON file instead of drawn ones")
    parser.add_argument("--last", nargs="+", default=[], help="test files, slow ones too, for those that survive")
    options = parser.parse_args()
    rooms = list(ALL_ROOMS) if options.changes else options.rooms
    mutants, outdated = changes_of(options.changes) if options.changes else (drawn(rooms, options), 0)
    with tempfile.TemporaryDirectory() as directory:
        trees = [copy_of_project(Path(directory).resolve() / str(number)) for number in range(WORKERS)]
        reach = _reach(trees, rooms, options.tests)
        counts = Counter(test for tests in reach.tests.values() for test in tests)
        free: Queue[ForkedPytest] = Queue()
        for tree in trees:
            free.put(ForkedPytest(tree))

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            pytest = free.get()
            try:
                tests = nearest_tests(mutant, reach, counts)
                noticed = is_noticed(mutant, pytest, tests) or is_noticed(mutant, pytest, options.last)
                return mutant, NOTICED if noticed else SURVIVED
            finally:
                free.put(pytest)

        with ThreadPoolExecutor(WORKERS) as pool:
            verdicts = list(pool.map(judge, mutants))
    report(verdicts, rooms, options.survivors)
    if options.changes:
        print(f"mutants_{OUTDATED}: {outdated} mutants")


def drawn(rooms: list[str], options: argparse.Namespace) -> list[Mutant]:
    """Draw mutants by chance, the same number of each room."""
    chance = random.Random(options.seed)
    mutants: list[Mutant] = []
    for number, room in enumerate(rooms):
        places = [m for path in sorted((ROOT / room).rglob("*.py")) for m in mutants_of(path)]
        share = options.count // len(rooms) + (number < options.count % len(rooms))
        mutants += chance.sample(places, min(share, len(places)))
    return mutants


def _reach(trees: list[Path], rooms: list[str], patterns: list[str]) -> Reach:
    """Measure on all copies at once; paths are from the root."""
    names = sorted({path.name for pattern in patterns for path in (ROOT / "tests").glob(f"{pattern}.py")})
    parts = [[f"tests/{name}" for name in names[number::WORKERS]] for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        files = list(pool.map(lambda n: measure_reach(trees[n], rooms, parts[n], n), range(WORKERS)))
    reach = Reach(defaultdict(set), {})
    for tree, data in zip(trees, files, strict=True):
        for (path, line), tests in reach_of(data).items():
            reach.tests[str(Path(path).resolve().relative_to(tree)), line] |= tests
        reach.seconds.update(json.loads(Path(f"{data}.seconds").read_text("utf-8")))
    return reach


def report(verdicts: list[tuple[Mutant, str]], rooms: list[str], survivors: Path | None) -> None:
    """Print each survivor and the share that was noticed, by room and in all."""
    alive = [(mutant, why) for mutant, why in verdicts if why == SURVIVED]
    for mutant, why in alive:
        print(f"{mutant.path}:{mutant.line} {why} {mutant.rule}\n    - {mutant.before}\n    + {mutant.after}")
    if survivors:
        survivors.write_text(
            json.dumps([mutant._asdict() | {"verdict": why} for mutant, why in alive], indent=1), "utf-8"
        )
    print()
    for room in rooms:
        own = [why for mutant, why in verdicts if mutant.path.startswith(f"{room}/")]
        if own:
            noticed = 100 - 100 * own.count(SURVIVED) / len(own)
            print(f"mutants_noticed_{room.replace('/', '_')}: {noticed:.0f} %")
    print(f"mutants: {len(verdicts)} mutants")
    print(f"mutants_noticed: {100 - 100 * len(alive) / len(verdicts):.0f} %")


if __name__ == "__main__":
    main()
