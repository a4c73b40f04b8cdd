"""`forget` for an app that embeds the memory: a plain graph, its own store and checkpointer."""

import sqlite3
from typing import Annotated

import pytest
from desk import TicketNotebook
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from stored_bytes import files_saying

from questbook import FaissStore, build_agent, campaign_namespace, forget, note_facts, recall, remember, remember_sync
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.facts.validity import keep_valid
from questbook.memory.store.any_store import TimedStore
from questbook.memory.timeline.namespaces import character_namespace, player_namespace

SECRET = "Silver Heron"


class State(MessagesState):
    recalled: Annotated[list[str], lambda _, new: new]


def chat(saver, store, campaign="trip"):
    """A graph that remembers what is said, and recalls it."""
    exchanges = campaign_namespace("ann", campaign, "exchanges")

    async def answer(state):
        text = state["messages"][-1].text
        memories = await recall(store, exchanges, text)
        await remember(store, exchanges, text, turn=len(state["messages"]) // 2 + 1)
        return {"messages": [AIMessage("I see.")], "recalled": [memory.value["text"] for memory in memories]}

    return StateGraph(State).add_node(answer).add_edge(START, "answer").compile(checkpointer=saver, store=store)


async def say(app, text, campaign="trip"):
    metadata = {"user": "ann", "campaign": campaign}
    config = {"configurable": {"thread_id": f"ann-{campaign}"}, "metadata": metadata}
    return await app.ainvoke({"messages": [("user", text)]}, config)


@pytest.fixture
async def stored(tmp_path):
    async with (
        AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver,
        FaissStore.open(tmp_path / "memory.db") as store,
    ):
        for campaign in ("trip", "work"):
            app = chat(saver, store, campaign)
            await say(app, f"I sailed on the {SECRET}", campaign)
            await say(app, "I like tea", campaign)
        yield saver, store


async def test_words_leave_one_campaign_and_the_graph_plays_on(stored):
    saver, store = stored
    removal = await forget(store, "ann", "trip", words=SECRET.lower(), checkpointer=saver)
    assert (removal.campaigns, removal.items, removal.checkpoints) == (["trip"], 1, 7)
    values = (await saver.aget({"configurable": {"thread_id": "ann-trip"}}))["channel_values"]
    assert [message.text for message in values["messages"][::2]] == ["I sailed on the [forgotten]", "I like tea"]
    assert SECRET in str((await saver.aget({"configurable": {"thread_id": "ann-work"}}))["channel_values"])
    assert "I like tea" in (await say(chat(saver, store), "What do I like, tea?"))["recalled"]


async def test_words_leave_all_campaigns_of_the_user_and_every_file(stored, tmp_path):
    saver, store = stored
    assert (await forget(store, "ann", words=SECRET, checkpointer=saver)).campaigns == ["trip", "work"]
    assert files_saying(tmp_path, SECRET) == []
    assert files_saying(tmp_path, "I like tea")


async def test_what_cannot_be_done_is_an_error_after_all_else_was_done():
    saver, store = InMemorySaver(), InMemoryStore()
    for campaign in ("trip", "work"):
        await say(chat(saver, store, campaign), f"I sailed on the {SECRET}", campaign)
    with pytest.raises(
        ForgettingError, match=r"removed from the store \(2 items\), but the checkpoints of InMemorySaver"
    ):
        await forget(store, "ann", words=SECRET, checkpointer=saver)
    assert SECRET not in str(store.search(("ann",)))
    await forget(store, "ann", "trip", words=SECRET)  # without a checkpointer, the store is all there is
    assert (await forget(store, "ann", "trip", checkpointer=saver, threads=["ann-trip"])).threads == 1
    assert saver.get({"configurable": {"thread_id": "ann-trip"}}) is None


async def test_words_that_one_campaign_is_built_on_are_refused_before_another_is_changed():
    store = InMemoryStore()
    await remember(store, campaign_namespace("ann", "boat", "exchanges"), f"I sailed on the {SECRET}")
    await remember(store, campaign_namespace("ann", SECRET.lower(), "exchanges"), "I like tea")
    with pytest.raises(ForgettingError, match="Nothing was changed"):
        await forget(store, "ann", words=SECRET)
    assert SECRET in str(await store.asearch(("ann", "boat")))


async def test_a_campaign_leaves_without_its_neighbour_and_a_user_with_everything(stored, tmp_path):
    saver, store = stored
    removal = await forget(store, "ann", "trip", checkpointer=saver)
    assert (removal.threads, removal.items) == (1, 2)
    assert await saver.aget({"configurable": {"thread_id": "ann-trip"}}) is None
    assert len(await store.asearch(("ann", "work"))) == 2
    await forget(store, "ann", checkpointer=saver)
    assert files_saying(tmp_path, "tea") == []


async def test_threads_without_metadata_are_named(stored):
    saver, store = stored
    config = {"configurable": {"thread_id": "aside"}}
    await chat(saver, store).ainvoke({"messages": [("user", f"The {SECRET} again")]}, config)
    await forget(store, "ann", "trip", words=SECRET, checkpointer=saver, threads=["aside"])
    assert SECRET not in str((await saver.aget(config))["channel_values"])
    with pytest.raises(ValueError, match="of which campaign"):
        await forget(store, "ann", words=SECRET, threads=["aside"])
    for wrong in ({"user": None}, {"campaign": 7}, {"words": [SECRET]}, {"threads": "aside"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}.*: got .*; expected"):
            await forget(store, **{"user": "ann", "campaign": "trip", "checkpointer": saver} | wrong)


async def test_the_file_of_a_synchronous_saver_is_opened_with_the_asynchronous_one(tmp_path):
    file = tmp_path / "checkpoints.db"
    with sqlite3.connect(file, check_same_thread=False) as connection:
        builder = StateGraph(MessagesState).add_node("answer", lambda _: {"messages": [AIMessage("I see.")]})
        app = builder.add_edge(START, "answer").compile(checkpointer=SqliteSaver(connection))
        config = {"configurable": {"thread_id": "t"}, "metadata": {"user": "ann", "campaign": "trip"}}
        app.invoke({"messages": [("user", f"I sailed on the {SECRET}")]}, config)
        connection.commit()
        with pytest.raises(ForgettingError, match="SqliteSaver"):
            await forget(InMemoryStore(), "ann", "trip", words=SECRET, checkpointer=app.checkpointer, threads=["t"])
    connection.close()
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await forget(InMemoryStore(), "ann", "trip", words=SECRET, checkpointer=saver)
    assert files_saying(tmp_path, SECRET) == []


LIMITS = {"limit": ("preference", "No spiders for Oda, please."), "debt": ("trait", "Oda owes Bo forty crowns.")}


@pytest.fixture
async def facts():
    store, space = InMemoryStore(), campaign_namespace("ann", "trip", "facts")
    for turn, (key, (kind, text)) in enumerate(LIMITS.items(), 1):
        await store.aput(space, key, {"text": text, "kind": kind, "branch": "m", "turn": turn, "subject": "Oda"})
    await store.aput(space, "alone", {"text": "spiders", "kind": "event", "branch": "m", "turn": 9})
    return store


@pytest.mark.parametrize("words", ["Oda", "spiders"])
async def test_of_a_memory_only_the_words_go_and_a_limit_never_vanishes_unseen(facts, words):
    before = {item.key: item.value["text"] for item in await facts.asearch(("ann",))}
    await forget(facts, "ann", "trip", words=words)
    texts = {item.key: item.value["text"] for item in await facts.asearch(("ann",))}
    assert texts == {key: text.replace(words, "[forgotten]") for key, text in before.items()}


async def test_what_says_nothing_without_the_words_is_removed_if_the_app_says_so(facts):
    asked = []

    def remove(record):
        asked.append(record["text"])
        return record["text"] == "spiders"

    await forget(facts, "ann", "trip", words="spiders", remove=remove)
    assert set(asked) == {"spiders", "No spiders for Oda, please."}
    assert {item.key for item in await facts.asearch(("ann",))} == {"limit", "debt"}


async def test_a_store_with_sync_methods_alone_is_cleaned_and_the_call_says_what_may_stay(tmp_path):
    place = campaign_namespace("ann", "trip", "exchanges")
    with SqliteStore.from_conn_string(str(tmp_path / "s.db")) as store:
        store.setup()
        remember_sync(store, place, f"I sailed on the {SECRET}")
        with pytest.raises(ForgettingError, match="SqliteStore may keep deleted rows"):
            await forget(store, "ann", "trip", words=SECRET)
        assert [item.value["text"] for item in store.search(place)] == ["I sailed on the [forgotten]"]


async def test_a_record_that_names_the_thread_of_another_user_neither_deletes_nor_cuts_it(stored):
    """Where users may write into their own namespaces, one could name any thread."""
    saver, store = stored
    desk = build_agent([TicketNotebook]).compile(checkpointer=saver, store=store)
    thread = {"configurable": {"thread_id": "desk"}}
    await desk.ainvoke({"messages": [("user", f"I sailed on the {SECRET}")]}, thread, context={"user": "ann"})
    for name in ("ann-trip", "desk"):
        await store.aput(campaign_namespace("bob", "trip", "exchanges"), name, {"text": SECRET, "thread": name})
    await forget(store, "bob", "trip", words=SECRET, checkpointer=saver)
    await forget(store, "bob", checkpointer=saver)
    for app, config in ((chat(saver, store), {"configurable": {"thread_id": "ann-trip"}}), (desk, thread)):
        assert SECRET in (await app.aget_state(config)).values["messages"][0].text
    assert await store.asearch(("bob",)) == []


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (build_graph, "the Dungeon"),
        pytest.param(build_graph, "ann.lee@home", marks=pytest.mark.slow),
        pytest.param(build_companion, "companion", marks=pytest.mark.slow),
    ],
)
async def test_whose_a_thread_is_cannot_be_forgotten_and_it_plays_on(tmp_path, build, words):
    async with (
        AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver,
        FaissStore.open(tmp_path / "m.db") as store,
    ):
        app, config = build().compile(checkpointer=saver, store=store), {"configurable": {"thread_id": "1"}}
        context = {"user": "ann.lee@home.org", "campaign": "isle: one", "seed": 1}
        await app.ainvoke({"messages": [("user", "Hello.")]}, config, context=context)
        for said in (words.removeprefix("the "), "isle: one"):
            with pytest.raises(ForgettingError, match="Nothing was changed"):
                await forget(store, "ann.lee@home.org", words=said, checkpointer=saver, campaign=None)
        values = await app.ainvoke({"messages": [("user", "Hello.")]}, config, context=context)
        assert values["turn"] == 2


