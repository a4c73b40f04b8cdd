"""What traces tell of a turn: recall as the run of a retriever, each graph by its name; what is left without texts."""

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import TAG_HIDDEN
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langsmith import Client
from postgres import execute, migrated_database
from program import start_process

from questbook.graphs.agent import TeamState, as_node
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.homes import home_at
from questbook.memory.tracing import traced

FILES = ("checkpoints", "memory")
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."


async def spans_of_a_turn(**options):
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="needs the extra `otel`")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    client = Client(tracing_mode="otel", otel_tracer_provider=provider, api_key="not used", **options)
    app = build_graph().compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {"configurable": {"thread_id": "t-1"}, "callbacks": [LangChainTracer(client=client)]}
    await app.ainvoke({"messages": [("user", MIRA)]}, config, context={"model": "offline"})
    client.flush()
    return spans.get_finished_spans()


async def test_a_turn_is_one_trace_with_its_nodes_and_model_calls():
    spans = await spans_of_a_turn()
    [root] = [span for span in spans if span.parent is None]
    nodes = {span.name for span in spans if span.parent and span.parent.span_id == root.context.span_id}
    assert {"build_character", "recall", "run_quest", "update_state", "remember"} <= nodes
    assert {span.context.trace_id for span in spans} == {root.context.trace_id}
    assert root.attributes["langsmith.metadata.thread_id"] == "t-1"
    calls = [span for span in spans if span.attributes["gen_ai.operation.name"] == "chat"]
    assert any("Mira" in str(span.attributes["gen_ai.prompt"]) for span in calls)
    shown = {span.name for span in calls if TAG_HIDDEN not in span.attributes["langsmith.span.tags"]}
    assert shown == {"OfflineStoryteller"}, "an answer that is guarded is shown once"


async def test_without_inputs_and_outputs_no_word_leaves():
    spans = await spans_of_a_turn(hide_inputs=True, hide_outputs=True)
    assert {span.name for span in spans} >= {"recall", "run_quest"}
    assert not [span.name for span in spans if "Mira" in span.to_json()]


class _LangSmith(BaseHTTPRequestHandler):
    """LangSmith's API, as far as runs are sent to it in batches."""

    runs: list

    def log_message(self, *_):
        """Print nothing."""

    def _answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        limits = {"scale_up_nthreads_limit": 1, "scale_up_qsize_trigger": 1000, "scale_down_nempty_trigger": 4}
        batches = {"use_multipart_endpoint": False, "size_limit": 100, "size_limit_bytes": 2**24, **limits}
        self._answer({"version": "0", "batch_ingest_config": batches})

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.runs.extend([(self.path, run) for run in sent.get("post", []) + sent.get("patch", [])])
        self._answer({})

    do_PATCH = do_POST  # noqa: N815


@pytest.mark.slow
def test_two_variables_send_the_turns_of_the_terminal_to_langsmith(tmp_path):
    _LangSmith.runs = runs = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _LangSmith)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {
        "TRACING": "true",
        "API_KEY": "lsv2_x",
        "PROJECT": "isle",
        "ENDPOINT": f"http://127.0.0.1:{server.server_port}",
    }
    langsmith = {f"LANGSMITH_{name}": value for name, value in variables.items()}
    run = start_process(tmp_path / "home", "play", words=f"{MIRA}\n", **langsmith)
    server.shutdown()
    assert run.returncode == 0, run.stderr.decode()
    names = {sent.get("name") for _, sent in runs}
    assert {"recall", "run_quest", "remember"} <= names
    assert {sent.get("session_name") for _, sent in runs} - {None} == {"isle"}


class _Collector(BaseHTTPRequestHandler):
    """A collector of OTLP over HTTP: it keeps each span's scope and name."""

    asked: set
    spans: set

    def log_message(self, *_):
        """Print nothing."""

    def do_POST(self):
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.add(self.path)
        if self.path == "/v1/traces":
            body = gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
            for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans.update((scope.scope.name, span.name) for scope in sent.scope_spans for span in scope.spans)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.slow
def test_four_variables_send_turns_recall_and_sql_of_the_terminal_to_a_collector_alone(tmp_path):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra `otel`")
    _Collector.asked, _Collector.spans = set(), set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}"
    langsmith = {f"LANGSMITH_{name}": "true" for name in ("TRACING", "OTEL_ENABLED", "OTEL_ONLY")}
    variables = langsmith | {"LANGSMITH_ENDPOINT": place, "OTEL_EXPORTER_OTLP_ENDPOINT": place}
    words = f"{MIRA}\nI look around.\nI wait.\n"
    run = start_process(tmp_path / "home", "play", words=words, **variables)
    server.shutdown()
    assert run.returncode == 0, run.stderr.decode()
    ours = {name for scope, name in _Collector.spans if scope == "questbook"}
    assert ours == {"questbook.recall", "questbook.sql.read", "questbook.sql.write"}
    assert {"run_quest", "remember"} <= {name for scope, name in _Collector.spans if scope != "questbook"}
    assert _Collector.asked == {"/v1/traces"}, "LangSmith itself gets nothing"


