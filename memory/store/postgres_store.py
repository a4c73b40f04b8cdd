"""`HybridPostgresStore`: LangGraph's store on PostgreSQL, searched by words and meaning as `FaissStore` is.

LangGraph's proposes by vectors alone, and joins no filters. Here a search compares each vector under its prefix: exact,
and faster than an approximate index with a filter, which looks among everybody's items first. Words are the
lexemes of `text` in a generated column, scored with BM25 over what the filter allows.
"""

import asyncio
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, Result, SearchOp
from langgraph.store.postgres import AsyncPostgresStore
from langgraph.store.postgres.base import (
    PLACEHOLDER,
    Migration,
    _namespace_prefix_condition,
    _row_to_item,
    _row_to_search_item,
)
from psycopg import Error
from psycopg_pool import PoolClosed, PoolTimeout

from questbook.memory.errors import StoreUnavailableError
from questbook.memory.store.filters import alternatives, check_filter, number_in
from questbook.memory.text.bm25 import K1, B
from questbook.memory.text.words import query_words
from questbook.types import JSON

_FOLDER = files("questbook.memory.store")
_SEARCH = _FOLDER.joinpath("search.sql").read_text("ascii")
_SQL: JSON = tomllib.loads(_FOLDER.joinpath("postgres.toml").read_text("utf-8"))
TABLES = tuple(statement.replace("{WORDS}", _SQL["WORDS"]) for statement in _SQL["TABLES"])
"""Statements that add to LangGraph's tables what the searches need; they may be repeated."""
_COLUMNS = ("branch", "turn")
_CLOSING = 5.0  # seconds that a batch may take to end
_AT_ONCE = 8  # questions of one batch that are embedded at the same time
_JOINS = {"$or": (" OR ", "false"), "$and": (" AND ", "true")}  # the second: what an empty list says
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


