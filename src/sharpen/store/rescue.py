"""Records that their store cannot take: a full disk must not cost what was just trained."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sharpen.store.store import Store, StoreError
from sharpen.trial import Record


def add_or_rescue(store: Store, records: Sequence[Record], *, keep_traces: bool = False) -> None:
    """Adds records to a store; where that fails, to a new one elsewhere, and the error says where.

    Args:
        store, records, keep_traces: As :meth:`sharpen.store.Store.add` takes them.

    >>> from sharpen.trial import Trial
    >>> record = Record(Trial(dataset="toy").resolve("mine"), 0.8, 0.7, 12, "ok", 0.5, "cpu", "float32")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     _ = Path(folder, "records").write_text("in the way")
    ...     add_or_rescue(store, [record])
    Traceback (most recent call last):
    sharpen.store.store.StoreError: cannot write to the store ...; the 1 run that was just trained is in ...
    """
    try:
        store.add(records, keep_traces=keep_traces)
    except StoreError as error:
        what = (
            "the 1 run that was just trained is" if len(records) == 1 else f"the {len(records)} runs just trained are"
        )
        for place in dict.fromkeys((Path(tempfile.gettempdir()), Path.home(), Path.cwd())):
            try:
                other = Store(tempfile.mkdtemp(dir=place, prefix="sharpen-rescued-store-"))
                other.add(records, keep_traces=keep_traces)
            except (OSError, StoreError):
                continue
            raise StoreError(
                f"{error}; {what} in {other.folder}: copy its folders into the store once that is done"
            ) from error
        raise StoreError(f"{error}; {what} lost, since no other folder could be written either") from error