class Seen(AsyncCallbackHandler):
    def __init__(self):
        self.questions, self.documents = [], []

    async def on_retriever_start(self, serialized, query, **kwargs):
        self.questions.append((kwargs.get("name"), query))

    async def on_retriever_end(self, documents, **kwargs):
        self.documents.append(documents)


async def test_recall_is_the_run_of_a_retriever(mira):
    await mira.play("The bell is made of brass.")
    seen = Seen()
    mira.config = {**mira.config, "callbacks": [seen]}
    await mira.play("What is the bell made of?")
    assert seen.questions == [("recall", "What is the bell made of?")]
    [documents] = seen.documents
    assert all(document.page_content and document.metadata["kind"] for document in documents)


@pytest.mark.parametrize("machine", ["dungeon_master", "companion", "reflect"])
def test_a_graph_is_called_by_its_name(machine):
    graph = import_module(f"questbook.graphs.{machine}.graph")
    assert graph.build_graph().compile().name == graph.graph.name == machine
    assert graph.build_graph().compile(name="mine").name == "mine"


async def test_a_graph_inside_another_is_called_by_its_name():
    builder = StateGraph(TeamState, input_schema=TeamState)
    builder.add_node("assistant", as_node(build_companion().compile()))
    builder.add_edge(START, "assistant")
    said = {"messages": [("user", "Hello.")], "seats": {}}
    context = {"user": "ann", "model": "offline"}
    app = builder.compile(name="app")
    names = {event["name"] async for event in app.astream_events(said, context=context, version="v2")}
    assert {"app", "assistant", "companion", "respond"} <= names
    assert "LangGraph" not in names


@pytest.fixture(scope="module")
def provider():
    """The program's own provider of spans: there can be one in a process."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="needs the extra `otel`")
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), sdk.TracerProvider):
        trace.set_tracer_provider(sdk.TracerProvider())
    return trace.get_tracer_provider()


@pytest.fixture
def spans(provider):
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider.add_span_processor(processor := SimpleSpanProcessor(memory))
    yield memory
    processor.shutdown()


def questbook_spans(memory):
    return [span for span in memory.get_finished_spans() if span.instrumentation_scope.name == "questbook"]


async def play(home):
    context = Context.of(None, user="quimby", campaign="isle", buffer="turns", buffer_turns=0)
    async with open_game(context, home) as game:
        for words in (MIRA, "I look for the Zanzibar lamp.", "I wait.", "Where is the Zanzibar lamp?"):
            async for _ in game.send(words):
                pass
        await game.finish()


def check_sql(found, databases):
    """Check that SQL is read and written in these databases, that recall reads, and that no word is told."""
    [recall, *_] = [span for span in found if span.name == "questbook.recall" and span.attributes["recalled"]]
    below = {span.name for span in found if span.parent and span.parent.span_id == recall.context.span_id}
    assert below == {"questbook.sql.read"}, "what a recall reads is below it"
    places = {(span.name, span.attributes.get("db.namespace")) for span in found} - {("questbook.recall", None)}
    assert places == {(f"questbook.sql.{way}", name) for way in ("read", "write") for name in databases}
    text = "".join(span.to_json() for span in found)
    assert not [word for word in ("Zanzibar", "Mira", "lamp", "quimby", "isle") if word in text]


async def test_recall_and_sql_are_spans_without_a_word_of_what_was_said(spans, tmp_path):
    await play(FileHome(tmp_path))
    check_sql(questbook_spans(spans), [f"{file}.db" for file in FILES])


@pytest.mark.slow
async def test_statements_of_postgresql_are_spans_too(spans, tmp_path):
    url = migrated_database()
    home, [(database,)] = home_at(url, str(tmp_path)), execute(url, "SELECT current_database()")
    await play(home)
    found = questbook_spans(spans)
    check_sql(found, [database])
    assert {span.attributes["db.system.name"] for span in found if ".sql." in span.name} == {"postgresql"}
    spans.clear()
    execute(url, "ALTER TABLE store RENAME TO away")
    with pytest.raises(HomeError):
        await home.list_keys(("quimby",))
    [failed] = [span for span in questbook_spans(spans) if not span.status.is_ok and "error.type" in span.attributes]
    assert (failed.name, failed.attributes["error.type"]) == ("questbook.sql.read", "UndefinedTable")
    assert "quimby" not in failed.to_json()


async def test_an_error_in_a_span_is_its_class_without_its_message(spans):
    with pytest.raises(ValueError, match="Zanzibar"), traced("recall", limit=3):
        raise ValueError("what is the Zanzibar lamp?")
    [one] = questbook_spans(spans)
    assert (one.attributes["error.type"], one.status.is_ok, one.events) == ("ValueError", False, ())
    assert "Zanzibar" not in one.to_json()


def test_without_opentelemetry_nothing_is_imported_and_nothing_is_lost(monkeypatch):
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    with traced("recall", limit=3) as seen:
        seen["recalled"] = 2
    assert "opentelemetry.trace" not in sys.modules
