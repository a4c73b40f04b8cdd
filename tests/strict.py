"""State as a checkpoint may hold it where LANGGRAPH_STRICT_MSGPACK is set: JSON, and types that LangGraph knows."""

import json

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)


def check_plain(saved):
    """Check every channel: it survives, and all but messages is JSON."""
    for name, value in saved.items():
        assert STRICT.loads_typed(STRICT.dumps_typed(value)) == value, name
        if name != "messages":
            assert json.loads(json.dumps(value)) == value, name