@pytest.mark.parametrize(("words", "gone"), [("Ash-Vale", "ash"), ("Zoë", "zo"), ("LORD OF ASH VALE", "ash")])
async def test_a_slot_loses_the_words_and_still_links_the_facts_that_held_it(words, gone):
    store, space = InMemoryStore(), campaign_namespace("ann", "trip", "facts")
    home = {"subject": "Zoë, the Lord of Ash-Vale", "attribute": "home"}
    for turn, value in ((1, "Oslo"), (2, "Bergen")):
        await note_facts(
            store, space, [home | {"text": f"The lord lives in {value}.", "value": value}], timeline=[("a", turn)]
        )
    await forget(store, "ann", "trip", words=words)
    facts = [item for item in store.search(space) if item.key]
    assert len(facts) == 2
    assert gone not in str([item.value for item in facts]).lower()
    assert "zo" not in str([item.value["slot"] for item in facts]).lower()
    assert [item.value["value"] for item in await keep_valid(store, facts, timeline=[("a", 2)])] == ["Bergen"]
    assert [item.value["value"] for item in await keep_valid(store, facts[:1], timeline=[("a", 2)])] == []
    narvik = home | {"text": "The lord lives in Narvik.", "value": "Narvik"}
    changes = await note_facts(store, space, [narvik], timeline=[("a", 3)])
    assert changes.superseded == ["a-2-fact-0"]
    assert await keep_valid(store, facts, timeline=[("a", 3)]) == [], "a later fact of the slot ends it"


