"""Long-term memory for LangGraph agents, modelled as graph state."""
