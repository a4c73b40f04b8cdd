"""The dungeon master: a game whose memory is its state."""
