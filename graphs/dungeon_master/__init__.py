"""The dungeon master: Questbook's flagship."""
