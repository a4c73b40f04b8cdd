"""The offline storyteller: a dungeon master made of written tales, tables and dice, with no language model in it.

`OfflineStoryteller` is all that others use. Read `engine` first: it tells one turn. `intent` says what the player
wants, `scene` holds the turn, `people`, `places`, `things`, `attempts`, `combat` and `downtime` do deeds, `plot` moves
the tale on; `interview` and `portrait` make the character, `pages` answers from the two notebooks, `past` from
memory, `digest` keeps what happened. The texts are TOML files: six tales in `tales/`, and tables, sentences and word
lists here.
"""

from questbook.graphs.offline.storyteller.model import OfflineStoryteller

__all__ = ["OfflineStoryteller"]
