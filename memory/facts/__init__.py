"""Facts: what a conversation taught, one sentence each, and which of them hold on a timeline.

Read `fact` first (what a fact is), then `writing` (how it gets into a store) and `validity` (whether it still holds).
What a model sends is read by `reading` and `forms`, with `attributes` and `days`; `relations` compares two facts.
`lookup` and `supersession` serve recall, `reflection` looks back.
"""
