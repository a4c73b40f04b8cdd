"""An agent made of notebooks: declare what is tracked, how it is updated and where it is used; `build_agent` runs it.

Others may use the names in `__all__`: `build_agent`, with `Mode` for what it does when and `Recall` for how much comes
back; `TeamState` and `as_node` for agents in a team. Read `graph.py` first.
"""

from questbook.graphs.agent.graph import build_agent
from questbook.graphs.agent.spec import AgentSpec, Mode
from questbook.graphs.agent.team import TeamState, as_node
from questbook.graphs.turn.recall import Recall

__all__ = ["AgentSpec", "Mode", "Recall", "TeamState", "as_node", "build_agent"]
