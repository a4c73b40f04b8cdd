"""Find what a timeline remembers that helps with a question, over any LangGraph store.

    for record in await recall(store, namespace, Query("Where is the sword?", timeline=timeline, limit=5)):
        print(record.text, record.reason)

Read `query` first, then `recall`, the whole way: `names`, `times` (with `dates`) and `intents` read the question, the
store proposes `candidates`, `order` ranks them, `choice` takes what fits into the budget.
"""
