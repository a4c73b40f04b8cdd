"""Recall in traces: LangChain's handlers see the run of a retriever, with its question and its documents."""

from langchain_core.callbacks import AsyncCallbackHandler


class Seen(AsyncCallbackHandler):
    def __init__(self):
        self.questions, self.documents = [], []

    async def on_retriever_start(self, serialized, query, **kwargs):
        self.questions.append((kwargs.get("name"), query))

    async def on_retriever_end(self, documents, **kwargs):
        self.documents.append(documents)


async def test_recall_is_the_run_of_a_retriever(game):
    await game.begin()
    await game.play("The bell is made of brass.")
    seen = Seen()
    game.config = {**game.config, "callbacks": [seen]}
    await game.play("What is the bell made of?")
    assert seen.questions == [("recall", "What is the bell made of?")]
    [documents] = seen.documents
    assert all(document.page_content and document.metadata["kind"] for document in documents)
