"""The dungeon master's nodes, one module each, named as in `graph.py`; read them in the order of a turn.

`build_character`, `recall`, `run_quest`, `roll_dice`, `update_state`, `remember`, `reflect`. The eighth, `condense`, is
the same for every machine: `questbook.graphs.turn.buffer`.
"""