async def test_what_is_left_of_a_removed_turn_holds_no_forgotten_word():
    store, space = InMemoryStore(), campaign_namespace("ann", "trip", "exchanges")
    record = {"text": f"The {SECRET}!", "player": f"The {SECRET}!", "reply": "", "branch": "main", "turn": 3}
    await store.aput(space, "3", record | {"line": f"{SECRET} road", "location": f"on the {SECRET}", "thread": "t"})
    await forget(store, "ann", "trip", words=SECRET, remove=lambda _: True)
    assert await store.asearch(space) == []
    [gap] = await store.asearch(campaign_namespace("ann", "trip", "gaps"))
    assert (gap.value["turn"], gap.value["player"], gap.value["line"]) == (3, FORGOTTEN, f"{FORGOTTEN} road")
    assert (gap.value["location"], gap.value["thread"]) == (f"on the {FORGOTTEN}", "t")
    assert "heron" not in str(gap.value).lower()
    facts = campaign_namespace("ann", "trip", "facts")
    await store.aput(facts, "f", {"text": f"The {SECRET}!", "branch": "main", "turn": 3})
    await forget(store, "ann", "trip", words=SECRET, remove=lambda _: True)
    assert [len(await store.asearch(campaign_namespace("ann", "trip", label))) for label in ("facts", "gaps")] == [0, 1]


