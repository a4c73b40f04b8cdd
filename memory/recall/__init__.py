"""Find what a timeline remembers that helps with a question, over any LangGraph store.

    from questbook.memory.recall.query import Query
    from questbook.memory.recall.recall import recall

    for found in await recall(store, namespace, Query("Where is the sword?", timeline=timeline, limit=5)):
        print(found.value["text"], found.reason)

Read `query` first: what recall is asked (`Query`, `Present`, `Weights`) and what it returns (`Recalled`, `Reason`).
Then `recall`: the whole way from one to the other.
"""
