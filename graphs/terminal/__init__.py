"""The terminal door: the game at a prompt, or scripted through a pipe."""