class HybridPostgresStore(AsyncPostgresStore):
    """`AsyncPostgresStore` with words beside vectors, and the filters that join others, as `FaissStore` takes them.

    All errors of the database are a StoreUnavailableError. `TABLES` must have been executed.
    """

    filters_any = True  # it takes "$or", "$and" and "$through"
    ranks_words = True
    # A flat search needs no index; LangGraph 3.2's `setup` makes one whatever its condition says.
    VECTOR_MIGRATIONS = tuple(
        Migration("SELECT 1") if step.condition is not None else step for step in AsyncPostgresStore.VECTOR_MIGRATIONS
    )

    async def __aexit__(self, *error: Any) -> None:
        """Close, after what was asked for; LangGraph leaves its task to the garbage collector, which complains."""
        await super().__aexit__(*error)
        if self._task is not None:
            for _ in range(2):  # the first may only end a batch, the second ends the task
                cast("Any", self._aqueue).put_nowait(None)
            _, left = await asyncio.wait({self._task}, timeout=_CLOSING)
            for task in left:
                task.cancel()
            self._aqueue = asyncio.Queue()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: reads, then writes."""
        several = list(ops)
        for wanted in {id(op.filter): op.filter for op in several if isinstance(op, SearchOp)}.values():
            if wanted is not None:
                check_filter(wanted)
        try:
            return await super().abatch(several)
        except (Error, PoolTimeout, PoolClosed) as error:
            does = "written" if any(isinstance(op, PutOp) for op in several) else "read"
            reason = " ".join(str(error).split()) or type(error).__name__
            raise StoreUnavailableError(f"The memories in PostgreSQL cannot be {does}: {reason:.300}.") from error

    async def _execute_batch(self, grouped_ops: Any, results: list[Result], conn: Any = None) -> None:  # noqa: ARG002
        """Execute a batch by one statement that reads and one that writes; no pipeline is needed for those."""
        gets, searches, lists, puts = (grouped_ops.get(kind, []) for kind in (GetOp, SearchOp, ListNamespacesOp, PutOp))
        async with self._cursor() as cur:
            if self.ttl_config:  # what refreshes is no part of a statement
                await self._batch_get_ops(gets, results, cur)
                await self._batch_search_ops(searches, results, cur)
            elif gets or searches:
                await self._read(gets, searches, results, cur)
            await self._batch_list_namespaces_ops(lists, results, cur)
            if puts:
                await self._batch_put_ops(puts, cur)

    async def _read(self, gets: Any, searches: Any, results: list[Result], cur: Any) -> None:
        queries = await self._searches(searches)
        places = [(".".join(op.namespace), op.key) for _, op in gets]
        queries += [(_SQL["GET"], list(map(list, zip(*places, strict=True))))] if gets else []
        values = [each for _, own in queries for each in own]
        parts = [_SQL["PART"].format(number=number, search=search) for number, (search, _) in enumerate(queries)]
        await cur.execute(" UNION ALL ".join(parts) + " ORDER BY number, place", values)
        rows: list[list[Any]] = [[] for _ in queries]
        for row in await cur.fetchall():
            rows[row["number"]].append(row)
        for (number, _), found in zip(searches, rows, strict=False):
            results[number] = [_row_to_search_item(tuple(row["prefix"].split(".")), row) for row in found]
        items = {(row["prefix"], row["key"]): row for row in rows[-1]}
        for (number, op), place in zip(gets, places, strict=True):
            results[number] = _row_to_item(op.namespace, items[place]) if place in items else None

    async def _batch_search_ops(self, search_ops: Any, results: list[Result], cur: Any) -> None:
        for (number, _), (search, values) in zip(search_ops, await self._searches(search_ops), strict=True):
            await cur.execute(search, values)
            rows = await cur.fetchall()
            results[number] = [_row_to_search_item(tuple(row["prefix"].split(".")), row) for row in rows]

    async def _searches(self, searches: Any) -> list[tuple[str, list[Any]]]:
        """Make the statements of searches with their values; each question is embedded once, as a question."""
        queries, embedded = self._prepare_batch_search_queries(searches)
        texts = list(dict.fromkeys(text for _, text in embedded))
        made = dict[str, list[float]]()
        for start in range(0, len(texts), _AT_ONCE):
            several, embedder = texts[start : start + _AT_ONCE], cast("Embeddings", self.embeddings)
            made |= zip(several, await asyncio.gather(*map(embedder.aembed_query, several)), strict=True)
        vectors = {number: made[text] for number, text in embedded}
        return [
            (search, [vectors[number] if each is PLACEHOLDER else each for each in values])
            for number, (search, values) in enumerate(queries)
        ]

    async def _batch_put_ops(self, put_ops: Sequence[tuple[int, PutOp]], cur: Any) -> None:
        statements, embedded = self._prepare_batch_PUT_queries(put_ops)
        if embedded and self.embeddings:
            vectors = await self.embeddings.aembed_documents([row[-1] for row in embedded[1]])
            values = [value for row, vector in zip(embedded[1], vectors, strict=True) for value in (*row[:-1], vector)]
            statements.append((embedded[0], values))
        if self.index_config and (written := [op for _, op in put_ops if op.value is not None]):
            items = [".".join(op.namespace) for op in written], [op.key for op in written]
            new = [list(part) for part in zip(*embedded[1], strict=True)] if embedded else [[], [], []]
            statements.append((_SQL["DROP_STALE"], [*items, *new[:3]]))
        named = ", ".join(f"write{number} AS ({statement})" for number, (statement, _) in enumerate(statements))
        together = (f"WITH {named} SELECT", [value for _, values in statements for value in values])
        if len(together[1]) < 2**16:  # PostgreSQL takes no more values in a statement
            await cur.execute(*together)
            return
        async with cur.connection.transaction():
            for statement in statements:
                await cur.execute(*statement)

    def _prepare_batch_PUT_queries(self, put_ops: Sequence[tuple[int, PutOp]]) -> Any:  # noqa: N802 (LangGraph's name)
        queries, embedded = super()._prepare_batch_PUT_queries(put_ops)
        if embedded:  # a vector of whole numbers would be sent as such, which no vector takes
            embedded = (embedded[0].replace("(%s, %s, %s, %s, ", "(%s, %s, %s, %s::float8[], "), embedded[1])
        return queries, embedded

    def _prepare_batch_search_queries(
        self, search_ops: Sequence[tuple[int, SearchOp]]
    ) -> tuple[list[tuple[str, list[Any]]], list[tuple[int, str]]]:
        queries: list[tuple[str, list[Any]]] = []
        embedded: list[tuple[int, str]] = []
        for number, (_, op) in enumerate(search_ops):
            where, values = _condition(op.filter or {})
            if op.namespace_prefix:
                condition, prefix = _namespace_prefix_condition(op.namespace_prefix)
                where, values = f"{condition} AND {where}", [*prefix, *values]
            if self._omit_expired:
                where += " AND (store.expires_at IS NULL OR store.expires_at > now())"
            if op.query and self.index_config:
                embedded.append((number, op.query))
                dense = float(getattr(self.embeddings, "fusion_weight", 1.0))
                statement = _SEARCH.format(where=where, dense=dense, k1=K1 + 1, k=K1, rest=1 - B, b=B)
                values = [" ".join(query_words(op.query)), PLACEHOLDER, *values]
            else:
                statement = _SQL["LIST"].format(where=where)
            if op.refresh_ttl and self.ttl_config:
                statement = _SQL["REFRESHED"].format(search=statement)
            queries.append((statement, [*values, op.limit, op.offset]))
        return queries, embedded


def _condition(wanted: Mapping[str, Any], path: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """Return a filter that passed `check_filter` as a condition with its values.

    It allows what `filters.matches` allows, but true is no 1 here, and objects in lists are compared as a whole.
    """
    parts, values = list[str](), list[Any]()
    for key, condition in wanted.items():
        if key == "$through":
            key, condition = "$or", alternatives(condition)
        if key in _JOINS:
            several, (joined_by, of_none) = [_condition(one, path) for one in condition], _JOINS[key]
            part = joined_by.join(each for each, _ in several) or of_none
            needed = [one for _, each in several for one in each]
        elif key in _COLUMNS and not path:
            plain = condition is not None and not (isinstance(condition, Mapping) and {"$ne", "$eq"} & condition.keys())
            has = f"store.{key}" if plain else f"coalesce(store.{key}, 'null')"  # the plain column has statistics
            part, needed = _meets(has, [], condition, (key,))
        elif "." in key and not path:
            either = "coalesce(store.value->%s, store.value#>%s::text[], 'null')"
            part, needed = _meets(either, [key, key.split(".")], condition, (key,))
        else:
            part, needed = _meets("coalesce(store.value#>%s::text[], 'null')", [[*path, key]], condition, (*path, key))
        parts.append(f"({part})")
        values += needed
    return " AND ".join(parts) or "true", values


def _meets(has: str, named: list[Any], condition: Any, path: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the condition of one key; `has` is what a value has there, an expression with the values `named`."""
    if not isinstance(condition, Mapping):
        return f"{has} = %s::jsonb", [*named, json.dumps(condition)]
    if not any(name.startswith("$") for name in condition):
        inner, values = _condition(condition, path)
        return f"jsonb_typeof({has}) = 'object' AND {inner}", [*named, *values]
    parts, values = list[str](), list[Any]()
    for operator, operand in condition.items():
        if operator in ("$eq", "$ne"):
            parts.append(f"{has} {'=' if operator == '$eq' else '<>'} %s::jsonb")
            values += [*named, json.dumps(operand)]
        else:
            part, needed = _orders(has, named, _ORDER[operator], operand)
            parts.append(part)
            values += needed
    return " AND ".join(parts), values


def _orders(has: str, named: list[Any], sign: str, operand: Any) -> tuple[str, list[Any]]:
    """Return the condition that a value comes before or after an operand, as `filters.matches` compares them."""
    parts, values, text, is_text = list[str](), list[Any](), f"{has}#>>'{{}}'", isinstance(operand, str)
    if is_text:
        parts.append(f"jsonb_typeof({has}) = 'string' AND {text} COLLATE \"C\" {sign} %s")
        values += [*named, *named, operand]
    number = number_in(operand)
    if number is not None and not math.isnan(number):
        kinds = "('number')" if is_text else "('number', 'string')"
        is_number = f"jsonb_typeof({has}) IN {kinds} AND {text} ~ %s"
        parts.append(f"CASE WHEN {is_number} THEN ({text})::numeric {sign} %s::numeric ELSE false END")
        values += [*named, *named, _NUMBER, *named, +number]  # true is 1
    return f"({' OR '.join(parts) or 'false'})", values
