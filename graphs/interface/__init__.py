"""What the terminal and the page both do, apart from how they show it.

- `text`: text of people and models, made harmless for a screen; numbers with their nouns.
- `forgetting`: words found and forgotten in a game and in what was typed, and a turn retracted, in sentences.
"""
