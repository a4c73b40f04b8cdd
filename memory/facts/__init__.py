"""Facts: what a conversation taught, one sentence each, and which of them hold on a timeline.

Read `fact` first (what a fact is), then `writing` (how it gets into a store) and `validity` (whether it still holds).

* `fact`: `Fact`, its slot, its stored `FactRecord`, and the tool by which a model hands facts over.
* `reading`: facts from what a model sent, each as what it is: a fact, a claim, a rumour.
* `likeness`: whether two facts say the same in other words.
* `writing`: `note_facts` for apps, `write_facts` for records with keys of their own, `add_fact` for a person.
* `ledger`: small records beside the facts: which fact holds a slot, what was said again or judged to be wrong.
* `validity`: what holds, then and now: `keep_valid`, `slot_history`, `count_repetitions`.
* `lookup`: the latest facts, all in groups, those about a person, and the slots that a text may be about.
* `supersession`: what takes the place of what holds no more, in what was recalled and in a page's sections.
* `hearsay`: rumours, claims and secrets that a later fact settles.
* `attributes`: the one name of an attribute, and the attribute that a plain sentence gives a value.
* `days`: the days that a fact is about, and how its line shows them.
* `reflection`: what has not been reflected on, and what a model's reflection comes to.
* `insights`: what insights rest on, which go when that is removed, and which come with what is recalled.
"""
