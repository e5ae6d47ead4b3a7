"""``sharpen datasets``: what can be loaded, and from where."""

from dataclasses import asdict

from sharpen.cli.options import DataFolder, JsonFlag
from sharpen.cli.printing import listing, print_json, print_table

_COUNTS = ("nodes", "edges", "features", "classes")


def datasets(
    data: DataFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """List the datasets and where they are.

    A dataset that is not on this machine is downloaded to the per-user cache on first use.
    """
    from sharpen.datasets import find_dataset, list_datasets  # not above: it imports torch, and help should not wait

    found = {info.name: find_dataset(info.name, data) for info in list_datasets()}
    if as_json:
        rows = [
            {key: value for key, value in asdict(info).items() if key not in ("reader", "splits")}
            | {"folder": None if found[info.name] is None else str(found[info.name])}
            for info in list_datasets()
        ]
        print_json(rows)
        return
    table = listing("name", right=_COUNTS, left=("metric", "licence", "source", "on this machine"))
    for info in list_datasets():
        counts = (f"{getattr(info, name):,}" for name in _COUNTS)
        table.add_row(info.name, *counts, info.metric, info.licence, info.source, str(found[info.name] or "no"))
    print_table(table)
