"""Tool calls of a reply: which are done, what each is answered, and what of a message is left without some of them."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from scripted import call, malformed, say

from questbook import Notebook, StateNotebook
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.tool_calls import (
    Call,
    TurnTools,
    answer,
    answer_calls,
    calls_of,
    edit_page,
    edit_pages,
    has_calls,
    refuse_edits,
    run_round,
    schemas_of,
    take_out,
    tool_rounds,
    tools_from,
    without_calls,
)
from questbook.graphs.turn.turn import PRIVATE_REFUSAL
from questbook.notebooks import DeclarationError

TIRED = "The cat is tired."


class Cat(Notebook):
    """A cat."""

    LIMIT = 120
    SECRET = frozenset({"plan"})

    name: str = ""
    lives: int = 9
    plan: dict[str, int] = {}


class Dog(Notebook):
    """A dog."""

    name: str = ""


@tool
def feed(food: str) -> str:
    """Feed the cat."""
    if food == "stone":
        raise ToolException(TIRED)
    return f"It eats {food}."


@tool
def ask_vet() -> Command:
    """Ask the vet at once."""
    return Command(graph=Command.PARENT, goto="vet", update={"messages": [HumanMessage("Help!")]})


@tool
def groom() -> Command:
    """Groom the cat."""
    said = [ToolMessage("It purrs.", tool_call_id="g"), AIMessage("Purr.", id="purr")]
    return Command(update={"messages": said, "mood": "good"})


class Tools(TurnTools):
    """One tool of the machine's, "stroke", which wants the model to be asked again for a "bite"."""

    def __init__(self, **options):
        super().__init__(["stroke"], **{"own": [feed, ask_vet, groom], "silent": ["whisper"]} | options)
        self.done = []

    async def run(self, call):
        self.done.append(call.args)
        self.is_over = call.args.get("how") == "asleep"
        return answer(call, call.problem or "Stroked.", ok=not call.problem)


def made(name, id_, **args):
    return Call(id_, name, args)


def turn(*messages, words="Look after the cat."):
    return TurnState(messages=[HumanMessage(words, id="h"), *messages], turn=1, timeline=[("a", 1)])


BROKEN = malformed("Cat", "{nine")
BOTH = say("Here.", call("Cat", name="Tom"), call("Dog", name="Rex"))


def names(message):
    return [one.name for one in calls_of(message)]


def test_calls_with_unreadable_arguments_come_last_with_what_is_wrong():
    message = AIMessage("", tool_calls=[call("feed", food="fish")], invalid_tool_calls=BROKEN.invalid_tool_calls)
    readable, broken = calls_of(message)
    assert (readable.name, readable.args, readable.problem) == ("feed", {"food": "fish"}, "")
    assert (broken.name, broken.args) == ("Cat", {})
    assert broken.problem == "the arguments are no JSON object: '{nine'. Send one JSON object."


def test_a_message_without_some_of_its_calls_keeps_its_words_its_other_calls_and_what_it_cost():
    rest, taken = take_out(BOTH, lambda one: one.name == "Cat")
    assert ([one.args for one in taken], names(rest), rest.text) == ([{"name": "Tom"}], ["Dog"], "Here.")
    assert take_out(BOTH, lambda one: one.name == "Cow") == (BOTH, [])
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    cost = {"id": "m", "response_metadata": {"finish_reason": "stop"}, "usage_metadata": usage}
    costly = BOTH.model_copy(update=cost)
    for wanted in (lambda one: True, lambda one: one.name == "Cat"):
        rest, _ = take_out(costly, wanted)
        assert {name: getattr(rest, name) for name in cost} == cost
    broken, taken = take_out(BROKEN, lambda one: True)
    assert (len(taken), calls_of(broken)) == (1, [])


def test_blocks_of_a_provider_go_with_the_call_that_they_belong_to():
    calls = [call("Cat") | {"id": "c"}, call("Dog") | {"id": "d"}]
    blocks = [
        {"type": "text", "text": "Here."}, "And there.", {"type": "tool_use", "id": "c"}, {"type": "x", "call_id": "c"},
        {"type": "tool_use", "id": "d"},
    ]  # fmt: skip
    message = AIMessage(blocks, tool_calls=calls)
    assert take_out(message, lambda one: one.name == "Cat")[0].content == [blocks[0], blocks[1], blocks[4]]
    assert take_out(message, lambda one: True)[0].content == message.text


