"""What can go wrong in memory. All of it is a `StoreError`; most are also the built-in error that fits."""


class StoreError(Exception):
    """Base of every error that the store raises of its own."""


class StoreConfigError(StoreError, ValueError):
    """A setting is wrong; the message names it and what is allowed."""


class EmbedderChangedError(StoreConfigError):
    """The vectors in the file come from another embedder, and re-embedding was not allowed."""


class LtmConfigError(StoreConfigError):
    """An `ltm_config.json` cannot be used; the message names each wrong value and what is allowed."""


class StoreUnavailableError(StoreError, OSError):
    """The database cannot be opened, read or written; the message names path, expectation and remedy."""


class CorruptStoreError(StoreUnavailableError):
    """The file is not a store of ours or is damaged. Nothing was changed in it."""


class StoreClosedError(StoreError):
    """The store was used after it had been closed."""


class EmbeddingError(StoreError):
    """The embedder failed, or returned vectors of the wrong number, size or kind. Nothing was written."""


class UnstorableValueError(StoreError, ValueError):
    """A value cannot be kept as JSON, or a time to live is no number of minutes. Nothing was written."""


class UnreadableDocumentError(StoreError, ValueError):
    """A file cannot be read into lore; the message is the reason, shown after the file's name."""


class UnknownLoreError(StoreError, LookupError):
    """There is no lore of that name; the message says what there is. Nothing was changed."""


class ImportFailedError(StoreError):
    """There is nothing to bring over, or it cannot be read; the message says why. Nothing was written."""


class NoSuchMemoryError(StoreError, LookupError):
    """There is no memory with this key; the message says how to find the keys that there are."""


class BadQueryError(StoreError, ValueError):
    """A filter is wrong, or a search asks for something that there is not; the message says what is allowed."""
