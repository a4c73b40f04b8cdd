"""The memories of a user, one contract: an agent with the middleware and a graph of `build_agent`, on two stores."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from answering import Answering, Talk
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from scripted import call, say, sections_of
from stored_bytes import files_saying
from stores import opened, stores_of

from questbook import (
    Fact,
    FactNotes,
    Memories,
    Notebook,
    SyncMemories,
    UserTimeline,
    build_agent,
    campaign_namespace,
    note_facts,
    on_demand,
    retract,
    why,
)
from questbook.graphs.errors import HistoryError, InputError
from questbook.memory.errors import NoSuchMemoryError
from questbook.memory.facts.reflection import second_drawing_op
from questbook.memory.facts.validity import count_repetitions, slot_history, write_judgements
from questbook.memory.timeline.timeline import record_key

store = stores_of("memory without vectors", "faiss without vectors")
OSLO, BERGEN = (
    {"text": f"The user lives in {city}.", "subject": "the user", "attribute": "home", "value": city, "kind": "trait"}
    for city in ("Oslo", "Bergen")
)
SNAKES = {"text": "The user fears snakes.", "subject": "the user", "kind": "trait"}


def taught(*facts):
    return say("", call("Facts", facts=list(facts)))


class Profile(Notebook):
    """Who the person is."""

    UPDATE = on_demand
    SECRET = frozenset({"guess"})
    name: str = ""
    home: str = ""
    job: str = ""
    guess: str = ""


class Middleware(Talk):
    """An agent of `create_agent`."""

    without = None

    def __init__(self, store, user="ann", thread="1", **more):
        super().__init__(store, user=user, **{"facts": FactNotes(), "metadata": {"project": "blue"}} | more)
        self.config = {"configurable": {"thread_id": thread}}

    async def tell(self, words, *facts, config=None):
        await self.say(words, config or self.config, "Fine.", taught(*facts) if facts else "no change")


class Graph:
    """The same made by `build_agent`."""

    without = False

    def __init__(self, store, user="ann", thread="1", **more):
        self.model, self.store = Answering(), store
        graph = build_agent(
            more.pop("notebooks", []),
            model=self.model,
            **{"facts": FactNotes(), "metadata": {"project": "blue"}} | more,
        )
        self.agent = graph.compile(checkpointer=InMemorySaver(), store=store)
        self.user, self.config = user, {"configurable": {"thread_id": thread, "user": user}}

    async def tell(self, words, *facts, config=None):
        self.model.answers += ["Fine.", taught(*facts) if facts else "no change"]
        config = {"configurable": {**(config or self.config)["configurable"], "user": self.user}}
        await self.agent.ainvoke({"messages": [HumanMessage(words)]}, config)


@pytest.fixture(params=[Middleware, Graph])
def door(request):
    return request.param


def of(talk, **more):
    return Memories(talk.agent, "ann", agent="agent", **more)


async def texts(memories, **which):
    return [memory.text.replace("\n", " / ") for memory in await memories.list(**which)]


@pytest.mark.slow
async def test_what_holds_is_listed_with_since_when_and_from_which_message(door, store):
    talk = door(store)
    await talk.tell("I live in Oslo.", OSLO)
    await talk.tell("I moved to Bergen.", BERGEN, SNAKES)
    view = of(talk)
    assert set(await texts(view, holding=True, kind="fact")) == {BERGEN["text"], SNAKES["text"]}
    [old] = await view.list(holding=False)
    assert (old.text, old.status, old.said, old.turn, old.thread) == (OSLO["text"], "ended", "I live in Oslo.", 1, "1")
    messages = (await talk.agent.aget_state(talk.config)).values["messages"]
    assert set(old.messages) == {message.id for message in messages[:2]}
    assert abs(datetime.fromisoformat(old.since) - datetime.now(UTC)) < timedelta(minutes=5)
    assert await view.get(old.key) == old
    assert await Memories(store, "ann").get(old.key) == old, "of all of the user's agents"
    assert await texts(view, kind="exchange", words="BERGEN") == ["I moved to Bergen. / Fine."]
    assert len(await view.list(thread="1", metadata={"project": "blue"})) == 5
    assert await view.list(thread="2") == await view.list(metadata={"project": "red"}) == []
    assert await view.list(metadata={"project": "blue", "tone": "dry"}) == []
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert await view.list(since=soon) == await view.list(until=soon - timedelta(days=1)) == []
    assert len(await view.list(until=soon.replace(tzinfo=None))) == 5
    assert await Memories(store, "bob").list() == await Memories(store, "ann", agent="other").list() == []
    with pytest.raises(NoSuchMemoryError, match="No memory has the key"):
        await view.get("nothing")


@pytest.mark.slow
async def test_what_a_rewound_branch_wrote_does_not_hold_by_the_threads_state_and_by_its_head(door, store):
    talk = door(store)
    await talk.tell("Hello.")
    before = (await talk.agent.aget_state(talk.config)).config
    await talk.tell("I live in Oslo.", OSLO)
    assert await texts(of(talk), kind="fact", holding=True) == [OSLO["text"]]
    assert await texts(of(talk, config=before), holding=True) == ["Hello. / Fine."]
    await talk.tell("I live in Bergen.", BERGEN, config=before)
    for view in (of(talk), of(talk, config=talk.config), Memories(store, "ann")):
        assert await texts(view, kind="fact", holding=True) == [BERGEN["text"]]
        assert {memory.status for memory in await view.list(words="Oslo")} == {"elsewhere"}
    timeline = (await talk.agent.aget_state(talk.config)).values["timeline"]
    assert await texts(Memories(store, "ann", agent="agent", timeline=timeline), kind="fact", holding=True) == [
        BERGEN["text"]
    ]
    other = door(store, thread="2")
    await other.tell("I fear snakes.", SNAKES)
    assert set(await texts(of(other), kind="fact", holding=True)) == {BERGEN["text"], SNAKES["text"]}


@pytest.mark.slow
async def test_a_correction_ends_the_fact_says_who_wrote_it_and_goes_back_with_the_thread(door, store):
    talk = door(store)
    await talk.tell("Hello.")
    before = (await talk.agent.aget_state(talk.config)).config
    await talk.tell("I live in Oslo, and I fear snakes.", OSLO, SNAKES)
    for old, text in ((OSLO, "The user lives in Oslo, in the north."), (SNAKES, "The user fears no snakes.")):
        [fact] = await of(talk).list(words=old["text"], kind="fact")
        new = await of(talk).correct(fact.key, text)
        assert (new.text, new.status, new.said) == (text, "holds", "")
        assert (new.value["by"], new.value["corrects"], new.value["metadata"]) == (
            "hand",
            fact.key,
            {"project": "blue"},
        )
        assert (await of(talk).get(fact.key)).status == "ended"
    facts = [memory.text for memory in await of(talk, config=talk.config).list(kind="fact", holding=True)]
    assert sorted(facts) == ["The user fears no snakes.", "The user lives in Oslo, in the north."]
    await talk.tell("Where do I live?")
    assert "in the north" in sections_of(talk.model.prompts[-2])
    assert await of(talk, config=before).list(holding=True, kind="fact") == []
    await talk.tell("I live in Bergen.", BERGEN, config=before)
    assert await texts(of(talk), holding=True, kind="fact") == [BERGEN["text"]]
    [exchange] = await of(talk).list(kind="exchange", words="Bergen")
    [elsewhere, *_] = await of(talk).list(words="north")
    for key in (exchange.key, elsewhere.key):
        with pytest.raises(InputError, match="cannot be corrected"):
            await of(talk).correct(key, "x")
    with pytest.raises(ValueError, match="colour"):
        await of(talk).correct((await of(talk).list(kind="fact", holding=True))[0].key, "x", colour="red")


async def test_what_is_deleted_leaves_nothing_and_what_it_had_ended_holds_again(door, tmp_path):
    with opened("faiss without vectors", tmp_path) as store:
        talk = door(store)
        await talk.tell("I live in Oslo.", OSLO)
        await talk.tell("I moved to Bergen.", BERGEN, SNAKES)
        [bergen] = await of(talk).list(words="lives in Bergen")
        insight = {"kind": "insight", "text": "A traveller.", "cites": [bergen.key], "branch": bergen.value["branch"]}
        await store.aput(bergen.namespace, "insight", insight | {"turn": 2, "order": "00000002"})
        corrected = await of(talk).correct(bergen.key, "The user lives in Bergen now.", value="Bergen")
        assert [memory.key for memory in await of(talk).delete(corrected.key)] == [corrected.key]
        assert (await of(talk).get(bergen.key)).status == "holds"
        await of(talk).delete(bergen.key)
        assert await texts(of(talk), kind="fact", holding=True) == [SNAKES["text"], OSLO["text"]]
        assert await of(talk).list(kind="insight") == [], "what was concluded from it"
        [exchange] = await of(talk).list(kind="exchange", words="Bergen")
        gone = await of(talk).delete(exchange.key[:-3])
        assert {memory.text for memory in gone} == {exchange.text, SNAKES["text"]}, "with the facts of its turn"
        left = await store.asearch(("ann",), limit=1000)
        assert "Bergen" not in json.dumps([item.value for item in left])
        assert "snakes" not in json.dumps([item.value for item in left])
        assert {item.namespace[2] for item in left} >= {"gaps"}, "the turn was played"
        with pytest.raises(NoSuchMemoryError):
            await of(talk).delete((await of(talk).list(kind="fact"))[0].key, "nothing")
        assert await texts(of(talk), kind="fact", holding=True) == [OSLO["text"]]
        assert files_saying(tmp_path, "fears snakes") == []


@pytest.mark.slow
async def test_memories_move_as_json_lines_with_what_says_whether_they_hold(door, store):
    talk = door(store)
    await talk.tell("I live in Oslo.", OSLO)
    before = (await talk.agent.aget_state(talk.config)).config
    await talk.tell("I moved to Bergen.", BERGEN)
    [bergen] = await of(talk).list(words="lives in Bergen")
    await of(talk).correct(bergen.key, "The user lives in Voss.", value="Voss")
    await talk.tell("I fear snakes.", SNAKES, config=before)
    await talk.tell("I moved to Bergen.", BERGEN)
    lines = await of(talk).export_lines()
    other = InMemoryStore()
    assert await Memories(other, "bob").import_lines(lines) == len(await of(talk).list())
    assert await Memories(other, "bob").import_lines(lines) == 0, "twice is once"

    def told(memories):
        return [(memory.text, memory.status, memory.said) for memory in memories]

    assert told(await Memories(other, "bob").list()) == told(await of(talk).list())
    moved = Memories(other, "carl", agent="desk")
    await moved.import_lines(await of(talk).export_lines(holding=True, kind="fact"))
    assert set(await texts(moved)) == {SNAKES["text"], BERGEN["text"]}
    new = door(other, user="bob", thread="9")
    await new.tell("Where do I live?")
    assert BERGEN["text"] in sections_of(new.model.prompts[0])


async def test_turns_of_another_thread_of_that_name_are_refused_before_anything_is_written(door):
    talk, there = door(InMemoryStore()), door(InMemoryStore())
    await talk.tell("I live in Oslo.", OSLO)
    await talk.tell("I fear snakes.", SNAKES)
    await there.tell("I like tea.")
    before = await texts(of(there))
    with pytest.raises(
        InputError, match=r"Thread '1' is here already, with other words in turn 1\. Nothing was imported"
    ):
        await of(there).import_lines(await of(talk).export_lines())
    assert await texts(of(there)) == before


async def test_a_campaigns_memories_move_with_what_its_head_sees_and_secrets_are_not_told():
    store, place, line = InMemoryStore(), campaign_namespace("ann", "isle", "facts"), [("a", 1)]
    await note_facts(store, place, [OSLO, {"text": "Oda stole the crown.", "kind": "secret"}], timeline=line)
    await store.aput((*place[:-1], "head"), "head", {"timeline": [["a", 2]], "turn": 2})
    await note_facts(store, place, [BERGEN], timeline=[("a", 2)])
    await note_facts(store, place, [SNAKES], timeline=[("b", 1)])
    view, whole = (Memories(store, "ann", campaign="isle", secrets=secrets) for secrets in (False, True))
    told = {memory.text: memory.status for memory in await view.list()}
    assert told == {BERGEN["text"]: "holds", OSLO["text"]: "ended", SNAKES["text"]: "elsewhere", "": "holds"}
    assert await view.list(words="crown") == []
    assert "crown" not in str(await view.list())
    assert await texts(whole, words="crown") == ["Oda stole the crown."]
    for which, count in ((view, 3), (whole, 4)):
        other = Memories(InMemoryStore(), "bob", campaign="isle", secrets=True)
        lines = await which.export_lines()
        assert ("crown" in str(lines)) is (count == 4)
        assert await other.import_lines(lines) == count
        moved = {memory.text: memory.status for memory in await other.list()}
        assert moved == {memory.text: memory.status for memory in await whole.list() if memory.text in moved}


GOOD = {"place": ["agent~3a;agent", "facts"], "key": "k", "value": {"kind": "trait", "text": "x", "turn": 0}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"place": []}, "place"),
        ({"place": ["../x", "facts"]}, "escape"),
        ({"place": ["a", "head"]}, "place: got"),
        ({"place": ["a", "facts", "b"]}, "place: got"),
        ({"key": 3}, "key: got 3"),
        ({"value": []}, "value"),
        ({"value": {"kind": "trait", "turn": 0}}, "text"),
        ({"value": GOOD["value"] | {"turn": -5}}, "turn"),
        ({"value": GOOD["value"] | {"branch": 3}}, "branch"),
        ({"value": GOOD["value"] | {"importance": 99}}, "importance"),
        ({"value": GOOD["value"] | {"expires": "soon"}}, "expires"),
        ({"place": ["a", "exchanges"]}, "branch"),
        ({"place": ["a", "heads"], "value": {"timeline": [["x", -1]]}}, "segments"),
    ],
)
async def test_a_line_that_is_no_memory_is_refused_and_nothing_is_imported(change, said):
    store = InMemoryStore()
    for text in (json.dumps(GOOD | change), "[" * 100_000, "no JSON"):
        with pytest.raises(InputError, match=rf"Line 2 is no memory: (?s:.*){said if text.startswith('{') else ''}"):
            await Memories(store, "ann").import_lines([json.dumps(GOOD), text])
    assert store.search(()) == []


@pytest.mark.slow
async def test_why_and_retract_work_on_the_thread_and_take_a_mapping_as_context(door, store):
    talk = door(store)
    await talk.tell("I live in Oslo.", OSLO)
    await talk.tell("I moved to Bergen.", BERGEN)
    context = {"user": "ann", "campaign": "agent:agent"}
    fact, exchange = await why(talk.agent, talk.config, context, "Bergen")
    assert {fact.field, exchange.field} == {"fact", "memory"}
    assert (fact.player, fact.turn) == (exchange.player, exchange.turn) == ("I moved to Bergen.", 2)
    view = of(talk, config=talk.config)
    done = await view.retract(2)
    assert (done.turn, done.player, done.messages, done.facts) == (2, "I moved to Bergen.", 2, 1)
    assert await texts(view, holding=True) == [OSLO["text"], "I live in Oslo. / Fine."]
    values = (await talk.agent.aget_state(talk.config)).values
    assert [message.text for message in values["messages"]] == ["I live in Oslo.", "Fine."]
    with pytest.raises(HistoryError, match="no turn 2"):
        await retract(talk.agent, talk.config, context, 2)
    with pytest.raises(HistoryError, match="no memory of this line says it"):
        await view.why("Bergen")
    await talk.tell("Where do I live?")
    assert "Bergen" not in str(talk.model.prompts[-2])
    assert await texts(of(talk), kind="exchange", holding=True) == [
        "Where do I live? / Fine.",
        "I live in Oslo. / Fine.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["retract", "delete"])
async def test_a_fact_that_was_said_again_outlives_the_turn_that_told_it_first(door, store, how):
    talk = door(store)
    await talk.tell("Hello.")
    await talk.tell("I live in Oslo.", OSLO)
    before = (await talk.agent.aget_state(talk.config)).config
    for words in ("As I said, I live in Oslo.", "Oslo is where I live."):
        await talk.tell(words, OSLO)
    view = of(talk, config=talk.config)

    async def undo(turn):
        if how == "retract":
            await view.retract(turn)
        else:
            await view.delete(next(one.key for one in await view.list(kind="exchange") if one.turn == turn))

    await undo(2)
    [fact] = await view.list(kind="fact", holding=True)
    assert (fact.text, fact.said, fact.turn) == (OSLO["text"], "As I said, I live in Oslo.", 3)
    await talk.tell("I moved to Bergen.", BERGEN)
    assert await texts(view, kind="fact", holding=True) == [BERGEN["text"]]
    await undo(5)
    await undo(3)
    [fact] = await view.list(kind="fact", holding=True)
    assert (fact.text, fact.said) == (OSLO["text"], "Oslo is where I live.")
    await undo(4)
    assert await view.list(kind="fact") == []
    assert await of(talk, config=before).list(kind="fact", holding=True) == []


async def test_a_fact_that_was_said_again_in_its_own_turn_alone_goes_with_it():
    talk = Graph(InMemoryStore())
    await talk.tell("I live in Oslo. Yes, in Oslo.", OSLO, OSLO | {"text": "The user lives in Oslo, in Norway."})
    view = of(talk)
    assert len(await view.list(kind="fact")) == 1
    await view.delete((await view.list(kind="exchange"))[0].key)
    assert await view.list() == []


@pytest.mark.slow
async def test_a_retracted_turn_takes_back_what_it_wrote_on_pages_but_not_what_was_written_over_it(door):
    talk = door(InMemoryStore(), notebooks=[Profile], facts=door.without, metadata=None)
    patches = [{"name": "Ann"}, {"home": "Oslo", "job": "painter"}, {"job": "baker", "guess": "lies"}]
    for words, patch in zip(("I am Ann.", "I paint in Oslo.", "I am a baker now."), patches, strict=True):
        talk.model.answers += [say("", call("Profile", **patch)), "Fine."]
        await talk.agent.ainvoke({"messages": [HumanMessage(words)]}, talk.config)
    view = of(talk, config=talk.config)
    causes = [(cause.field, cause.value, cause.turn, cause.player, cause.holds) for cause in await view.why("job")]
    assert causes == [
        ("profile.job", "baker", 3, "I am a baker now.", True),
        ("profile.job", "painter", 2, "I paint in Oslo.", False),
    ]
    assert await view.why("JOB") == await view.why("Profile.Job") == await view.why("job")
    assert [cause.field for cause in await view.why("profile")] == [
        "profile.job",
        "profile.home",
        "profile.job",
        "profile.name",
    ]
    await talk.agent.aupdate_state(talk.config, {"profile": {"name": "Anna"}})
    assert [(cause.value, cause.holds) for cause in await view.why("profile.name")] == [("Ann", False)], (
        "no turn set Anna"
    )
    await talk.agent.aupdate_state(talk.config, {"profile": {"name": "Ann"}})
    with pytest.raises(HistoryError, match=r"Fields: profile\.name, profile\.home, profile\.job"):
        await view.why("unheard of")
    done = await view.retract(2)
    page = (await talk.agent.aget_state(talk.config)).values["profile"]
    assert (page["name"], page.get("home", ""), page["job"]) == ("Ann", "", "baker")
    assert (done.fields, done.kept) == (["profile.home"], ["profile.job"])
    done = await view.retract(1)
    page = (await talk.agent.aget_state(talk.config)).values["profile"]
    assert (done.fields, page.get("name", ""), page["job"]) == (["profile.name"], "", "baker"), "the first turn, too"
    saved = talk.agent.checkpointer.storage["1"][""]
    for checkpoint in sorted(saved)[:-1]:
        del saved[checkpoint]
    done = await view.retract(3)
    values = (await talk.agent.aget_state(talk.config)).values
    assert (done.fields, values["profile"]["job"]) == ([], "baker")
    assert [notice["text"] for notice in values["notices"]][-2:] == [
        "Turn 3 was retracted.",
        "The checkpoints of turn 3 are gone, so the pages stay as they are: correct them by hand.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("facts", [True, False])
async def test_what_a_team_shares_is_recalled_by_its_users_alone_and_their_own_stays_theirs(door, facts):
    store = InMemoryStore()
    team = Memories(store, team="acme")
    shared = await team.add({"text": "The key is under the mat.", "subject": "key", "attribute": "place"})

    async def asked(user, of_team):
        talk = door(store, user=user, team=of_team, facts=FactNotes() if facts else door.without)
        await talk.tell("Where is the key?")
        return sections_of(talk.model.prompts[0])

    for user, of_team, knows in (("ann", "acme", True), ("bob", lambda _: "acme", True), ("eve", None, False)):
        assert ("under the mat" in await asked(user, of_team)) is knows
    assert await texts(team) == ["The key is under the mat."], "nothing of what they said"
    corrected = await team.correct(shared.key, "The key is with Oda.")
    assert [(memory.key, memory.status) for memory in await team.list()][::-1] == [
        (shared.key, "ended"),
        (corrected.key, "holds"),
    ]
    told = await asked("carl", "acme")
    assert "with Oda" in told
    assert "under the mat" not in told
    moved = InMemoryStore()
    await Memories(moved, team="zoo").import_lines(await team.export_lines())
    assert await texts(Memories(moved, team="zoo"), holding=True) == ["The key is with Oda."]
    assert [memory.text for memory in await Memories(store, "~teams").list()] == []
    with pytest.raises(InputError, match="Memories of a team"):
        await Memories(moved, "ann").import_lines(await team.export_lines())
    await team.delete(corrected.key)
    assert await texts(team, holding=True) == ["The key is under the mat."]


def test_sync_callers_have_the_same(tmp_path):
    with opened("faiss without vectors", tmp_path) as store:
        team = SyncMemories(store, team="acme")
        key = team.add("The mill is shut.").key
        assert team.correct(key, "The mill is open.").text == "The mill is open."
        assert [memory.text for memory in team.list(holding=True)] == ["The mill is open."]
        assert team.import_lines(team.export_lines()) == 0
        team.delete(key)
        player = SyncMemories(store, "ann", player=True)
        assert player.add("Ann likes riddles.") == player.add("Ann likes riddles.")
        assert [memory.text for memory in SyncMemories(store, "ann").list()] == ["Ann likes riddles."]
        with pytest.raises(InputError, match="Name the agent"):
            SyncMemories(store, "ann").add("Ann likes riddles.")
        with pytest.raises(InputError, match="asks for a thread"):
            player.retract(1)


async def test_a_graph_of_ones_own_names_its_thread_or_timeline(tmp_path):
    from questbook import remember

    store, place = InMemoryStore(), campaign_namespace("ann", "chat", "exchanges")
    timeline = await remember(store, place, "My lamp is red.")
    with pytest.raises(InputError, match="name a thread"):
        await Memories(store, "ann", campaign="chat").list()
    view = Memories(store, "ann", campaign="chat", timeline=timeline)
    assert await texts(view, holding=True) == ["My lamp is red."]
    assert await view.delete((await view.list())[0].key)


GRAPH = build_agent([], model=Answering(answers=[])).compile(store=InMemoryStore())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": "memory.db", "user": "ann"}, "source: got 'memory.db'"),
        ({}, "Whose memories"),
        ({"user": "ann", "team": "acme"}, "Whose memories"),
        ({"user": 3}, "Whose memories"),
        ({"user": "ann", "agent": 5}, "agent, campaign: got 5"),
        ({"team": "acme", "agent": "x"}, "one of agent, campaign"),
        ({"user": "ann", "agent": "x", "campaign": "y"}, "one of agent, campaign"),
        ({"user": "ann", "player": True, "campaign": "y"}, "one of agent, campaign"),
        ({"user": "ann", "agent": "x", "config": {}}, "give a graph"),
        ({"user": "ann", "timeline": [("a", 1)]}, "name it"),
        ({"user": "ann", "player": True, "agent": "x"}, "one of agent, campaign"),
        ({"user": "ann", "campaign": 7}, "agent, campaign: got 7"),
        ({"team": 3}, "Whose memories"),
        ({"user": 7}, "Whose memories"),
        ({"team": "acme", "player": True}, "one of agent, campaign"),
        ({"source": GRAPH, "user": "ann", "agent": "x", "config": {}, "timeline": []}, "and no timeline"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        Memories(**{"source": InMemoryStore()} | arguments)


async def test_another_users_thread_shows_nothing(door):
    talk = door(InMemoryStore(), user="bob")
    await talk.tell("I live in Oslo.", OSLO)
    with pytest.raises(InputError, match="belongs to 'bob'"):
        await of(talk, config=talk.config).list()
    thread = {"configurable": {"thread_id": "1"}}
    for ask in (why(talk.agent, thread, {"user": "ann", "campaign": "agent:agent"}, "Oslo"),
                of(talk, config=thread).retract(1)):  # fmt: skip
        with pytest.raises(InputError, match="of 'bob'"):
            await ask


ISLE = campaign_namespace("ann", "isle", "facts")


async def isle(*facts, turn=1, store=None):
    """A campaign with facts, of which each turn up to the last one is over."""
    store = store or InMemoryStore()
    await note_facts(store, ISLE, list(facts), timeline=[("a", turn)])
    await store.aput((*ISLE[:-1], "head"), "head", {"timeline": [["a", turn]], "turn": turn})
    return store


async def test_of_one_agent_or_campaign_nothing_is_listed_that_is_known_of_the_user_in_all():
    store = await isle(OSLO)
    await Memories(store, "ann", player=True).add("Ann likes riddles.")
    assert await texts(Memories(store, "ann", campaign="isle")) == [OSLO["text"]]
    assert await texts(Memories(store, "ann", player=True)) == ["Ann likes riddles."]
    assert set(await texts(Memories(store, "ann"))) == {OSLO["text"], "Ann likes riddles."}


def test_sync_callers_may_have_a_graph_whose_checkpointer_and_store_are_synchronous(tmp_path):
    model = Answering(answers=["Fine.", taught(OSLO)])
    config = {"configurable": {"thread_id": "1", "user": "ann"}}
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver,
        SqliteStore.from_conn_string(str(tmp_path / "m.db")) as store,
    ):
        store.setup()
        agent = build_agent([], model=model, facts=FactNotes()).compile(checkpointer=saver, store=store)
        agent.invoke({"messages": [HumanMessage("I live in Oslo.")]}, config)
        for source in (agent, store):
            view = SyncMemories(source, "ann", agent="agent")
            assert [memory.text for memory in view.list(kind="fact")] == [OSLO["text"]]
        view = SyncMemories(agent, "ann", agent="agent", config=config)
        assert view.why("Oslo")
        assert view.list(holding=True, kind="exchange")[0].said == "I live in Oslo."


def by_text(memories):
    return {memory.text: memory for memory in memories}


async def test_memories_are_listed_the_latest_first_and_by_any_time():
    store = InMemoryStore()
    for n, (time, text) in enumerate([("2026-01-02", "Second."), ("2026-01-01", "First."), ("2026-01-03", "Third.")]):
        value = {"kind": "trait", "text": text, "turn": 1, "branch": "a", "said_at": f"{time}T10:00:00+00:00"}
        await store.aput(ISLE, str(n), value)
    await store.aput(ISLE, "9", {"kind": "event", "text": "Some time.", "turn": 1, "branch": "a"})
    view = Memories(store, "ann", campaign="isle", timeline=[("a", 1)])
    assert await texts(view) == ["Third.", "Second.", "First.", "Some time."]
    noon, plain = datetime(2026, 1, 2, 10, tzinfo=UTC), datetime(2026, 1, 2, 10)  # noqa: DTZ001
    for time in (noon, plain):
        assert await texts(view, since=time) == ["Third.", "Second."]
        assert await texts(view, until=time) == ["First."]
    assert await texts(view, since=noon + timedelta(seconds=1)) == ["Third."]
    assert await texts(view, kind="event") == ["Some time."]
    assert await texts(view, kind="fact") == ["Third.", "Second.", "First.", "Some time."]
    assert await texts(view, kind="insight") == []
    assert await texts(view, words="SECOND") == ["Second."]


async def test_what_has_expired_or_was_withheld_or_is_a_secret_is_told_apart():
    past, later = ((datetime.now(UTC) + timedelta(days=days)).isoformat() for days in (-1, 1))
    secret = {"text": "Oda is the thief.", "kind": "secret", "subject": "Oda", "importance": 9}
    store = await isle(OSLO | {"expires": past}, SNAKES | {"expires": later}, secret)
    view, whole = (Memories(store, "ann", campaign="isle", secrets=secrets) for secrets in (False, True))
    told = by_text(await view.list())
    assert {text: memory.status for text, memory in told.items()} == {
        OSLO["text"]: "expired",
        SNAKES["text"]: "holds",
        "": "holds",
    }
    assert set(told[""].value) <= {"kind", "branch", "turn", "order", "said_at", "thread", "scope"}
    assert (told[""].kind, told[""].said) == ("secret", "")
    assert by_text(await whole.list())["Oda is the thief."].value["subject"] == "Oda"
    assert [json.loads(line)["value"]["text"] for line in await view.export_lines(kind="secret")] == []


async def test_whose_words_a_memory_comes_from_and_since_when():
    """A turn's fact from the person's words of it; nobody said what was concluded or written by hand."""
    store, said = await isle(OSLO), campaign_namespace("ann", "isle", "exchanges")
    exchange = {
        "kind": "exchange",
        "text": "I live in Oslo.\nI see.",
        "player": "I live in Oslo.",
        "branch": "a",
        "turn": 1,
    }
    await store.aput(said, "e", exchange)
    await store.aput(said, "w", exchange | {"text": "Hush.", "turn": 2, "withheld": True})
    more = {"branch": "a", "turn": 1, "real_time": "2026-01-02"}
    await store.aput(ISLE, "i", more | {"kind": "insight", "text": "They love the north.", "cites": ["e"]})
    await store.aput(ISLE, "h", more | {"kind": "trait", "text": "Ann has a boat.", "by": "hand"})
    told = by_text(await Memories(store, "ann", campaign="isle").list())
    heard = {text: (memory.said, memory.since) for text, memory in told.items()}
    assert heard == {
        OSLO["text"]: ("I live in Oslo.", ""), exchange["text"]: ("I live in Oslo.", ""),
        "They love the north.": ("", "2026-01-02"), "Ann has a boat.": ("", "2026-01-02"),
    }  # fmt: skip


async def test_what_is_added_by_hand_belongs_to_the_newest_turn_and_is_known_from_then_on():
    store = await isle(OSLO, turn=3)
    view = Memories(store, "ann", campaign="isle")
    added = await view.add({"text": "Ann has a boat.", "kind": "trait", "subject": "Ann", "importance": 8})
    assert (added.status, added.turn, added.value["by"]) == ("holds", 3, "hand")
    assert (await view.add("Ann has a boat.")).key == added.key
    assert len(await view.list()) == 2
    for wrong, said in (({"importance": 99}, "importance: got 99; "), ({"colour": "red"}, "colour: got 'red'; ")):
        with pytest.raises(InputError, match=rf"^{said}[^\n]+ Nothing was changed\.$"):
            await view.add({"text": "x"} | wrong)
    with pytest.raises(InputError, match=r"No turn of 'cave' is finished yet, .* nothing to add to: begin it first."):
        await Memories(store, "ann", campaign="cave").add("Ann has a boat.")
    with pytest.raises(InputError, match=r"Name the agent or campaign to add to, or give player=True, or a team."):
        await Memories(store, "ann").add("Ann has a boat.")


async def test_a_correction_keeps_what_the_fact_was_about_unless_it_says_otherwise():
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    kept = {"subject": "the user", "attribute": "home", "importance": 8, "expires": later, "metadata": {"n": 1}}
    store = await isle({"text": "The user lives in Oslo.", "kind": "promise", "value": "Oslo", **kept})
    view = Memories(store, "ann", campaign="isle")
    [old] = await view.list()
    new = await view.correct(old.key, "The user lives in Voss.")
    assert {name: new.value[name] for name in kept} == kept
    assert (new.kind, new.value["corrects"], new.turn) == ("promise", old.key, 1)
    other = await view.correct(new.key[:8] if len(new.key) > 8 else new.key, "Gone.", kind="event", importance=2)
    assert (other.kind, other.value["importance"], other.value["subject"]) == ("event", 2, "the user")
    assert [memory.status for memory in await view.list()].count("holds") == 1
    place = campaign_namespace("ann", "isle", "exchanges")
    await store.aput(place, "said", {"kind": "exchange", "text": "Hi.", "player": "Hi.", "branch": "a", "turn": 1})
    with pytest.raises(InputError, match="said cannot be corrected: it is no fact"):
        await view.correct("said", "x")
    archived = {"kind": "archive", "text": "Oslo has fjords.", "branch": "a", "turn": 1}
    await store.aput(campaign_namespace("ann", "isle", "archive"), "kept", archived)
    await note_facts(store, ISLE, [SNAKES], timeline=[("b", 1)])
    elsewhere = by_text(await view.list())[SNAKES["text"]].key
    for key, problem in (("kept", "no fact"), (elsewhere, "on another branch")):
        with pytest.raises(InputError, match=f"cannot be corrected: it is {problem}"):
            await view.correct(key, "x")


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ({"kind": "facts"}, "kind: got 'facts'; expected None, 'fact', 'exchange'"),
        ({"since": "2026-01-01"}, "since: got '2026-01-01'; expected a datetime"),
        ({"until": date(2026, 1, 1)}, "until: got datetime.date"),
        ({"holding": "yes"}, "holding: got 'yes'; expected a bool"),
        ({"thread": 1}, "thread: got 1; expected a str"),
        ({"metadata": "x"}, "metadata: got 'x'; expected a JSON object"),
    ],
    ids=repr,
)
async def test_what_cannot_be_listed_is_named_and_is_not_nothing(which, says):
    view = Memories(InMemoryStore(), "ann", campaign="isle")
    assert await view.list(words=None) == []
    with pytest.raises(InputError, match=says):
        await view.list(**which)


async def test_the_correction_of_a_secret_is_one_and_known_to_the_same():
    store = await isle({"text": "Oda is the thief.", "kind": "secret", "known_by": ["Oda"]})
    view = Memories(store, "ann", campaign="isle", secrets=True)
    new = await view.correct((await view.list())[0].key, "Oda was the thief.")
    assert (new.kind, new.value["known_by"]) == ("secret", ["Oda"])


async def test_lines_of_a_team_and_of_a_user_are_not_taken_for_each_other():
    store = await isle(OSLO)
    team = Memories(store, team="acme")
    await team.add("The mill is shut.")
    of_team, of_user = await team.export_lines(), await Memories(store, "ann", campaign="isle").export_lines()
    for view in (Memories(InMemoryStore(), "bob"), Memories(InMemoryStore(), "bob", campaign="x")):
        with pytest.raises(InputError, match=r"Memories of a team: name it\. Nothing was imported."):
            await view.import_lines(of_team)
    with pytest.raises(InputError, match="Memories of a user: name it"):
        await Memories(InMemoryStore(), team="other").import_lines(of_user)
    other = Memories(InMemoryStore(), team="other")
    assert await other.import_lines(["", *of_team, "  "]) == 1
    assert await texts(other) == ["The mill is shut."]


async def test_what_asks_for_a_thread_says_how_to_name_one():
    view = Memories(await isle(OSLO), "ann", campaign="isle")
    for ask in (view.why("Oslo"), view.retract(1)):
        with pytest.raises(
            InputError, match=r"asks for a thread: give Memories the graph, and config=\{'configurable'"
        ):
            await ask
    store = InMemoryStore()
    await store.aput(campaign_namespace("ann", "chat", "exchanges"), "k", {"text": "x", "branch": "a", "turn": 1})
    with pytest.raises(InputError, match="No thread of 'chat' has left a head, so the store does not say which branch"):
        await Memories(store, "ann", campaign="chat").list()


async def test_several_are_deleted_only_if_all_are_found_and_by_the_beginning_of_their_keys():
    store = await isle(OSLO, SNAKES)
    view = Memories(store, "ann", campaign="isle")
    keys = [memory.key for memory in await view.list()]
    with pytest.raises(NoSuchMemoryError):
        await view.delete(*keys, "nothing")
    assert len(await view.list()) == 2
    assert {memory.key for memory in await view.delete(*keys, keys[0])} == set(keys)
    assert await view.list() == []


@pytest.mark.parametrize("named", [False, True])
async def test_a_fact_that_is_deleted_by_its_own_key_does_not_live_on_where_it_was_said_again(named):
    store = InMemoryStore()
    exchange = {"kind": "exchange", "text": "I live in Oslo.", "branch": "a", "turn": 1, "messages": ["m1"]}
    await store.aput((*ISLE[:-1], "exchanges"), "said", exchange)
    origin = {"messages": ["m2"], "said_at": "2026-01-02T10:00:00+00:00", "thread": "7", "checkpoint": "c"}
    second = exchange | {"turn": 2, "text": "In Oslo."} | origin
    await store.aput((*ISLE[:-1], "exchanges"), record_key("a", 2, "exchange"), second)
    for turn in (1, 2, 3):
        await note_facts(store, ISLE, [OSLO], timeline=[("a", turn)], provenance={"messages": [f"m{turn}"]})
    view = Memories(store, "ann", campaign="isle", timeline=[("a", 3)])
    [key] = [memory.key for memory in await view.list(kind="fact")]
    await view.delete("said", *([key] if named else []))
    left = await view.list(kind="fact")
    assert [memory.turn for memory in left] == ([] if named else [2])
    assert [one.value[name] for one in left for name in origin] == ([] if named else list(origin.values()))
    assert await count_repetitions(store, ISLE, [one.key for one in left]) == {one.key: 1 for one in left}
    periods = await slot_history(store, ISLE, "the user", "home", timeline=[("a", 2)])
    assert [(period.since, period.until) for period in periods] == ([] if named else [(2, None)])
    assert bool(await store.asearch((*ISLE[:-1], "marks"))) is not named


async def test_with_an_exchange_go_its_facts_alone_and_what_was_concluded_from_others_too_stays():
    store, stamp = InMemoryStore(), {"branch": "a", "turn": 1, "messages": ["m1"]}
    for label, key, kind in (
        ("exchanges", "said", "exchange"),
        ("archive", "kept", "archive"),
        ("facts", "f", "trait"),
    ):
        await store.aput((*ISLE[:-1], label), key, {"kind": kind, "text": f"Oslo, {key}."} | stamp)
    insight = {"kind": "insight", "text": "They love the north.", "branch": "a", "turn": 2, "messages": []}
    await store.aput(ISLE, "i", insight | {"cites": ["f"]})
    await store.abatch([second_drawing_op(ISLE, "i2", "i", insight | {"turn": 3, "cites": ["kept"]})])
    view = Memories(store, "ann", campaign="isle", timeline=[("a", 3)])
    assert {memory.key for memory in await view.delete("said")} == {"said", "f"}
    left = {memory.key: (memory.text, memory.value.get("cites")) for memory in await view.list()}
    assert left == {"kept": ("Oslo, kept.", None), "i2": ("They love the north.", ["kept"])}
    assert await store.asearch((*ISLE[:-1], "sources")) == []


async def test_what_is_added_belongs_to_the_thread_of_the_newest_memory_that_new_threads_see():
    store, heads = InMemoryStore(), (*ISLE[:-1], "heads")
    for thread, branch, said_at, fact in (("1", "a", "2026-01-01", OSLO), ("2", "b", "2026-01-02", SNAKES)):
        line = UserTimeline([(branch, 1)], thread=thread, heads=heads)
        await note_facts(store, ISLE, [fact], timeline=line, provenance={"said_at": said_at})
    await store.aput(heads, "2", {"timeline": [["c", 1]]})  # the second thread took its turn back
    added = await Memories(store, "ann", campaign="isle").add("Ann has a boat.")
    assert (added.thread, added.value["branch"], added.status) == ("1", "a", "holds")


async def test_what_is_known_of_a_user_in_all_stays_so_where_it_is_imported_with_a_campaign():
    store, other = await isle(OSLO), InMemoryStore()
    await Memories(store, "ann", player=True).add("Ann likes riddles.")
    assert await Memories(other, "bob", campaign="cave").import_lines(await Memories(store, "ann").export_lines()) == 2
    assert await texts(Memories(other, "bob", player=True)) == ["Ann likes riddles."]
    assert await texts(Memories(other, "bob", campaign="cave")) == [OSLO["text"]]


async def test_what_is_beside_a_memory_moves_with_it_and_nothing_of_others():
    store = await isle(OSLO)
    await note_facts(store, ISLE, [OSLO, SNAKES], timeline=[("a", 2)])
    await note_facts(store, ISLE, [BERGEN], timeline=[("a", 3)])
    await store.aput((*ISLE[:-1], "head"), "head", {"timeline": [["a", 3]], "turn": 3})
    view = Memories(store, "ann", campaign="isle")
    told = {text: memory.key for text, memory in by_text(await view.list()).items()}
    stamp = {"branch": "a", "turn": 3, "order": "00000003", "at": "00000003.900"}
    for text in (OSLO["text"], SNAKES["text"]):
        await write_judgements(store, ISLE, [(told[text], told[BERGEN["text"]])], stamp)
        again = second_drawing_op(ISLE, f"again-{told[text]}", told[text], {"cites": ["x"], "turn": 3, "branch": "a"})
        await store.abatch([again])
    lines = [json.loads(line) for line in await view.export_lines(words="Oslo")]
    assert [line["value"]["text"] for line in lines if line["place"][-1] == "facts"] == [OSLO["text"]]
    places = sorted(line["place"][1] for line in lines)
    assert places == ["facts", "heads", "judged", "marks", "marks", "settled", "sources"], "it was said twice"
    told_of = {line["value"].get(name) for line in lines for name in ("ended", "same_as")} - {None}
    assert told_of == {told[OSLO["text"]]}
    assert [line["place"] for line in lines if line["place"][-1] == "heads"] == [["isle", "heads"]]
    other = Memories(InMemoryStore(), "bob", campaign="cave")
    assert await other.import_lines(map(json.dumps, lines)) == 1, "only records are counted"
    assert await texts(other) == [OSLO["text"]]
    assert await Memories(store, "ann", campaign="isle").export_lines(words="nothing") == []


@pytest.mark.slow
async def test_what_is_added_to_an_agent_belongs_to_the_users_newest_thread(door, store):
    for thread, text in (("1", "Ann has a boat."), ("2", "Ann has a cat.")):
        talk = door(store, thread=thread)
        await talk.tell("Hello.")
        added = await Memories(store, "ann", agent="agent").add(text)
        timeline = (await talk.agent.aget_state(talk.config)).values["timeline"]
        assert (added.value["branch"], added.turn, added.status) == (timeline[-1][0], 1, "holds")
        for item in await store.asearch(("ann",), limit=100):
            if "said_at" in item.value:  # it was said some time ago
                await store.aput(item.namespace, item.key, item.value | {"said_at": "2026-01-01T10:00:00+00:00"})


async def test_white_space_around_a_text_makes_no_other_fact_of_it():
    store = await isle(OSLO)
    view = Memories(store, "ann", campaign="isle")
    first = await view.add("Ann has a boat. \n")
    assert (first.text, (await view.add("Ann has a boat. \n")).key) == ("Ann has a boat.", first.key)
    [oslo] = await view.list(words="Oslo")
    moved = await view.correct(oslo.key, " The user lives in Bergen. ", value="Bergen")
    assert (await view.correct(oslo.key, " The user lives in Bergen. ", value="Bergen")).key == moved.key
    assert {*await texts(view, holding=True)} == {"The user lives in Bergen.", "Ann has a boat."}


async def test_a_text_without_words_is_no_fact_and_ends_none():
    store = await isle(OSLO)
    for view in (Memories(store, "ann", campaign="isle"), Memories(store, team="acme")):
        for text in ("", "   ", "\n", {"text": " "}, Fact(text=" "), "x" * 1001):
            with pytest.raises(
                InputError, match=r"^The text of a fact: got '[^\n]*'?\. Write 1 to 1,000 characters\.$"
            ):
                await view.add(text)
    view = Memories(store, "ann", campaign="isle")
    [oslo] = await view.list()
    for text in ("", "   "):
        with pytest.raises(InputError, match="Write 1 to 1,000 characters"):
            await view.correct(oslo.key, text)
    assert await texts(view, holding=True) == [OSLO["text"]]


async def test_memories_of_a_player_and_of_an_agent_are_not_taken_for_each_other():
    store = await isle(OSLO)
    player, game = Memories(store, "ann", player=True), Memories(store, "ann", campaign="isle")
    await player.add("Ann likes riddles.")
    with pytest.raises(InputError, match=r"Memories of the player: .*--player.*Nothing was imported"):
        await game.import_lines(await player.export_lines())
    with pytest.raises(InputError, match=r"Memories of an agent or campaign: name it\. Nothing was imported"):
        await player.import_lines(await game.export_lines())
    assert await player.import_lines([]) == await game.import_lines([]) == 0


async def test_an_agents_memories_are_no_past_of_an_assistant(door):
    talk, other = door(InMemoryStore()), InMemoryStore()
    await talk.tell("I live in Oslo.", OSLO)
    with pytest.raises(InputError, match=r"'work' is one conversation: .*Nothing was imported"):
        await Memories(other, "bob", campaign="companion:work").import_lines(await of(talk).export_lines())
    assert other.search(()) == []
