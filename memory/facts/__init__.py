"""Facts: what a conversation taught, one sentence each, and which of them hold on a timeline.

Read `fact` first (what a fact is), then `writing` (how it gets into a store) and `validity` (whether it still holds).

* `fact`: `Fact`, its slot, and the tool by which a model hands facts over.
* `reading`: facts from what a model sent, each as what it is: a fact, a claim, a rumour.
* `relations`: whether a fact says the same as another in other words, ends it, or settles a rumour, claim or secret.
* `writing`: `note_facts` for apps, `write_facts` for records with keys of their own, `add_fact` for a person.
* `validity`: what holds, then and now: `keep_valid`, `slot_history`, `count_repetitions`; and the small records beside
  the facts: which fact holds a slot, what was said again or judged to be wrong.
* `lookup`: the latest facts, those about a person, the slots that a text may be about, and the insights
  that come with what is recalled.
* `supersession`: what takes the place of what holds no more, in what was recalled and in a page's sections.
* `attributes`: the one name of an attribute, and the attribute that a plain sentence gives a value.
* `days`: the days that a fact is about, and how its line shows them.
* `reflection`: what has not been reflected on, what a model's reflection comes to, what insights rest on, and which go
  when that is removed.
"""
