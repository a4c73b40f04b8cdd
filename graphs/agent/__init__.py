"""An agent made of notebooks: say what is tracked, how it is updated and where it is used, and have it running."""

from questbook.graphs.agent.description import Agent, Mode
from questbook.graphs.agent.graph import build_agent
from questbook.graphs.agent.team import TeamState, as_node
from questbook.graphs.turn.earlier import Recall

__all__ = ["Agent", "Mode", "Recall", "TeamState", "as_node", "build_agent"]