def test_messages_without_some_calls_have_no_results_of_these_and_none_that_says_nothing():
    cat, dog = (call(name) | {"id": name} for name in ("Cat", "Dog"))
    results = [ToolMessage("Noted.", tool_call_id=name) for name in ("Cat", "Dog")]
    later = [say("", dog | {"id": "Cat"}), ToolMessage("A dog.", tool_call_id="Cat")]  # the id comes again
    messages = [HumanMessage("Hi."), say("", cat, dog), *results, say("", cat), results[0], say("Good.", cat), *later]
    kept = without_calls(messages, lambda one: one.name == "Cat")
    assert [(one.type, one.text, names(one) if one.type == "ai" else []) for one in kept] == [
        ("human", "Hi.", []), ("ai", "", ["Dog"]), ("tool", "Noted.", []), ("ai", "Good.", []), ("ai", "", ["Dog"]),
        ("tool", "A dog.", []),
    ]  # fmt: skip


@pytest.mark.parametrize(("args", "page", "status", "said", "problem"), [
    ({"name": "Tom"}, {"name": "Tom"}, "success", "Noted.", ""),
    ({"lives": "8"}, {"lives": 8}, "success", "Noted.", ""),
    ({"lives": "all"}, {}, "error", "Cat was left as it is. lives: got 'all'", "Cat was left as it is. lives: got"),
    ({"name": "Tom", "lives": "all"}, {"name": "Tom"}, "error", "What fits is noted; send only the rest again. lives",
     "What fits is noted; send only the rest again. lives"),
    ({"plan": {"eat the bird": "now"}}, {}, "error", "plan.eat the bird: expected a whole number",
     "Cat was left as it is. A secret did not fit."),
    ({"plan": 5}, {}, "error", "plan: input should be a valid", "Cat was left as it is. A secret did not fit."),
])  # fmt: skip
def test_what_fits_of_a_call_is_noted_and_the_answer_says_what_does_not_and_why(args, page, status, said, problem):
    edit = edit_page(Cat(), Call("c", "Cat", args))
    assert edit.page == Cat(**page)
    assert (edit.result.status, edit.result.tool_call_id, edit.result.name) == (status, "c", "Cat")
    assert said in edit.result.text
    assert edit.problem.startswith(problem) if problem else edit.problem == ""
    assert "eat the bird" not in edit.problem, "people may see it"


def test_a_call_that_cannot_be_read_changes_nothing_and_is_told_to_people_in_other_words():
    [broken] = calls_of(BROKEN)
    edit = edit_page(Cat(name="Tom"), broken)
    assert (edit.page, edit.result.status, edit.result.text) == (Cat(name="Tom"), "error", broken.problem)
    assert edit.problem == "The model sent arguments that are no JSON object."


def test_what_fits_the_page_but_not_the_one_that_is_stored_is_refused():
    """The reducer is given one patch of all calls, and nobody comes back to life without a reason."""
    dead = StateNotebook().apply({"people": {"Goran": {"alive": False, "fate": "eaten"}}}).page
    returned = call("StateNotebook", people={"Goran": {"alive": True, "fate": "called back by Oda"}})
    again = call("StateNotebook", people={"Goran": {"fate": "eaten"}})
    for stored in (None, [dead]):
        edits = edit_pages([dead], say("", returned, again), stored=stored)
        assert edits.pages[0].people["Goran"].fate == "called back by Oda"
        assert [result.status for result in edits.results] == ["success", "error"]
        assert "StateNotebook was left as it is. people.Goran.alive: Goran is dead" in edits.results[1].text
        assert edits.notes == []