async def test_words_leave_what_is_known_of_a_user_without_a_campaign_and_her_characters():
    store = TimedStore(TimedStore(InMemoryStore(), 9), 9)  # as a graph and an app may both wrap it
    places = [player_namespace("ann", "facts"), character_namespace("Miku", "memories", user="ann")]
    for place in (*places, player_namespace("bob", "facts")):
        await store.aput(place, "k", {"text": f"The {SECRET} sails north to the isle."})
    removal = await forget(store, "ann", words=SECRET)
    assert (removal.campaigns, removal.items) == ([""], 2)
    for place in places:
        assert (await store.aget(place, "k")).value == {"text": f"The {FORGOTTEN} sails north to the isle."}
    assert (await forget(store, "ann")).items == 2
    assert [item.namespace for item in await store.asearch(())] == [player_namespace("bob", "facts")]


async def test_words_leave_more_records_than_are_written_at_once_and_they_are_told_by_turn():
    store, space = InMemoryStore(), campaign_namespace("ann", "trip", "exchanges")
    told = [{"text": f"The {SECRET}, day {turn}", "turn": turn, "said_at": f"{9999 - turn}"} for turn in range(1, 503)]
    for record in reversed(told):
        store.put(space, str(record["turn"]), record)
    found = await Forgetting(store, None, "ann", "trip").find(SECRET)
    assert [record["turn"] for record in found.records] == list(range(1, 503))
    assert (await forget(store, "ann", "trip", words=SECRET)).items == 502
    assert not await Forgetting(store, None, "ann", "trip").find(SECRET)


async def test_what_was_drawn_from_a_record_goes_and_what_was_drawn_from_others_too_takes_its_place():
    store, facts, again = InMemoryStore(), *(campaign_namespace("ann", "trip", label) for label in ("facts", "sources"))
    sailor = {"text": "Ann is a sailor.", "kind": "insight", "cites": ["f1"]}
    records = [
        (facts, "f1", {"text": f"Ann sailed on the {SECRET} to the isle."}),
        (facts, "f2", {"text": "Ann loves the wind."}),
        (facts, "i1", sailor),
        (facts, "i2", {"text": "Ann is the captain.", "kind": "secret", "cites": ["f1"]}),
        (again, "s1", sailor | {"same_as": "i1"}),
        (again, "s2", sailor | {"cites": ["f2"], "same_as": "i1"}),
    ]
    for record in records:
        await store.aput(*record)
    found = await Forgetting(store, None, "ann", "trip").find(
        SECRET, sees=lambda record: record.get("kind") != "secret"
    )
    assert [[record["text"] for record in part] for part in (found.records, found.insights)] == [
        [f"Ann sailed on the {SECRET} to the isle."],
        ["Ann is a sailor."],
    ]
    assert found.items == 2  # the insight that must not be seen, and the second drawing
    assert (await forget(store, "ann", "trip", words=SECRET)).items == 4
    assert {item.key: item.value.get("cites") for item in await store.asearch(facts)} == {
        "f1": None, "f2": None, "s2": ["f2"]
    }  # fmt: skip
    assert await store.asearch(again) == []


