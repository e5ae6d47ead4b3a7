"""Files as people have them: each situation is noted, none stops the fit."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import networkx
import pandas as pd
import pytest

from sharpen.errors import InputError

from .test_fit import run

TINY = ("--model", "gcn", "--lam", "0", "--epochs", "3", "--hidden", "8", "--no-page", "--device", "cpu")
KNOWN = (0, 1, 2, 3, 7, 33, 32, 31, 30, 29)
CLUB = networkx.karate_club_graph()


def people() -> pd.DataFrame:
    """The karate club: who, how many handshakes from the teacher, and which side those took whose label is known."""
    far = networkx.single_source_shortest_path_length(CLUB, 0)
    side = [CLUB.nodes[node]["club"] if node in KNOWN else "" for node in CLUB]
    return pd.DataFrame(
        {"id": [f"m{node}" for node in CLUB], "handshakes": [far[node] for node in CLUB], "label": side}
    )


def pairs(prefix: str = "m") -> pd.DataFrame:
    return pd.DataFrame([(f"{prefix}{a}", f"{prefix}{b}") for a, b in CLUB.edges], columns=["source", "target"])


@dataclass
class Situation:
    """How the two files are written, what is given beside them, and what the user reads."""

    name: str
    write: Callable[[Path], None]
    says: tuple[str, ...]
    options: tuple[str, ...] = ()
    nodes: str = "nodes.csv"
    edges: str = "edges.csv"
    labeled: int = 10
    count: int = 34
    links: int = 78


def plain(folder: Path, nodes: pd.DataFrame | None = None, edges: pd.DataFrame | None = None) -> None:
    (people() if nodes is None else nodes).to_csv(folder / "nodes.csv", index=False)
    (pairs() if edges is None else edges).to_csv(folder / "edges.csv", index=False)


def with_dates(folder: Path, style: str = "%Y-%m-%d") -> None:
    days = pd.Timestamp("2019-03-30") + pd.to_timedelta(range(34), unit="D")
    plain(folder, people().assign(joined=days.strftime(style)))


def dates_and_none(folder: Path) -> None:
    """What databases write where there is no date, a word among dates, and a year that a nanosecond clock does not reach."""
    days = (
        (pd.Timestamp("2019-03-30") + pd.to_timedelta(range(34), unit="D")).strftime("%Y-%m-%d").to_numpy(dtype=object)
    )
    days[:3] = ["0000-00-00", "soon", "9999-12-31"]
    plain(folder, people().assign(joined=days, founded=[f"{year}-05-01" for year in range(1600, 1634)]))


def typed_dates(folder: Path) -> None:
    days = pd.Timestamp("2019-03-30 12:00") + pd.to_timedelta(range(34), unit="h")
    people().assign(joined=days).to_parquet(folder / "nodes.parquet")
    plain(folder)


def unknown_ends(folder: Path) -> None:
    strays = pd.DataFrame([("m0", "m99"), ("ghost", "m1"), ("", "m2")], columns=["source", "target"])
    plain(folder, edges=pd.concat([pairs(), strays]))


def ends_by_value(folder: Path) -> None:
    """Ends under names that say nothing, one of them unknown, beside a column of numbers."""
    unknown_ends(folder)
    edges = pd.read_csv(folder / "edges.csv").set_axis(["Erster", "Zweiter"], axis=1)
    edges.assign(often=3).to_csv(folder / "edges.csv", index=False)


def copies(folder: Path) -> None:
    plain(folder, pd.concat([people(), people()[:2]]))


def repeated_edges(folder: Path) -> None:
    plain(folder, edges=pd.concat([pairs(), pairs()[:3]]))


def repeated_weights(folder: Path) -> None:
    plain(folder, edges=pd.concat([pairs(), pairs()[:1]]).assign(weight=2))


def headerless(folder: Path) -> None:
    plain(folder)
    pairs().to_csv(folder / "edges.csv", index=False, header=False)


def headerless_numbers(folder: Path) -> None:
    plain(folder, people().assign(id=range(34)))
    pairs("").to_csv(folder / "edges.csv", index=False, header=False)


def snap(folder: Path) -> None:
    plain(folder, people().assign(id=range(34)))
    rows = "".join(f"{a}\t{b}\n" for a, b in CLUB.edges)
    (folder / "edges.txt").write_text("# Undirected graph\n# Nodes: 34 Edges: 78\n# FromNodeId\tToNodeId\n" + rows)


def blanks(folder: Path) -> None:
    plain(folder, people().assign(id=range(34)))
    (folder / "edges.txt").write_text("# my graph\n" + "".join(f" {a}   {b} \n" for a, b in CLUB.edges))


def windows(folder: Path) -> None:
    plain(folder)
    text = people().assign(town="Köln").to_csv(index=False)
    (folder / "nodes.csv").write_bytes(text.replace("Köln", "Würzburg", 9).encode("cp1252"))


def unknown_words(folder: Path, *words: str) -> None:
    frame = people()
    frame.loc[list(range(10, 10 + len(words))), "label"] = list(words)
    plain(folder, frame)


def id_called(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        plain(folder, people().rename(columns={"id": name}))

    return write


def id_beside_a_name(folder: Path) -> None:
    """A column called name that is not unique, and one called id that numbers rows and is no end of an edge."""
    frame = people().rename(columns={"id": "Personal-Nr."})
    plain(folder, frame.assign(name=["Ann", "Bob"] * 17, id=[f"row {i}" for i in range(34)]))


SITUATIONS = [
    Situation("a date column", with_dates, ("joined: date, as days; 2019-04-16 in the mean, deviation 9.811 days",)),
    Situation("dates with the day first", lambda folder: with_dates(folder, "%d.%m.%Y"), ("joined: date, as days; 2019-04-16",)),
    Situation("dates beside words and days that no calendar has", dates_and_none, (
        "joined: date, as days; 2019-04-17", "3 are no date, such as '0000-00-00'; missing ones become the mean and are marked",
        "founded: date, as days; 1616-1")),
    Situation("dates by type", typed_dates, ("joined: date, as days; 2019-03-31",), nodes="nodes.parquet"),
    Situation("edges to unknown ids", unknown_ends, (
        "3 of 81 edges are left out", "line 80, column 'target': ", "no node with the id 'm99'", "first of 3 such edges")),
    Situation("ends known by their values", ends_by_value, (
        "source and target columns: Erster, Zweiter (guessed)", "3 of 81 edges are left out", "--weight often")),
    Situation("exact copies of rows", copies, ("2 rows are exact copies of others (the first is line 36) and are left out",)),
    Situation("edges that stand twice", repeated_edges, ("edges.csv: 3 edges repeat the ends of another; each counts once",)),
    Situation("weighted ones", repeated_weights, ("edges.csv: 1 edge repeats the ends of another; their weights add up",)),
    Situation("an edge list without a header", headerless, ("edges.csv: no header; the first two columns are the ends",)),
    Situation("one of numbers", headerless_numbers, ("edges.csv: no header; the first two columns are the ends",)),
    Situation("a SNAP file", snap, ("edges.txt: 2 lines of comments above the table are skipped",
                                    "edges.txt: line 3 names the columns", "source and target columns: FromNodeId, ToNodeId"),
              edges="edges.txt"),
    Situation("blanks between cells", blanks, ("1 line of comments above the table is skipped",
                                               "edges.txt: cells are separated by blanks (guessed)"), edges="edges.txt"),
    Situation("Windows-1252", windows, ("nodes.csv is not UTF-8: read as Windows-1252 (guessed); if 'Würzburg' looks wrong",)),
    Situation("labels that mean unknown", lambda folder: unknown_words(folder, "unknown", "n/a", "none", "tbd", "tbd", "k.A."), (
        "label tbd: 2 nodes with it count as unlabeled (guessed); --unknown-label '' makes it a class", "label unknown: 1 node",
        "label n/a: 1 node", "label none: 1 node", "label k.A.: 1 node")),
    Situation("a label that means unknown by option", lambda folder: unknown_words(folder, "later", "later"),
              ("label later: 2 nodes with it count as unlabeled",), ("--unknown-label", "later")),
    Situation("a word for unknown that is a class", lambda folder: unknown_words(folder, "none", "none", "none"), (),
              ("--unknown-label", ""), labeled=13),
    Situation("ids called streamer", id_called("streamer"), ("id column: streamer (guessed)",)),
    Situation("ids called person", id_called("person"), ("id column: person (guessed)",)),
    Situation("ids called Personal-Nr. beside a name and an id", id_beside_a_name, ("id column: Personal-Nr. (guessed)",)),
]  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_each_situation_is_noted_and_fitted(situation: Situation, tmp_path: Path) -> None:
    situation.write(tmp_path)
    files = (tmp_path / situation.nodes, tmp_path / situation.edges)
    result = run("fit", *files, *TINY, "--out", tmp_path / "out", *situation.options)
    assert result.exit_code == 0
    for part in situation.says:
        assert part in result.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["graph"]["nodes"] == situation.count
    assert summary["graph"]["edges"] == situation.links
    assert summary["graph"]["labeled"] == situation.labeled
    assert len(pd.read_csv(tmp_path / "out" / "predictions.csv")) == situation.count
    for part in situation.says:  # what was decided stays with the result
        assert any(part in line for line in summary["columns"]), part
    again = run(
        "predict", tmp_path / "out" / "model.safetensors", *files, "--out", tmp_path / "again.csv", "--device", "cpu"
    )
    assert again.exit_code == 0
    first, second = (pd.read_csv(path) for path in (tmp_path / "out" / "predictions.csv", tmp_path / "again.csv"))
    assert set(first) - set(second) == {"because_neighbors", "because_columns"}  # fit's alone
    pd.testing.assert_frame_equal(first[second.columns], second)


def test_strict_refuses_edges_to_unknown_ids(tmp_path: Path) -> None:
    unknown_ends(tmp_path)
    with pytest.raises(
        InputError, match=r"edges\.csv line 80, column 'target': .*no node with the id 'm99'.* --strict"
    ):
        run("fit", tmp_path / "nodes.csv", tmp_path / "edges.csv", *TINY, "--strict", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_evaluate_takes_the_only_other_column_as_the_label(tmp_path: Path) -> None:
    id_called("streamer")(tmp_path)
    run("fit", tmp_path / "nodes.csv", tmp_path / "edges.csv", *TINY, "--out", tmp_path / "out")
    truth = pd.DataFrame(
        {"Partei": [CLUB.nodes[node]["club"] for node in CLUB], "Mitglied": [f"m{node}" for node in CLUB]}
    )
    truth.to_csv(tmp_path / "later.csv", index=False)
    result = run("evaluate", tmp_path / "out" / "predictions.csv", tmp_path / "later.csv")
    assert "24 nodes with a label now" in result.stdout
    assert "id column: Mitglied (guessed)" in result.stderr


def test_all_problems_of_the_files_are_told_at_once(tmp_path: Path) -> None:
    frame = people().assign(age=["31"] * 33 + ["old"], size=["1.5"] * 33 + ["tall"])
    frame.loc[5, ["id", "handshakes"]] = ["m4", 9]
    plain(tmp_path, frame, pairs().assign(weight=[-1.0, *[1.0] * 77]))
    with pytest.raises(InputError) as caught:
        run("fit", tmp_path / "nodes.csv", tmp_path / "edges.csv", *TINY, "--label", "sidee", "--out", tmp_path / "out")
    message = str(caught.value)
    assert message.startswith("5 problems:\n  1. ")
    for part in (
        "the id 'm4' already stands on line 6",
        "no column 'sidee'",
        "'age' is 'old'",
        "'size' is 'tall'",
        "weight is -1",
    ):
        assert part in message


def test_predict_takes_a_word_for_unknown_as_the_class_that_the_fit_made_of_it(tmp_path: Path) -> None:
    unknown_words(tmp_path, "none", "none", "none")
    files = (tmp_path / "nodes.csv", tmp_path / "edges.csv")
    run("fit", *files, *TINY, "--unknown-label", "", "--out", tmp_path / "out")
    run("predict", tmp_path / "out" / "model.safetensors", *files, "--out", tmp_path / "p.csv", "--device", "cpu")
    assert pd.read_csv(tmp_path / "p.csv")["labeled"].sum() == 13


def test_a_label_that_nobody_named_is_told_beside_what_else_is_wrong(tmp_path: Path) -> None:
    plain(
        tmp_path, people().rename(columns={"label": "Verein"}), pairs("x").set_axis(["one", "two"], axis=1).assign(n=1)
    )
    with pytest.raises(
        InputError, match=r"(?s)2 problems:.*no two columns look like the ends.*no column looks like a label"
    ):
        run("fit", tmp_path / "nodes.csv", tmp_path / "edges.csv", *TINY, "--out", tmp_path / "out")
