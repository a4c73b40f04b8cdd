"""Trials: an app is used at random, as strangers use it, and an oracle of its own counts what went wrong.

    python -m benchmarks.trials server --steps 500      LangGraph's server: turns, forks, edits, kills
    python -m benchmarks.trials aegra --steps 90        two instances of Aegra: the same, undos, two messages at once
    python -m benchmarks.trials page --steps 500        the page: two users and a guest

Each turn tells a made-up word that occurs nowhere else. The trial itself keeps which words were told on the way to a
place, and compares that with all that the app shows there. Nothing leaves this machine. The last lines are
`name: value unit`; all but the numbers of what was done must be 0.
"""
