"""What the terminal and the page both do, apart from how they show it.

- `text`: text of people and models, made harmless for a screen; numbers with their nouns.
- `forgetting`: words found and forgotten in a game, and a turn retracted, in sentences for a person.
- `prompt_history`: the file of what was typed at the terminal's prompt.
"""
