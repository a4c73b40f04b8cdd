"""Facts: what a conversation taught, one sentence each, and which of them hold on a timeline.

Read `fact` first (what a fact is), then `writing` (how it gets into a store) and `validity` (whether it still holds).

* `fact`: `Fact`, its slot, its stored `FactRecord`, and the tool by which a model hands facts over.
* `reading`: facts from what a model sent, classified as fact, claim, rumour, secret or preference.
* `likeness`: whether two facts say the same in other words.
* `writing`: `note_facts` for apps, `write_facts` for records with keys of their own.
* `by_hand`: facts that a person writes outside of any turn: `add_fact`.
* `slots`: `find_slots`, for prompts that ask for facts.
* `marks`: the small records beside the facts that say which fact holds a slot, and what was judged to be wrong.
* `hearsay`: rumours, claims and secrets that a later fact settles.
* `validity`: what holds, then and now: `keep_valid`, `slot_history`, `count_repetitions`.
* `replacing`: `replace_superseded`: what takes the place of what holds no more, in what was recalled.
* `attributes`: the one name of an attribute, and the attribute that a plain sentence gives a value.
* `days`: the days that a fact is about, and how its line shows them.
* `ended`: what still tells what has ended (core memory, exchanges); standing instructions; all about somebody.
* `latest`: `latest_facts`, the newest of however many.
* `groups`: all facts, by whether they hold: `group_facts`.
* `conclusions`: insights that come with the records that they were drawn from.
* `sources`: what insights rest on, and which of them go when that is removed.
* `reflection`: what has not been reflected on, and what a model's reflection comes to.
"""
