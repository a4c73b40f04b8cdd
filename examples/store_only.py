"""FaissStore in a plain LangGraph agent, with nothing else of this project.

Run it twice: the second run remembers what was said in the first.

    python examples/store_only.py "My cat is called Biscuit"
    python examples/store_only.py "What is my cat called?"
"""

import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from questbook import FaissStore, campaign_namespace

HERE = campaign_namespace("ada", "example")


def recall(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
    """Answer with the memory that fits best. A real agent would put it into a model's prompt."""
    said = state["messages"][-1].text
    found = store.search(HERE, query=said, limit=1)
    answer = f"You once told me: {found[0].value['text']}" if found else "That is new to me."
    return {"messages": [AIMessage(answer)]}


def remember(state: MessagesState, *, store: BaseStore) -> None:
    """Keep what was said. The message's id is the key, so that writing twice is writing once."""
    said = state["messages"][-2]
    store.put(HERE, str(said.id), {"text": said.text})


def main(said: str, path: Path) -> str:
    builder = StateGraph(MessagesState)
    builder.add_sequence([recall, remember])
    builder.add_edge(START, "recall")
    with FaissStore.open(path) as store:
        agent = builder.compile(store=store)
        return str(agent.invoke({"messages": [HumanMessage(said)]})["messages"][-1].text)


if __name__ == "__main__":
    said, *path = sys.argv[1:] or ["What do you know about me?"]
    print(main(said, Path(path[0] if path else "example.db")))
