"""An agent made of notebooks: declare what is tracked, how it is updated and where it is used; `build_agent` runs it.

Read `graph` first; `spec` says what an agent is made of, `nodes` what its nodes do, `team` how several share notebooks.
"""

from questbook.graphs.agent.graph import build_agent
from questbook.graphs.agent.spec import AgentSpec, Mode
from questbook.graphs.agent.team import TeamState, as_node
from questbook.graphs.turn.recall import Recall

__all__ = ["AgentSpec", "Mode", "Recall", "TeamState", "as_node", "build_agent"]
