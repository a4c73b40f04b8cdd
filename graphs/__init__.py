"""What runs: the agents, their models, and the doors people use (terminal, server)."""