async def test_a_field_of_the_pages_is_told_once_for_all_threads_and_no_other_channel_is():
    saver = InMemorySaver()
    for thread in ("one", "two"):
        values = {name: {"scene": f"On the {SECRET}"} for name in ("quest", "draft")}
        values["quest"]["version"] = 1
        versions = dict.fromkeys(values, 1)
        checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
        config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        saver.put(config, checkpoint, {"source": "loop", "step": 1}, versions)
    found = await Forgetting(InMemoryStore(), saver, "ann", "trip", ["one", "two"]).find(SECRET)
    assert found.fields == ["quest.scene"]


async def test_a_campaign_that_only_checkpoints_know_goes_with_the_user(stored):
    saver, _ = stored
    removal = await forget(InMemoryStore(), "ann", checkpointer=saver)
    assert (removal.campaigns, removal.threads) == (["trip", "work"], 2)


async def test_a_name_that_a_person_gave_leaves_the_key_that_it_is(stored):
    _, store = stored
    lines = campaign_namespace("ann", "trip", "lines")
    await store.aput(lines, f"{SECRET} road", {"branch": "main"})
    await forget(store, "ann", "trip", words=SECRET)
    assert [item.key for item in await store.asearch(lines)] == [f"{FORGOTTEN} road"]


async def test_what_holds_the_words_is_counted_once_and_told_before_anything_is_changed(stored):
    saver, store = stored
    facts = campaign_namespace("ann", "trip", "facts")
    await note_facts(store, facts, [{"text": f"The {SECRET} sails north to the isle."}], timeline=[("a", 1)])
    await store.aput(("ann", "trip", "head"), "head", {"scene": f"On the {SECRET}"})
    found = await Forgetting(store, saver, "ann", "trip").find(SECRET.upper())
    assert found.words == SECRET.upper()
    texts = [f"The {SECRET} sails north to the isle.", f"I sailed on the {SECRET}"]
    assert sorted(record["text"] for record in found.records) == sorted(texts)
    assert [record["text"] for record in found.emptied] == texts[1:]
    assert (found.insights, found.items, found.playing, found.fields) == ([], 1, (), [])
    assert found.checkpoints > 3
    assert found
    unseen = await Forgetting(store, saver, "ann", "trip").find(SECRET, sees=lambda record: "isle" not in str(record))
    assert [record["text"] for record in unseen.records] == texts[1:]
    assert not await Forgetting(store, saver, "ann", "trip").find("bronze pike")
    assert len(await store.asearch(("ann", "trip"), filter=None)) == 4, "nothing was changed"


async def test_the_persons_own_messages_are_told_and_no_reply(stored):
    saver, store = stored
    said = await Forgetting(store, saver, "ann", "trip").messages()
    assert said - {""} == {f"I sailed on the {SECRET}", "I like tea"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"user": 1}, r"user, campaign, words: got \(1, None, None\); expected texts, none empty\."),
        ({"campaign": 1}, "expected texts"),
        ({"user": ""}, "none empty"),
        ({"campaign": ""}, "none empty"),
        ({"words": 1}, "expected texts"),
        ({"threads": "one", "campaign": "trip"}, "threads: got 'one'; expected a list of ids"),
        ({"words": "the harbour", "remove": True}, "remove: got True; expected a function of a record"),
        ({"threads": ["one"]}, "say of which campaign they are"),
    ],
)
async def test_arguments_that_make_no_sense_are_refused(arguments, says):
    store = InMemoryStore()
    store.put(("ann", "trip", "facts"), "k", {"text": "a"})
    with pytest.raises(ValueError, match=says):
        await forget(store, **{"user": "ann"} | arguments)
    assert store.search(("ann",))


