"""Lore: what a campaign's world is made of, read from files and kept as records that can be cited.

Read `collection` first.

- `collection`: `add_lore`, `list_lore`, `remove_lore`.
- `documents`: `LorePiece`, the record, and the reading of text, Markdown, HTML, CSV and PDF files into pieces.
- `langchain_index`: a folder that LangChain's `FAISS.save_local` wrote, read without running what it holds.
"""