def test_values_that_code_corrects_are_told_with_what_is_noted_and_with_what_is_not():
    page = StateNotebook.load({"condition": {"max_hp": 12, "hp": 12}})
    edit = edit_page(page, Call("c", "StateNotebook", {"condition": {"hp": 40}}))
    assert edit.notes
    assert edit.result.text == f"Noted. {edit.notes[0]}"
    edit = edit_page(page, Call("c", "StateNotebook", {"condition": {"hp": 40}, "gold": "much"}))
    assert edit.result.text.startswith(
        f"What fits is noted; send only the rest again. {edit.notes[0]} gold: got 'much'"
    )


def test_a_round_of_tools_is_a_message_that_calls_some():
    state = turn(say("Let me see."), say("", call("feed")), ToolMessage("Fed.", tool_call_id="x"), BROKEN)
    assert (tool_rounds(state), has_calls(state), has_calls(turn(say("Hm.")))) == (2, True, False)


def test_calls_of_several_pages_are_done_in_order_and_what_is_no_call_of_theirs_is_refused_by_name():
    calls = [call("Cat", name="Tom"), call("Cat", lives=3), call("Dog", name=["Rex"]), call("done"), call("Cow")]
    message = AIMessage("", tool_calls=calls, invalid_tool_calls=malformed("done", "{").invalid_tool_calls)
    edits = edit_pages([Cat(), Dog()], message, other_tools=["done"])
    assert edits.pages == [Cat(name="Tom", lives=3), Dog()]
    statuses = ["success", "success", "error", "success", "error", "error"]
    assert [result.status for result in edits.results] == statuses
    assert edits.results[3].text == "Noted."
    assert edits.results[4].text == "There is no tool 'Cow'; there are Cat, Dog, done."
    assert edits.results[5].text.startswith("the arguments are no JSON object: '{'")
    assert edits.refused == {"Dog", "Cow", "done"}
    assert len(edits.problems) == 3
    assert edits.problems[2] == "The model sent arguments that are no JSON object."
    only = edit_pages([Cat()], say("", call("Cow")))
    assert only.results[0].text == "There is no tool 'Cow'; the only one is Cat."


def test_edits_that_are_refused_are_answered_one_by_one_and_are_no_problem():
    edits = refuse_edits([Cat()], BOTH, "Not now.")
    assert edits.pages == [Cat()]
    assert [(result.text, result.status) for result in edits.results] == [("Not now.", "error")] * 2
    assert (edits.problems, edits.refused) == ([], set())


async def in_a_node(work):
    """Do work where LangGraph runs a node: tools need its runtime."""
    done = []

    async def node(state):
        done.append(await work)

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    await builder.compile().ainvoke({"messages": []})
    return done[0]


async def answers(tools, *calls, **options):
    done = await in_a_node(answer_calls(turn(**options), tools, calls))
    return [(result.tool_call_id, result.status, result.text) for result in done.results], done.commands


async def test_calls_are_answered_in_their_order_whoever_answers_them():
    tools = Tools()
    broken = Call("4", "feed", {}, "no JSON")
    calls = [made("feed", "1", food="fish"), made("stroke", "2", how="long"), made("cow", "3"), broken]
    results, commands = await answers(tools, *calls, made("feed", "5", food="stone"), Call("6", "stroke", {}, "bad"))
    assert results == [
        ("1", "success", "It eats fish."), ("2", "success", "Stroked."),
        ("3", "error", "There is no tool 'cow'; there are stroke, whisper, feed, ask_vet, groom."),
        ("4", "error", "feed: no JSON"), ("5", "error", results[4][2]), ("6", "error", "bad"),
    ]  # fmt: skip
    assert TIRED in results[4][2]
    assert (tools.done, commands) == ([{"how": "long"}, {}], [])


async def test_of_a_private_turn_nothing_is_noted_and_all_else_is_done():
    tools, private = Tools(noting=["stroke"]), "Don't remember this: feed the cat."
    results, _ = await answers(tools, made("stroke", "1"), made("feed", "2", food="fish"), words=private)
    assert results == [("1", "error", f"stroke: {PRIVATE_REFUSAL}"), ("2", "success", "It eats fish.")]
    assert (await answers(tools, made("stroke", "1")))[0][0][1] == "success"


