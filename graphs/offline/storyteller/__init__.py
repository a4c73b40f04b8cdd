"""The offline storyteller: a dungeon master made of written tales, tables and dice, with no language model in it.

Read `engine` first: it tells one turn. `intent` says what the player wants, `scene` holds the turn, `people`, `places`
and `deeds` do it by the `rules`, `plot` moves the tale on. `interview` makes the character; `answers` tells what the
prompt says. The texts are TOML files: six tales in `tales/`, and tables, sentences and word lists here.
"""

from questbook.graphs.offline.storyteller.model import OfflineStoryteller

__all__ = ["OfflineStoryteller"]
