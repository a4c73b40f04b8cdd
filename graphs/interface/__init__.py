"""What the terminal and the page both do, apart from how they show it.

`text` makes texts harmless for a screen; `forgetting` forgets words and retracts turns, in sentences.
"""