async def test_ten_calls_of_an_answer_are_done_and_the_others_told_why_not():
    calls = [made("stroke", str(n)) for n in range(12)]
    for too_many, told in (("", "this one was not done."), ("roll later.", "roll later.")):
        tools = Tools(too_many=too_many)
        results, _ = await answers(tools, *calls)
        assert [status for _, status, _ in results] == ["success"] * 10 + ["error"] * 2
        assert results[11][2] == f"That is more than 10 calls at once: {told}"
        assert len(tools.done) == 10


async def test_what_an_applications_tool_commands_is_done_beside_its_answer():
    results, [to_vet] = await answers(Tools(), made("ask_vet", "1"), made("stroke", "2"))
    assert [id_ for id_, *_ in results] == ["2"], "who hands over at once has no answer"
    assert (to_vet.graph, to_vet.goto) == (Command.PARENT, "vet")
    assert to_vet.update["messages"][0].text == "Help!"
    results, [command] = await answers(Tools(), made("groom", "g"))
    assert results == [("g", "success", "It purrs.")]
    assert command.update["mood"] == "good"
    assert [message.text for message in command.update["messages"]] == ["Purr."]


ROUNDS = [
    # what was said, its calls, rounds before, whether the model is asked again, and told that no more may be called
    ("Good.", [call("stroke")], 0, False, False),
    ("", [call("stroke")], 0, True, False),
    (" \n", [call("stroke")], 0, True, False),
    ("Good.", [call("cow")], 0, True, False),
    ("Good.", [call("feed", food="fish")], 0, True, False),
    ("Good.", [call("feed", food="fish")], 1, False, False),
    ("Good.", [call("cow")], 1, False, False),
    ("", [call("stroke")], 1, True, True),
    ("", [call("stroke", how="asleep")], 1, True, False),
    ("Good.", [call("stroke", how="asleep"), call("feed", food="fish")], 0, False, False),
]


@pytest.mark.parametrize(("said", "calls", "before", "again", "spent"), ROUNDS)
async def test_the_model_is_asked_again_when_it_said_nothing_a_call_failed_or_a_tool_wants_it(
    said, calls, before, again, spent
):
    earlier = [say("", call("stroke")), ToolMessage("Stroked.", tool_call_id="x")] * before
    state = turn(*earlier, AIMessage(said, tool_calls=calls, id="m"))
    done = await in_a_node(run_round(state, Tools(), 2))
    assert len(done.results) == len(calls)
    if again:
        assert [message.type for message in done.messages] == ["tool"] * len(calls)
    else:
        first, *_, last = done.messages
        assert (first.id, first.text, names(first)) == ("m", "", [one["name"] for one in calls])
        assert (last.id, last.text, last.type) == ("m-said", said, "ai"), "the turn ends with what was said"
    assert done.messages[-1].text.endswith("\nNo more tools in this turn: answer now.") is spent
    assert done.update({"mood": "good"}) == {"messages": done.messages, "mood": "good"}


async def test_what_tools_command_comes_before_what_the_node_writes():
    state = turn(AIMessage("Good.", tool_calls=[call("groom") | {"id": "g"}]))
    done = await in_a_node(run_round(state, Tools(), 2))
    [command, update] = done.update({"mood": "good"})
    assert (command.update["mood"], update) == ("good", {"messages": done.messages, "mood": "good"})


def test_tools_are_made_of_functions_with_a_docstring_and_nothing_else():
    def play(toy: str) -> str:
        """Play with the cat."""
        return toy

    own, made_of = tools_from([feed, play])
    assert (own, made_of.name, made_of.description) == (feed, "play", "Play with the cat.")
    for wrong in (feed, play, "feed", {"a": feed}, None):
        with pytest.raises(DeclarationError, match="expected a list of tools or functions"):
            tools_from(wrong)
    for wrong in ("feed", Cat, None, {}):
        with pytest.raises(DeclarationError, match="expected a list of tools or functions"):
            tools_from([feed, wrong])
    assert [schema["function"]["name"] for schema in schemas_of([feed, groom])] == ["feed", "groom"]
    assert schemas_of([]) == []
