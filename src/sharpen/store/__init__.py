"""Where records live: an append-only store of files, and the claims that keep two runners from training the same trial."""

from sharpen.store.store import Store, StoreError

__all__ = ["Store", "StoreError"]
