"""Topics: what people of an invented campaign can be known for, and what else is said."""

from __future__ import annotations

from typing import NamedTuple

PLACES = ("mill", "ferry", "chapel", "quarry", "orchard", "bridge", "tavern", "smithy", "market", "well", "barn")


class Topic(NamedTuple):
    """What can be told of a person; {n} is a name, {a} what people call them, {p} a place, {x} the value.

    Attributes:
        told: What the dungeon master tells, after "NAME, whom people call THE ALIAS, ".
        noted: What a model notes.
        attribute: Under which attribute.
        asked: How a player asks for it later; none of them says it as it was told.
        changed: What the dungeon master tells when it changes; "" if it does not.
        kind: Kind of the fact.
    """

    told: str
    noted: str
    attribute: str
    asked: tuple[str, str, str]
    changed: str = ""
    kind: str = "trait"


TOPICS = (
    Topic(
        "bends close: the password of the {p} is “{x}”.",
        "{n}, called {a}, told Mira that the password of the {p} is {x}.",
        "password",
        ("What password for the {p} did {n} tell me?", "Which word did {a} give me, to get into the {p}?",
         "What do I know of {a} and the password?"),
    ),
    Topic(
        "has owed a {x} ring to the keeper of the {p} since the harvest.",
        "{n}, called {a}, owes the keeper of the {p} a {x} ring.",
        "debt",
        ("What does {n} owe the keeper of the {p}?", "Which debts does {a} still have to pay?",
         "What do I know of what {a} owes?"),
    ),
    Topic(
        "hides the savings of a lifetime in a {x} jar below the {p}.",
        "{n}, called {a}, hides the savings in a {x} jar below the {p}.",
        "hiding place of the savings",
        ("Where has {n} hidden the savings?", "{a} has savings put away somewhere; in what are they?",
         "What do I know of {a} and the savings?"),
    ),
    Topic(
        "lives in {x} Lane, behind the {p}.",
        "{n}, called {a}, lives in {x} Lane.",
        "home",
        ("Where does {n} live?", "I want to visit {a}. In which lane?", "What do I know of the home of {a}?"),
        "“{n} has moved,” says the keeper of the {p}. “It is {x} Lane now.”",
    ),
    Topic(
        "earns a living with {x} carving at the {p}.",
        "{n}, called {a}, earns a living with {x} carving.",
        "occupation",
        ("How does {n} earn a living?", "What kind of carving does {a} do?", "What do I know of how {a} earns money?"),
        "You hear at the {p} that {n} has learnt something new, and lives by {x} weaving.",
    ),
    Topic(
        "promises to bring you a {x} cloak to the {p} before the first snow.",
        "{n}, called {a}, promised to bring Mira a {x} cloak before the first snow.",
        "",
        ("What did {n} promise to bring me?", "What am I to get from {a} before the snow?",
         "What do I know of the promise of {a}?"),
        kind="promise",
    ),
    Topic(
        "shows you the scar that a {x} left at the {p}.",
        "{n}, called {a}, has a scar that a {x} left.",
        "origin of the scar",
        ("How did {n} get that scar?", "Whatever left a scar on {a}?", "What do I know of {a} and the scar?"),
        kind="event",
    ),
    Topic(
        "whistles, and a hound by the name of {x} comes running to the {p}.",
        "The hound of {n}, called {a}, is named {x}.",
        "name of the hound",
        ("What is the hound of {n} called?", "{a} has a dog, a hound. What is its name?",
         "What do I know of {a} and the hound?"),
    ),
    Topic(
        "fears nothing at the {p} but a {x}.",
        "{n}, called {a}, is afraid of a {x}.",
        "fear",
        ("What is {n} afraid of, what fears are there?", "What does {a} fear?", "What do I know of the fears of {a}?"),
    ),
    Topic(
        "keeps the amulet of the family in the {x} crypt by the {p}.",
        "The amulet of {n}, called {a}, lies in the {x} crypt.",
        "whereabouts of the amulet",
        ("Where is the amulet of {n}?", "In which crypt does the amulet of {a} lie?",
         "What do I know of {a} and the amulet?"),
        "“The amulet of {n}? They took it to the {x} crypt,” you hear at the {p}.",
    ),
)  # fmt: skip
CLAIM = Topic(
    "I tell {n}, the one they call {a}, that my {p} left me a {x} galleon.",
    "Mira's {p} left her a {x} galleon.",
    "inheritance from her {p}",
    ("What did I tell {n} about my {p}?", "What have I told {a} of my {p} and a galleon?",
     "What do I know of the galleon of my {p}?"),
)  # fmt: skip
SECRET = Topic(
    "smiles and asks about the road to the {p}.",
    "{n}, called {a}, serves the {x} order in secret.",
    "true loyalty",
    ("Whom does {n} really serve?", "Is there an order that {a} serves?", "What do I know of whom {a} serves?"),
    kind="secret",
)  # fmt: skip
KIN = ("uncle", "aunt", "captain", "teacher", "cousin", "godmother")
DULL = (
    "{n} shrugs and looks towards the {p}. The rain does not stop.",
    "You walk on past the {p}; {n} nods to you from a doorway.",
    "{n} asks about the road. Somebody sings behind the {p}.",
    "The {p} lies quiet. A dog barks, and {n} laughs at it.",
    "You share bread with {n} near the {p} and talk of the weather.",
)
ASKED = (
    "I look around near the {p} and wait for {n}.",
    "I go on to the {p}.",
    "I greet {n} and ask what is new.",
    "I ask at the {p} how things are.",
)
EVENTS = (
    "{n} was at the {p} with Mira and spoke of {w}.",
    "Mira shared bread with {n} near the {p}.",
    "{n} showed Mira the way to the {p} over {w}.",
)
