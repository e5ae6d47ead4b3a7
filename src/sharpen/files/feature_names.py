"""What people call the features that an encoder makes: columns of their file, and the value or word where one became several."""

from __future__ import annotations

from collections import Counter

from sharpen.files.column import column_of
from sharpen.files.encoder import FeatureEncoder
from sharpen.files.encodings import Category, FreeText, words_of_buckets
from sharpen.files.source import GraphTables


def feature_names(encoder: FeatureEncoder, tables: GraphTables) -> list[str]:
    """One name for each feature, in order.

    Args:
        tables: The table that it was fitted on, or another with the same columns: hashed words are looked up in it, the commonest
            stands for all that share its place.

    >>> import tempfile, pathlib
    >>> from sharpen.files import read_nodes_and_edges
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nodes.csv"
    >>> _ = path.write_text("id,age,city\\n1,20,Rome\\n2,,Oslo\\n3,60,Rome\\n")
    >>> tables = read_nodes_and_edges(path)
    >>> feature_names(FeatureEncoder.fit(tables), tables)
    ['age', 'age is missing', 'city = Oslo', 'city = Rome']
    """
    if encoder.structural is not None:
        return ["degree", "PageRank", *(f"nearness to {anchor}" for anchor in encoder.structural.anchors)]
    names: list[str] = []
    for encoding in encoder.columns:
        column = encoding.column
        if isinstance(encoding, Category):
            names += [f"{column} = {value}" for value in encoding.values]
        elif isinstance(encoding, FreeText):
            seen: dict[int, Counter[str]] = words_of_buckets(column_of(tables, column))
            names += [
                f"{column}: {seen[bucket].most_common(1)[0][0]}" if bucket in seen else f"{column}: word {bucket}"
                for bucket in encoding.buckets
            ]
        else:
            names += [column, f"{column} is missing"][: encoding.width]
    return names
