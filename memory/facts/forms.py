"""Forms: an app's own pydantic classes in place of free sentences, as which a model hands facts over.

    class Order(BaseModel):
        \"\"\"An order of the customer.\"\"\"

        SLOT: ClassVar = ("number",)        # one order has one state at a time: the later one holds
        TTL: ClassVar = timedelta(days=90)  # and it is forgotten by itself
        number: str
        state: Literal["paid", "sent", "returned"]

`SLOT` names the fields that make the fact's subject and attribute. With one name the attribute is the class; with none,
`()`, the subject is the user; without `SLOT` facts of the class stand side by side. A field or property `text` is the
fact's sentence; without one, its fields are.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, ValidationError, create_model

from questbook.memory.facts.attributes import PERSON
from questbook.memory.facts.fact import MAX_FIELD, MAX_TEXT, Fact, facts_tool
from questbook.types import JSON

Form = type[BaseModel]


def check_forms(forms: Sequence[Any]) -> None:
    """Raise a ValueError for forms that make no sense; it names the class, and what is wrong."""
    names = [getattr(form, "__name__", "") for form in forms]
    for form, name in zip(forms, names, strict=True):
        if not (isinstance(form, type) and issubclass(form, BaseModel)):
            raise ValueError(f"got {form!r:.80}; expected classes derived from pydantic's BaseModel, or Fact")
        slot, ttl = getattr(form, "SLOT", None), getattr(form, "TTL", None)
        fields = slot if isinstance(slot, tuple | list) else ("",)
        if slot is not None and (len(fields) > 2 or not set(fields) <= form.model_fields.keys()):
            raise ValueError(f"{name}.SLOT: got {slot!r:.80}; expected at most two of {tuple(form.model_fields)}")
        if ttl is not None and not (isinstance(ttl, timedelta) and ttl > timedelta()):
            raise ValueError(f"{name}.TTL: got {ttl!r:.80}; expected a timedelta above 0")
    if len({*names, "facts"}) <= len(names):
        raise ValueError(f"got {names}; expected classes with names of their own, none of them 'facts'")


def forms_tool(forms: Sequence[Form]) -> JSON:
    """Return the tool by which a model hands facts over: a list for each form, for `Fact` the usual one."""
    tool = facts_tool()
    own: JSON = {form.__name__: (list[form], []) for form in forms if form is not Fact}  # type: ignore[valid-type]  # classes of the app
    if own:
        filled: Any = create_model("Facts", **own)
        parameters: JSON = filled.model_json_schema()
        if Fact in forms:
            parameters["properties"] |= tool["function"]["parameters"]["properties"]
        tool["function"]["parameters"] = parameters
    return tool


def read_forms(forms: Sequence[Form], calls: Sequence[Any]) -> tuple[list[tuple[Fact, timedelta | None]], list[str]]:
    """Read filled forms from a model's calls; return facts, each with its form's time to live, and what did not fit."""
    facts, problems = list[tuple[Fact, timedelta | None]](), list[str]()
    for form in forms:
        found = [call.get(form.__name__) or [] for call in calls if isinstance(call, Mapping)]
        for entry in (entry for part in found for entry in (part if isinstance(part, list) else [part])):
            try:
                facts.append((_fact_of(form.model_validate(entry)), getattr(form, "TTL", None)))
            except ValidationError as error:
                problem = error.errors(include_url=False, include_input=False)[0]
                place = ".".join(map(str, (form.__name__, *problem["loc"])))
                problems.append(f"{place}: {problem['msg']}; it was left out.")
    return facts, problems


def _fact_of(filled: BaseModel) -> Fact:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", type(filled).__name__).lower()
    data = filled.model_dump(mode="json")
    slot = getattr(filled, "SLOT", None)
    named = [str(data[field]) for field in slot or ()]
    subject, attribute = [*named, name][:2] if named else (PERSON, name)
    said = ", ".join(f"{field} {value}" for field, value in data.items() if value not in (None, "", [], {}))
    rest = ", ".join(str(value) for field, value in data.items() if field not in (*(slot or ()), "text"))
    return Fact(
        kind="trait",
        text=str(getattr(filled, "text", "") or f"{name}: {said}")[:MAX_TEXT],
        subject=subject[:MAX_FIELD] if slot is not None else "",
        attribute=attribute[:MAX_FIELD] if slot is not None else "",
        value=rest[:MAX_FIELD],
        form=type(filled).__name__,
        data=data,
    )
