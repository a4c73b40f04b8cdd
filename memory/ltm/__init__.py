"""LTM: the memories of characters, as the LTM extension for text-generation-webui keeps and recalls them.

Read `memories` first.

- `memories`: `remember_message` and `recall_messages`; `CharacterMemory`, the record; by hand: list, add, edit, delete.
- `config`: `LtmConfig`, the settings of an `ltm_config.json`.
- `prompt`: recalled memories put into a prompt: `inject`, or `memory_block` and `inject_text`; how long it is since
  they last talked: `note_session`, `last_talk`, `greeting_line`.
- `extension_files`: read the extension's databases and CSV exports; `write_csv`.
- `migration`: `import_ltm`, and take over the extension's vectors.
"""
