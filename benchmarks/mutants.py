"""Mutants: break the code on purpose, one place at a time, and count how many of the breaks a test notices.

    python benchmarks/mutants.py                       100 mutants of four rooms (about half an hour on two cores)
    python benchmarks/mutants.py --count 25 --rooms memory/recall
    python benchmarks/mutants.py --seed 2              other places
    python benchmarks/mutants.py --tests 'test_recall_*' 'test_dungeon_*'      only these tests, which is quicker

A mutant is one small change in a copy of the project: a comparison turned round, a condition negated, `and` for `or`,
a number one greater, an argument left out, `min` for `max`. First all quick tests run once with coverage, which says
which tests reach which line. Then each mutant runs the tests that reach its line, those of the least reach first, until
one fails. A mutant that no test notices survives: it is printed. The last lines are `name: value unit`;
`mutants_noticed_late` counts those that only tests of greater reach notice, behind the nearest forty.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import re
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

ROOT = Path(__file__).parent.parent
ROOMS = ("memory/recall", "memory/facts", "memory/timeline", "graphs/dungeon_master")
WORKERS = 2
NEAREST = 40  # tests of the least reach, which run first: mostly one of them notices
MOST_TESTS = 600  # a line that more tests reach is judged by those of the least reach
SURVIVED, LATE, ENDLESS = "survived", "noticed late", "endless"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[\w./]+(?:::\w+)?)", re.MULTILINE)
TIMEOUT = 900  # seconds; a mutant that loops for ever is noticed, too

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
import coverage
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    coverage.Coverage.current().switch_context(item.nodeid.partition("[")[0])
    return (yield)
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


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which a copy's tests import the copy."""
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


def measure_reach(tree: Path, rooms: list[str], files: list[str], number: int) -> Path:
    """Run test files with coverage and return the data file: which test function reached which line."""
    data, settings = tree / f"reach{number}", tree / f"reach{number}.ini"
    include = "\n    ".join(f"{tree}/{room}/*" for room in rooms)
    settings.write_text(f"[run]\nconcurrency = thread\ninclude =\n    {include}\n", "utf-8")
    (tree / "reach_by_test.py").write_text(_PLUGIN, "utf-8")
    command = [sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--rcfile={settings}", "-m", "pytest"]
    command += ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "reach_by_test", "--timeout=600", *files]
    subprocess.run(command, cwd=tree, env=environment(tree), capture_output=True, check=False)
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


def first_failure(tree: Path, tests: list[str]) -> str:
    """Run tests in a copy until one fails, and return its function, or file; "" if none fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment(tree), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return ENDLESS
    if run.returncode in (0, 5):
        return ""
    failed = _FAILED.search(run.stdout)  # a test file that cannot be read fails, too
    if failed is None:
        raise RuntimeError(f"pytest could not run {tests}: {run.stdout[-800:]}{run.stderr[-800:]}")
    return failed[1]


def is_noticed(mutant: Mutant, tree: Path, tests: list[str]) -> bool:
    """Return whether a test fails for a mutant, and does not fail without it."""
    while tests:
        with applied(mutant, tree):
            failure = first_failure(tree, tests)
        if failure in ("", ENDLESS) or not first_failure(tree, [failure]):
            return failure != ""
        tests = [test for test in tests if test != failure]
    return False


def main() -> None:
    """Make mutants, run their tests, and print who survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="mutants in all (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="which places (default: 1)")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help="folders to change")
    parser.add_argument("--tests", nargs="+", default=["test_*"], help="patterns of test files (default: all)")
    parser.add_argument("--survivors", type=Path, help="write the survivors to this JSON file")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as directory:
        trees = [copy_of_project(Path(directory).resolve() / str(number)) for number in range(WORKERS)]
        reach = _reach(trees, options.rooms, options.tests)
        counts = Counter(test for tests in reach.values() for test in tests)
        mutants: list[Mutant] = []
        for number, room in enumerate(options.rooms):
            places = [m for path in sorted((ROOT / room).rglob("*.py")) for m in mutants_of(path)]
            share = options.count // len(options.rooms) + (number < options.count % len(options.rooms))
            mutants += chance.sample(places, min(share, len(places)))
        free: Queue[Path] = Queue()
        for tree in trees:
            free.put(tree)

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            reaching = {t for n in range(mutant.line, mutant.end_line + 1) for t in reach.get((mutant.path, n), ())}
            tests = sorted(reaching, key=lambda test: (counts[test], test))[:MOST_TESTS]
            tree = free.get()
            try:
                if is_noticed(mutant, tree, tests[:NEAREST]):
                    return mutant, ""
                return mutant, LATE if is_noticed(mutant, tree, tests[NEAREST:]) else SURVIVED
            finally:
                free.put(tree)

        with ThreadPoolExecutor(WORKERS) as pool:
            verdicts = list(pool.map(judge, mutants))
    report(verdicts, options.rooms, options.survivors)


def _reach(trees: list[Path], rooms: list[str], patterns: list[str]) -> dict[tuple[str, int], set[str]]:
    """Measure on all copies at once; return which tests reach each line, with paths from the root."""
    names = sorted({path.name for pattern in patterns for path in (ROOT / "tests").glob(f"{pattern}.py")})
    parts = [[f"tests/{name}" for name in names[number::WORKERS]] for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        files = list(pool.map(lambda n: measure_reach(trees[n], rooms, parts[n], n), range(WORKERS)))
    reach: dict[tuple[str, int], set[str]] = defaultdict(set)
    for tree, data in zip(trees, files, strict=True):
        for (path, line), tests in reach_of(data).items():
            reach[str(Path(path).resolve().relative_to(tree)), line] |= tests
    return reach


def report(verdicts: list[tuple[Mutant, str]], rooms: list[str], survivors: Path | None) -> None:
    """Print each survivor and the share that was noticed, by room and in all."""
    alive = [(mutant, why) for mutant, why in verdicts if why == SURVIVED]
    for mutant, why in alive:
        print(f"{mutant.path}:{mutant.line} {why}\n    - {mutant.before}\n    + {mutant.after}")
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
    print(f"mutants_noticed_late: {sum(why == LATE for _, why in verdicts)} mutants")
    print(f"mutants_noticed: {100 - 100 * len(alive) / len(verdicts):.0f} %")


if __name__ == "__main__":
    main()
