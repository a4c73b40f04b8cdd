"""Lore: what a campaign's world is made of, read from files and kept as records that can be cited.

Read `collection` first: files added, listed and removed; then `documents`. `langchain_index` reads one kind of folder.
"""
