"""Ways to choose train, validation and test nodes: the names of :mod:`sharpen.graph.splits`, at the address users know."""

from sharpen.graph.splits import (
    Split,
    class_balanced,
    draw_split,
    from_masks,
    load_split,
    random_ratio,
    save_split,
    stratified_ratio,
)

__all__ = [
    "Split",
    "class_balanced",
    "draw_split",
    "from_masks",
    "load_split",
    "random_ratio",
    "save_split",
    "stratified_ratio",
]
