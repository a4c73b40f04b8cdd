"""Find what a timeline remembers that helps with a question, over any LangGraph store.

    from questbook import Query, recall

    for record in await recall(store, namespace, Query("Where is the sword?", timeline=timeline, limit=5)):
        print(record.text, record.reason)

- `query`: what recall is asked and what it returns: `Query`, `Recalled`, `Reason`. Read this first.
- `weights`: `Weights`, how much each part of the order counts.
- `recall`: the whole way from one to the other.
- `candidates`: what the store proposes, with its neighbours; `propose_candidates` for other rooms.
- `order`: the parts of a record's score.
- `coverage`: whether a record has enough to do with the question.
- `names`, `times`: whom and which time a question names; `dates`, `german_times`: how dates are written.
- `intents`: what a question asks for (advice, an order, a summary), and what a message asks for good.
- `usage`: when a timeline last used a record, for the scoring of Generative Agents.
- `age`: how long ago something was, in words for people.
"""
