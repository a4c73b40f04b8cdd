"""Facts in several wordings, and pairs that sound alike and are not the same; made up for these tests."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def _fact(text: str, subject: str, attribute: str, value: str) -> JSON:
    return {"text": text, "subject": subject, "attribute": attribute, "value": value, "kind": "trait"}


# Two wordings of each of five facts, in texts alone: what a model returns that leaves every other field out.
TEXTS = [
    ("Oda's brother Tam drowned in the mill pond.", "Oda's brother Tam has drowned in the pond of the mill."),
    (
        "The silver key lies under the altar of the sea chapel.",
        "Under the altar in the sea chapel lies the silver key.",
    ),
    ("Goran owes the ferryman thirty crowns.", "Goran owes thirty crowns to the ferryman."),
    ("Mira promised Sister Wen to bring back the bell.", "Mira has promised to bring the bell back to Sister Wen."),
    ("The north gate of Harrow is locked after dusk.", "After dusk, Harrow's north gate is locked."),
]

# Ten wordings of each of five facts, with the fields as a model words them.
FIELDED = [
    [
        _fact("Oda's brother Tam drowned in the mill pond.", "Tam", "death", "drowned in the mill pond"),
        _fact("Tam drowned in the mill pond.", "Tam", "cause of death", "drowned in the mill pond"),
        _fact("Tam, the brother of Oda, drowned in the mill pond.", "Tam", "fate", "drowned in the mill pond"),
        _fact("Tam died: he drowned in the mill pond.", "Tam", "death", "drowned in the mill pond"),
        _fact("In the mill pond Oda's brother Tam drowned.", "Tam", "how he died", "drowned in the mill pond"),
        _fact("Tam was drowned in the pond at the mill.", "Tam", "death", "drowned, mill pond"),
        _fact("Oda's brother, Tam, has drowned in the mill pond.", "Tam", "Death", "Drowned in the mill pond"),
        _fact("Tam drowned in the pond of the mill.", "Tam", "fate", "drowned in the pond of the mill"),
        _fact("It was in the mill pond that Tam drowned.", "Tam", "death", "drowned in the mill pond"),
        _fact("Tam (brother of Oda) drowned in the mill pond", "Tam", "death", "drowned in the mill pond."),
    ],
    [
        _fact("The silver key lies under the altar.", "silver key", "place", "under the altar"),
        _fact("Under the altar lies the silver key.", "the silver key", "location", "under the altar"),
        _fact("The silver key is hidden under the altar.", "silver key", "hiding place", "under the altar"),
        _fact("The silver key can be found under the altar.", "Silver Key", "location", "under the altar"),
        _fact("A silver key is lying under the altar.", "silver key", "location", "under the altar"),
        _fact("The silver key was left under the altar.", "silver key", "place", "Under the altar"),
        _fact("The silver key rests under the altar.", "silver key", "location", "under the altar"),
        _fact("Someone put the silver key under the altar.", "silver key", "location", "under the altar"),
        _fact("The silver key is under the altar.", "silver key", "where it is", "under the altar"),
        _fact("Under the altar: the silver key.", "silver key", "place", "under the altar"),
    ],
    [
        _fact("Goran owes the ferryman thirty crowns.", "Goran", "debt", "thirty crowns to the ferryman"),
        _fact("Goran owes thirty crowns to the ferryman.", "Goran", "debt", "thirty crowns to the ferryman"),
        _fact("Goran is in debt to the ferryman for thirty crowns.", "Goran", "debt", "thirty crowns, ferryman"),
        _fact("Goran's debt to the ferryman is thirty crowns.", "Goran", "debt", "thirty crowns to the ferryman"),
        _fact("The ferryman is owed thirty crowns by Goran.", "Goran", "owes", "thirty crowns to the ferryman"),
        _fact("Goran has a debt of thirty crowns with the ferryman.", "Goran", "debt", "ferryman: thirty crowns"),
        _fact("Goran still owes the ferryman his thirty crowns.", "Goran", "debts", "thirty crowns to the ferryman"),
        _fact("Thirty crowns: that is what Goran owes the ferryman.", "Goran", "owes", "thirty crowns to the ferryman"),
        _fact("Goran must pay the ferryman thirty crowns.", "Goran", "debt", "thirty crowns to the ferryman"),
        _fact("Goran owes the ferryman thirty crowns", "goran", "debt", "Thirty crowns to the ferryman"),
    ],
    [
        _fact("Mira promised Sister Wen to bring back the bell.", "Mira", "promise", "bring back the bell"),
        _fact("Mira has promised Sister Wen to bring the bell back.", "Mira", "promise", "bring the bell back"),
        _fact("Mira gave Sister Wen a promise to bring back the bell.", "Mira", "promise", "bring back the bell"),
        _fact("Mira promised to bring the bell back to Sister Wen.", "Mira", "promise", "bring the bell back"),
        _fact("Mira promises Sister Wen to bring back the bell.", "Mira", "promised", "bring back the bell"),
        _fact("To Sister Wen, Mira promised to bring back the bell.", "Mira", "promise", "bring back the bell"),
        _fact("Mira promised Sister Wen that she would bring back the bell.", "Mira", "vow", "bring back the bell"),
        _fact("Mira's promise to Sister Wen: to bring back the bell.", "Mira", "promise", "to bring back the bell"),
        _fact("Mira has promised that she will bring the bell back to Wen.", "Mira", "promise", "bring back the bell"),
        _fact("Mira promised Wen she'd bring back the bell.", "Mira", "promise", "Bring back the bell"),
    ],
    [
        _fact("The north gate of Harrow is locked after dusk.", "north gate", "after dusk", "locked"),
        _fact("Harrow's north gate is locked after dusk.", "north gate", "after dusk", "locked"),
        _fact("After dusk the north gate of Harrow is locked.", "north gate", "state after dusk", "locked"),
        _fact("The north gate is locked after dusk.", "north gate", "after dusk", "locked"),
        _fact("At Harrow, the north gate gets locked after dusk.", "north gate", "after dusk", "locked"),
        _fact("The north gate of Harrow stays locked after dusk.", "north gate of Harrow", "after dusk", "locked"),
        _fact("They lock the north gate of Harrow after dusk.", "north gate", "after dusk", "locked"),
        _fact("The gate in the north of Harrow is locked after dusk.", "north gate", "after dusk", "locked"),
        _fact("Every day after dusk, Harrow's north gate is locked.", "north gate", "after dusk", "locked"),
        _fact("the north gate of harrow is locked after dusk", "North Gate", "After dusk", "Locked"),
    ],
]

# Each pair sounds alike and is two facts.
DIFFERENT = [
    ("Goran hates Oda.", "Oda hates Goran."),
    ("The north gate is locked.", "The south gate is locked."),
    ("The north gate is locked.", "The north gate is not locked."),
    ("The north gate is locked.", "The north gate is unlocked."),
    ("Goran owes the ferryman thirty crowns.", "Goran owes the ferryman forty crowns."),
    ("Goran owes the ferryman 30 crowns.", "Goran owes the ferryman 40 crowns."),
    ("Mira is afraid of spiders.", "Mira is fond of spiders."),
    ("The silver key lies under the altar.", "The silver key lies behind the altar."),
    ("The silver key lies under the altar.", "The golden key lies under the altar."),
    ("Tam drowned in the mill pond.", "Tam swam in the mill pond."),
    ("Oda sold the lamp to Goran.", "Goran sold the lamp to Oda."),
    ("Mira promised Sister Wen to bring back the bell.", "Mira promised Sister Wen to bring back the book."),
    ("The keeper of the lamp lives in the tower.", "The keeper of the keys lives in the tower."),
    ("Three wolves guard the pass.", "Four wolves guard the pass."),
    ("Lia is Mira's sister.", "Lia is Goran's sister."),
]
