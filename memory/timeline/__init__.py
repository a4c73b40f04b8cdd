"""What a checkpoint may see of a store: timelines, the records on them, and where they are kept.

An app that only wants the memory keeps a `timeline` in its graph's state, and calls `remember` when a turn is done,
which returns the timeline to keep:

    timeline = await remember(store, namespace, {"player": message, "reply": reply}, timeline=timeline, claims=claims)

`questbook.memory.recall` then finds exactly what that timeline sees, also after a rewind or a fork. Read `timeline`
first, then `records`; `namespaces` is the only place that builds namespaces.
"""
