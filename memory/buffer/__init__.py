"""Message buffer: which turns are in the prompt word for word (`policies`), and the `summary` of the others."""
