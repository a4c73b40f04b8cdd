"""Chat models without a language model, for play and for tests without a key: a demonstration, not the product.

`storyteller.OfflineStoryteller` is a dungeon master made of written tales, tables and dice; `OfflineAssistant` in
`assistant`, a companion made of a few rules. Both know only what is in the messages that they are given, and answer the
same messages with the same words. Read `model` first: what the two share, and how messages are read.
"""
