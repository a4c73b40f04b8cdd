"""What a description of an agent may not say."""

from typing import Literal

import pytest
from desk import CustomerNotebook

from questbook import Notebook, every_turn
from questbook.graphs.agent import Mode, Recall, build_agent
from questbook.memory.buffer.policies import LastTurns
from questbook.notebooks.errors import DeclarationError


class Loud(Notebook):
    UPDATE = every_turn
    volume: Literal["low", "high"] = "low"


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({"notebooks": [Loud, Loud]}, "Loud is given twice"),
        ({"notebooks": Loud}, "expected a list of classes"),
        ({"modes": [Mode("a"), Mode("b")]}, "Mode 'a' always applies, so 'b' behind it never would"),
        ({"modes": [Mode("a", when=bool), Mode("a")]}, "Two modes cannot have one name: 'a'"),
        ({"modes": [Mode("fill", fills=Loud)], "notebooks": [Loud]}, "whose UPDATE is once (none)"),
        ({"modes": [Mode("recall")]}, "Mode 'recall': the agent has something of that name already"),
        ({"modes": [Mode("summary")]}, "Mode 'summary': the agent has something of that name already"),
        ({"modes": [Mode("not a name")]}, "Mode 'not a name': expected a name of letters"),
        (
            {"modes": [Mode("a", fills=CustomerNotebook, when=bool)], "notebooks": [CustomerNotebook]},
            "it has `fills` and `when`",
        ),
        (
            {
                "modes": [Mode("a", fills=CustomerNotebook), Mode("b", fills=CustomerNotebook)],
                "notebooks": [CustomerNotebook],
            },
            "Mode 'b': an earlier one fills CustomerNotebook already",
        ),
        ({"name": "desk:2"}, "name: got 'desk:2'; expected a name without a colon"),
        ({"name": " "}, "name: got ' '"),
        ({"recall": 0.5}, "recall: got 0.5; expected Recall(…), such as Recall(tokens=400)"),
        ({"recall": Recall}, "recall: got <class"),
        (
            {"buffer": "turns"},
            "buffer: got 'turns'; expected a buffer policy, such as LastTurns(6)",
        ),
        ({"buffer": LastTurns}, "buffer: got <class"),
        ({"shared": [Loud]}, "shared: Loud is none of the notebooks"),
        ({"middleware": [object()]}, "take langchain.agents.create_agent, with this memory as one of them"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused_when_it_is_built(description, said):
    with pytest.raises(DeclarationError) as error:
        build_agent(**{"notebooks": [], **description})
    assert said in str(error.value)


@pytest.mark.parametrize("channel", ["messages", "summary", "recall", "missing", "mode"])
def test_a_notebook_cannot_be_called_as_something_that_every_agent_has(channel):
    page = type("OwnNotebook", (Notebook,), {"__module__": __name__, "CHANNEL": channel})
    with pytest.raises(DeclarationError, match=f"OwnNotebook: every agent has something called '{channel}' already"):
        build_agent([page])


def test_notebooks_come_in_any_iterable():
    pages = {"loud": Loud}
    for notebooks in (pages.values(), (page for page in pages.values())):
        assert "loud" in build_agent(name="desk", notebooks=notebooks).compile().channels


def test_two_tools_cannot_have_one_name():
    def TicketNotebook(text: str) -> str:  # noqa: N802
        """Do something else."""
        return text

    import desk

    with pytest.raises(DeclarationError, match="Two tools cannot have one name: 'TicketNotebook'"):
        build_agent([desk.TicketNotebook], tools=[TicketNotebook])


def test_a_run_has_the_agents_name_in_traces():
    builder = build_agent([], name="desk")
    assert builder.compile().name == "desk"
    assert builder.compile(name="other").name == "other"