async def test_what_was_removed_is_counted(stored):
    saver, store = stored
    removed = await forget(store, "ann", words=SECRET, checkpointer=saver)
    assert (removed.campaigns, removed.threads, removed.items, list(removed.playing)) == (["trip", "work"], 0, 2, [])
    assert removed.checkpoints > 6
    removed = await forget(store, "ann", words=SECRET, checkpointer=saver)
    assert (removed.items, removed.checkpoints) == (0, 0)
    removed = await forget(store, "ann", "trip", checkpointer=saver)
    assert removed[:3] == (["trip"], 1, 2)
    removed = await forget(store, "ann", checkpointer=saver)
    assert removed[:3] == (["work"], 1, 2)
    assert await store.asearch(("ann",)) == []


async def test_a_checkpointer_that_cannot_delete_threads_is_told_of_and_memories_stay():
    class Keeping(InMemorySaver):
        async def adelete_thread(self, thread_id):
            raise NotImplementedError

    store, saver = InMemoryStore(), Keeping()
    await say(chat(saver, store), "I like tea")
    says = r"Keeping cannot delete threads: delete [0-9a-f-]+ by its own means\. Memories and everything else .* not"
    with pytest.raises(ForgettingError, match=says):
        await forget(store, "ann", "trip", checkpointer=saver)
    assert store.search(("ann",))


@pytest.mark.parametrize("words", [SECRET, None])
async def test_a_store_that_keeps_deleted_rows_is_named_after_all_else_was_done(tmp_path, words):
    with SqliteStore.from_conn_string(str(tmp_path / "m.db")) as store:
        store.setup()
        store.put(
            campaign_namespace("ann", "trip", "exchanges"), "k", {"text": f"I sailed on the {SECRET} to the isle"}
        )
        says = "but SqliteStore may keep deleted rows in its files until it is vacuumed by its own means."
        with pytest.raises(ForgettingError, match=says) as error:
            await forget(store, "ann", "trip", words=words)
        done = f"“{SECRET}” was removed from the store (1 items)" if words else "Campaign 'trip' was removed"
        assert str(error.value).startswith(f"{done}, but ")
        assert SECRET not in str([item.value for item in store.search(("ann",))])


async def test_what_an_app_names_is_cut_whatever_it_is_called(stored):
    saver, store = stored
    key = SECRET.lower().replace(" ", "_")
    args = {"owner": f"the {SECRET}", "type": f"{SECRET} again", "items": {f"{key}_inn": 1, "other": {key: 2}}}
    made = {"name": "assign", "args": args, "id": "a", "type": "tool_call"}
    page = {"version": 1, "problem": "none", "status": f"waits for the {SECRET}", "steps": {}}

    class State(MessagesState):
        ticket: dict

    def answer(_):
        return {"messages": [AIMessage("", tool_calls=[made])], "ticket": page}

    graph = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "tools"}, "metadata": {"user": "ann", "campaign": "trip"}}
    await graph.ainvoke({"messages": "Hello."}, thread)
    exchange = {"text": "I go.", "metadata": {"who": {f"{key}_inn": 1}, "status": f"of the {SECRET}"}}
    await remember(store, campaign_namespace("ann", "trip", "exchanges"), exchange, timeline=[("z", 3)])
    await forget(store, "ann", "trip", words=SECRET, checkpointer=saver, threads=["tools"])
    values = (await graph.aget_state(thread)).values
    [call] = values["messages"][-1].tool_calls
    assert (call["args"]["owner"], call["args"]["type"]) == (f"the {FORGOTTEN}", f"{FORGOTTEN} again")
    assert values["ticket"]["status"] == f"waits for the {FORGOTTEN}"
    items = await store.asearch(campaign_namespace("ann", "trip"), limit=100)
    for left in (str(values), str([item.value for item in items])):
        assert key not in left.lower()
        assert SECRET.lower() not in left.lower()
