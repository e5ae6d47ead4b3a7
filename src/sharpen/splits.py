"""Ways to choose train, validation and test nodes: the names of :mod:`sharpen.graph.splits`, at the address users know."""

from sharpen.graph.split_files import load_split, save_split
from sharpen.graph.splits import Split, class_balanced, draw_split, from_masks, random_ratio, stratified_ratio

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
