"""The terminal: `questbook play`, `chat` and the other commands. Only other doors import this room.

- `cli`: the command line; it loads the rest when it is needed. Read this first, then `play`.
- `play`: the loop of a game: a line of the player, a turn of the graph, and again. `chat`: with the companion.
- `slash_command`: what a slash command is and works on. `commands` holds those that show something, `travel` those
  that go back and forth in the story, `forget` those about what is kept.
- `lore`, `memories`, `campaign_files`: commands of the shell on files of a world, on memories, and on whole campaigns.
- `doctor`: the command that compares checkpoints and memories, and rebuilds what is missing. `prune`: the one that
  deletes old checkpoints.
- `screen`, `pages`, `input`: everything that is shown, pages as rows, and where the player's lines come from.
"""
