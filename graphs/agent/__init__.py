"""An agent made of notebooks: say what is tracked, how it is updated and where it is used, and have it running."""

from graphs.agent.description import Agent, Mode
from graphs.agent.graph import build_agent
from graphs.agent.team import TeamState, as_node
from graphs.earlier import Recall

__all__ = ["Agent", "Mode", "Recall", "TeamState", "as_node", "build_agent"]
