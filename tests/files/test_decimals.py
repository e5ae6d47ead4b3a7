"""Tables with decimal commas, as pandas reads them when it is told to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.errors import InputError
from sharpen.files import Columns, FeatureEncoder, read_nodes_and_edges
from sharpen.files.column import column_of

from .conftest import Write

NODES = "id;Umsatz;Größe;Kürzel;label\n1,5;3632,98;1.234,5;a,b;x\n2,5;-0,5;2.345;c,d;y\n3,5;;12;a,b;\n"
EDGES = "source;target;Gewicht;km\n1,5;2,5;2,97;1,5\n2,5;3,5;1.000,03;2,5\n"


def numbers_of(path: Path, columns: Columns | None = None) -> dict[str, list[float]]:
    tables = read_nodes_and_edges(path, columns=columns)
    return {str(name): column_of(tables, str(name)).numbers().tolist() for name in tables.frame}


@pytest.mark.parametrize(("separator", "ending"), [(";", "csv"), ("\t", "tsv")])
def test_columns_and_weights_are_read_as_pandas_reads_them(separator: str, ending: str, write: Write) -> None:
    nodes = write(f"nodes.{ending}", NODES.replace(";", separator))
    edges = write(f"edges.{ending}", EDGES.replace(";", separator))
    tables = read_nodes_and_edges(nodes, edges, Columns(weight="Gewicht"))
    expected = pd.read_csv(nodes, sep=separator, decimal=",", thousands=".")
    for name in ("Umsatz", "Größe"):
        np.testing.assert_array_equal(column_of(tables, name).numbers(), expected[name].to_numpy())
    assert tables.edge_weight is not None
    assert (
        tables.edge_weight.tolist() == pd.read_csv(edges, sep=separator, decimal=",", thousands=".")["Gewicht"].tolist()
    )
    assert tables.ids.tolist() == ["1,5", "2,5", "3,5"]  # names stay as they stand
    assert tables.frame["Kürzel"].tolist() == ["a,b", "c,d", "a,b"]
    assert f"{nodes}: decimal commas in columns Umsatz, Größe (guessed)" in tables.guesses
    assert f"{edges}: decimal commas in column Gewicht (guessed)" in tables.guesses
    assert f"column km of {edges} is not used; weight='km' would make it the weights" in tables.guesses


def test_a_comma_separated_table_has_no_decimal_commas(write: Write) -> None:
    tables = read_nodes_and_edges(write("nodes.csv", 'id,size\na,"3,5"\nb,"4,5"\n'))
    assert not tables.decimal_commas
    assert not any("decimal" in guess for guess in tables.guesses)


def test_a_clear_column_settles_what_the_others_mean(write: Write) -> None:
    path = write("nodes.csv", "id;kg;cm\na;1,250;3,5\nb;999;4,5\n")
    assert numbers_of(path) == {"kg": [1.25, 999], "cm": [3.5, 4.5]}


@given(st.lists(st.floats(-1e9, 1e9).map(lambda number: round(number, 2)), min_size=1))
def test_numbers_written_with_commas_come_back(tmp_path_factory: pytest.TempPathFactory, numbers: list[float]) -> None:
    path = tmp_path_factory.mktemp("t") / "nodes.csv"
    frame = pd.DataFrame({"id": range(len(numbers) + 1), "n": [0.25, *numbers]})
    frame.to_csv(path, sep=";", decimal=",", index=False)
    assert numbers_of(path)["n"] == frame["n"].tolist()


def test_the_rules_of_the_fit_hold_for_another_file(write: Write) -> None:
    nodes, edges = write("nodes.csv", NODES), write("edges.csv", EDGES)
    fitted = FeatureEncoder.fit(read_nodes_and_edges(nodes, edges, Columns(weight="Gewicht")))
    saved = FeatureEncoder.from_json(json.loads(json.dumps(fitted.to_json())))
    assert saved == fitted
    rules = Columns(weight="Gewicht", decimal_commas=saved.decimal_commas, weight_comma=saved.weight_comma)
    # Alone, the commas of '1,250' might mark thousands; settled, they make the points of the other column marks of thousands.
    later = write("later.csv", "id;Umsatz;Größe;Kürzel\n1;1,250;2.345;a,b\n2;3;1.000;a,b\n")
    links = write("links.csv", "source;target;Gewicht\n1;2;1,250\n2;1;2.000\n")
    tables = read_nodes_and_edges(later, links, rules)
    assert column_of(tables, "Umsatz").numbers().tolist() == [1.25, 3]
    assert column_of(tables, "Größe").numbers().tolist() == [2345, 1000]
    assert tables.edge_weight is not None
    assert tables.edge_weight.tolist() == [1.25, 2000]
    # A file with points is read as it stands, whatever the fitted one had.
    points = write("points.csv", "id,Umsatz,Größe,Kürzel\n1,1.250,2.345,e\n2,3,1.5,e\n")
    assert column_of(read_nodes_and_edges(points, columns=rules), "Größe").numbers().tolist() == [2.345, 1.5]


def test_points_alone_after_a_fit_with_commas_are_asked_about(write: Write) -> None:
    rules = Columns(decimal_commas=("kg",), weight_comma=True)
    with pytest.raises(
        InputError, match=r"'kg' is 2\.345, where the model was fitted on decimal commas; write 2345, or 2,345 if"
    ):
        read_nodes_and_edges(write("nodes.csv", "id;kg\na;12\nb;2.345\n"), columns=rules)
    nodes, edges = write("n.csv", "id;kg\na;1,5\nb;2\n"), write("e.csv", "source;target;weight\na;b;1.003\n")
    with pytest.raises(
        InputError, match=r"the mark of the weight '1\.003' may stand for decimals or thousands; write weights"
    ):
        read_nodes_and_edges(nodes, edges, rules)
    # What cannot be thousands is no question, nor is it where the fit had points.
    assert numbers_of(write("n2.csv", "id;kg\na;12\nb;2.34\n"), rules) == {"kg": [12, 2.34]}
    assert numbers_of(write("n3.csv", "id;kg\na;12\nb;2.345\n")) == {"kg": [12, 2.345]}
    assert read_nodes_and_edges(nodes, edges).edge_weight.tolist() == [1.003]


def test_points_mark_thousands_where_another_column_has_decimal_commas(write: Write) -> None:
    path = write("nodes.csv", "id;people;share\na;1.234;0,5\nb;999;1,5\nc;12.345;2,5\n")
    assert numbers_of(path) == {"people": [1234, 999, 12345], "share": [0.5, 1.5, 2.5]}


def test_a_stray_word_among_commas_and_whole_numbers_is_named(write: Write) -> None:
    rows = "".join(f"{i};{i},5\n{i + 100};{i}\n" for i in range(10))
    tables = read_nodes_and_edges(write("nodes.csv", f"id;kg\n{rows}x;k.A.\n"))
    with pytest.raises(InputError, match=r"'kg' is 'k\.A\.', while the other values are numbers with decimal commas"):
        FeatureEncoder.fit(tables)
    unclear = read_nodes_and_edges(write("unclear.csv", "id;n\na;1,234\nb;999\nc;998\nd;997\n"))
    with pytest.raises(InputError, match=r"'n' is '1,234', with a comma that may mark decimals or thousands"):
        FeatureEncoder.fit(unclear)
