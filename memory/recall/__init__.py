"""Find what a timeline remembers that helps with a question, over any LangGraph store.

    from questbook import Query, recall

    for record in await recall(store, namespace, Query("Where is the sword?", timeline=timeline, limit=5)):
        print(record.text, record.reason)

- `query`: what recall is asked and what it returns: `Query`, `Weights`, `Recalled`, `Reason`. Read this first.
- `recall`: the whole way from one to the other; last accesses, for the scoring of Generative Agents.
- `candidates`: what the store proposes, with its neighbours; `propose_candidates` for other rooms.
- `order`: the parts of a record's score, and its coverage: whether it has enough to do with the question.
- `choice`: what fits into the budget, and nothing twice.
- `names`, `times`: whom and which time a question names; how long ago something was, in words for people.
- `dates`: how dates are written, in English and German.
- `intents`: what a question asks for (advice, an order, a summary), and what a message asks for good; whether it asks
  not to be remembered: `off_record`.
"""
