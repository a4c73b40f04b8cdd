"""The terminal: `questbook play`, `chat` and the other commands. Only other doors import this room.

- `cli`: the command line; it loads the rest when it is needed. Read this first, then `play`. A command is a function of
  settings and flags; what it cannot do, it raises as an error of ours, which `cli` prints on one line. False is also
  a failure.
- `play`: the loop of a game: a line from the keyboard or a pipe, a turn of the graph, and again. `chat`: with the
  companion.
- `slash_commands`: what a slash command is, and all of them but those that go back and forth in the story (`travel`).
- `lore`, `memories`, `import_export`, `forget`, `homes` (of all games at once): commands of the shell.
- `screen`, `pages`: everything that is shown, and pages as rows.
"""
