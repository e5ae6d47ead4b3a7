"""A second reader: works out every number in the findings' table of claims from the records, with no code of the package.

Its own reading of the Parquet files, its own statistics from SciPy and NumPy, its own idea of which runs a protocol has.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import optimize, stats

ROOT = Path(__file__).parents[1]
STORE, PAPER = ROOT / "results" / "store", ROOT / "src" / "sharpen" / "paper"
NAMES = "Cora CiteSeer PubMed Computer Photo CS Physics Squirrel Chameleon Minesweeper"
TITLES = {name.lower(): name for name in NAMES.split()}
GRAPHS = list(TITLES)
MODELS = ["gcn", "sage", "gat"]
COLUMNS = ["id", "dataset", "model", "split", "seed", "lam", "lam_labeled", "lam_max", "q", "balance", "sharpen_val", "lr",
           "dropout", "layers", "hidden", "norm", "residual", "epochs", "val", "test", "created"]  # fmt: skip

with (PAPER / "hyperparameters.csv").open(encoding="utf-8") as lines:
    SETTINGS = {(row["dataset"], row["model"]): row for row in csv.DictReader(lines)}
MLP = {
    "layers": "3",
    "hidden": "512",
    "epochs": "1000",
    "norm": "none",
    "residual": "false",
    "lr": "0.001",
    "dropout": "0.5",
}
SETTINGS |= {(dataset, "mlp"): MLP for dataset in GRAPHS}

pytestmark = pytest.mark.skipif(not STORE.is_dir(), reason="there are no records under results/store")


@pytest.fixture(scope="module")
def records() -> dict[tuple[str, str], pd.DataFrame]:
    """By dataset and model, of every trial the first record; the paper's network, at any learning rate and dropout."""
    parts = []
    for path in sorted((STORE / "records").glob("*.parquet")):
        table = pq.read_table(path)
        part = table.select(COLUMNS).to_pandas()
        part["prior"] = table["prior"].to_pandas() if "prior" in table.column_names else None
        parts.append(part.assign(file=path.name))
    every = pd.concat(parts, ignore_index=True).sort_values(["created", "file"], kind="stable").drop_duplicates("id")
    every = every[(every["balance"] == 0) & every["prior"].isna()]
    return {
        cell: own[same_network(own, SETTINGS[cell])]
        for cell, own in every.groupby(["dataset", "model"])
        if cell in SETTINGS
    }


def same_network(own: pd.DataFrame, setting: dict[str, str]) -> pd.Series:
    same = (own["norm"] == setting["norm"]) & (own["residual"].astype(bool) == (setting["residual"] == "true"))
    for name in ("layers", "hidden", "epochs"):
        same &= own[name] == int(setting[name])
    return same


def protocol(dataset: str, name: str) -> list[tuple[str, int]]:
    given = dataset in ("squirrel", "chameleon", "minesweeper")
    if name in ("paired", "ten"):
        draw = (
            "given-{}"
            if given
            else "balanced-20-500-1000-seed{}"
            if dataset in GRAPHS[:3]
            else "stratified-60-20-20-seed{}"
        )
        few = name == "ten" and dataset not in GRAPHS[:3]  # where a run is dear
        return [(draw.format(i % 10 if given else i), i) for i in range(10 if few else 20)]
    if given:
        return [(f"given-{i}", i) for i in range(3 if dataset == "minesweeper" else 10)]
    return [
        ("balanced-20-500-1000-seed123" if dataset in GRAPHS[:3] else "given-0", i)
        for i in range(5 if dataset in GRAPHS[:3] else 3)
    ]


def runs(
    records, dataset, model, where, *, lam=0.0, labeled=None, q=2.0, meta=False, validation=True, times=1.0, plus=0.0
) -> pd.DataFrame | None:
    """The runs of one variant in one cell under a protocol, by split and seed; None unless all are there.

    The learning rate is so many times the paper's, dropout lies so much above it.
    """
    own = records.get((dataset, model))
    if own is None:
        return None
    usual = SETTINGS[dataset, model]
    rate, dropout = times * float(usual["lr"]), float(usual["dropout"]) + plus
    own = own[np.isclose(own["lr"], rate, rtol=1e-6, atol=0) & np.isclose(own["dropout"], dropout)]
    if meta:
        own = own[own["lam_max"] == 1]
    else:
        weight = -lam if labeled is None else labeled
        same = np.isclose(own["lam"], lam) & np.isclose(own["lam_labeled"], weight) & (own["q"] == q)
        own = own[same & own["lam_max"].isna() & (own["sharpen_val"].astype(bool) == validation)]
    own = own.set_index(["split", "seed"])
    assert own.index.is_unique
    wanted = protocol(dataset, where)
    return own.loc[wanted] if all(key in own.index for key in wanted) else None


class Graph:
    """Differences on one graph: models averaged, then splits."""

    def __init__(self, dataset: str, pairs: list[tuple[pd.DataFrame, pd.DataFrame]]):
        d = sum(100 * (a["test"] - b["test"]) for a, b in pairs) / len(pairs)
        by_split = d.groupby("split", sort=False).mean()
        self.d = (by_split if 1 < len(by_split) < len(d) else d).to_numpy()
        self.title, self.mean, n = TITLES[dataset], self.d.mean(), len(self.d)
        self.spread = self.d.std(ddof=1) if np.ptp(self.d) > 1e-9 else 0.0
        self.p = stats.ttest_1samp(self.d, 0).pvalue if self.spread else 1.0
        if self.spread:
            self.interval = stats.ttest_1samp(self.d, 0).confidence_interval(0.95)
            critical = stats.t.ppf(0.975, n - 1)
            power = lambda x: stats.nct.sf(critical, n - 1, x * np.sqrt(n) / self.spread) - 0.8  # noqa: E731
            self.seen = optimize.brentq(power, 0, 12 * self.spread / np.sqrt(n))

    def within(self, margin: float) -> bool:
        if not self.spread:
            return abs(self.mean) < margin
        low, high = stats.ttest_1samp(self.d, 0).confidence_interval(0.9)
        return -margin < low and high < margin


def clear(graphs: list[Graph]) -> list[Graph]:
    """Those that remain after Holm's correction."""
    found = []
    for place, graph in enumerate(sorted(graphs, key=lambda g: g.p)):
        if graph.p * (len(graphs) - place) >= 0.05:
            break
        found.append(graph)
    return found


def expected(graphs: list[Graph]) -> tuple[list[float], list[str], list[float]]:
    """The numbers of the column of ours, the graphs it names, and the numbers of what could have been seen."""
    kept = sorted(clear(graphs), key=lambda g: -abs(g.mean))
    ours = [np.mean([g.mean for g in graphs]), len(graphs)]
    for graph in kept:
        ours += [graph.mean, *graph.interval]
    ours += [0.5, sum(g.within(0.5) for g in graphs), 1, sum(g.within(1) for g in graphs)]
    seen = sorted(g.seen for g in graphs if g.spread)
    return ours, [g.title for g in kept], [seen[0], seen[-1]]


def numbers(text: str) -> list[float]:
    return [float(value.replace("−", "-")) for value in re.findall(r"[+−]?\d+(?:\.\d+)?", text)]


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    table = text.split("<!-- numbers: claims -->")[1].split("<!-- end of numbers -->")[0]
    lines = [[place.strip() for place in line.strip("|").split(" | ")] for line in table.strip().splitlines()[2:]]
    found = {line[0].removeprefix("| "): line[1:] for line in lines}
    assert found.keys() == {
        *ABLATIONS, META, META_PLAIN, TUNED, TUNED_DRAWS, TUNED_BY_DRAW, TUNED_MLP, MESSAGES, OFFSETS, NEGATIVE, GAP, OVERHEAD,
        GRADIENTS, RETUNED,
    }  # fmt: skip  # each has its test
    return found


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return pd.read_csv(PAPER / "published.csv").set_index(["table", "dataset", "model", "variant"])


@pytest.fixture(scope="module")
def star() -> dict[tuple[str, str], float]:
    return {cell: float(row["lambda_star"]) for cell, row in SETTINGS.items() if cell[1] in MODELS}


def by_graph(records, side, against, where, models=MODELS) -> tuple[list[Graph], list[tuple[str, str]]]:
    """Graphs with the cells that have all runs of both sides; a side is the options of a variant, or a function of the cell."""
    graphs, cells = [], []
    for dataset in GRAPHS:
        pairs = []
        for model in models:
            a, b = (
                s(dataset, model) if callable(s) else runs(records, dataset, model, where, **s) for s in (side, against)
            )
            if a is not None and b is not None:
                pairs.append((a, b))
                cells.append((dataset, model))
        if pairs:
            graphs.append(Graph(dataset, pairs))
    return graphs, cells


def check(row: list[str], graphs: list[Graph], paper: float | None) -> None:
    ours, named, seen = expected(graphs)
    assert numbers(row[0]) == ([] if paper is None else pytest.approx([paper], abs=0.006))
    assert numbers(row[1]) == pytest.approx(ours, abs=0.006)
    assert re.findall(r"[A-Z]\w+", row[1]) == named
    assert numbers(row[3]) == pytest.approx(seen, abs=0.006)
    by_size = sorted((g for g in graphs if g.spread), key=lambda g: g.seen)
    assert re.findall(r"[A-Z]\w+", row[3]) == [by_size[0].title, by_size[-1].title]


def said(published, table, variant, cells) -> float:
    """The paper's mean over graphs of its mean over models."""
    deltas = pd.Series({cell: published["delta"].get((table, *cell, variant)) for cell in cells}, dtype=float)
    return deltas.groupby(level=0).mean().mean()


TUNED = "λ by validation improves on plain training (the paper's one split)"
TUNED_DRAWS = "λ by validation improves on plain training (draws; the best of five values, one for all draws)"
TUNED_BY_DRAW = "(not in the paper) λ by the validation nodes of each draw against a fixed 0.25"
TUNED_MLP = "it improves MLPs too (the paper's one split)"
META, META_PLAIN = (
    "a meta-learned λ is worse than the tuned λ\\*",
    "(not in the paper) a meta-learned λ against plain training",
)
MESSAGES = "sharpening does not replace message passing (MLP with it, GCN without; one split)"
OFFSETS = "moving both weights by an offset does not help (one split)"
NEGATIVE = "a negative λ is usually harmful (−0.5, one split)"
GAP, OVERHEAD = "the entropy gap is larger with sharpening", "the overhead is negligible"
GRADIENTS = "Shannon's gradients are unbounded"
RETUNED = "retuning learning rate and dropout adds little (the best of nine settings; one split)"
SHARP = {"lam": 0.25}
NO_TERM, TEST_ONLY, SHANNON = ({"lam": 0.25, **more} for more in ({"labeled": 0}, {"validation": False}, {"q": 1.0}))
ABLATIONS = {
    "λ = 0.25 improves on plain training": ("universal", "ts-0.25", SHARP, {}),
    "without the labeled term it is worse": ("ablation-labeled-term", "no-labeled-term - ts-0.25", NO_TERM, SHARP),
    "sharpening test nodes only is worse": ("ablation-test-only", "test-only-0.25 - ts-0.25", TEST_ONLY, SHARP),
    "Shannon's entropy does about as well as Gini's": ("ablation-entropy", "shannon-0.25 - ts-0.25", SHANNON, SHARP),
}


@pytest.mark.parametrize("claim", ABLATIONS)
def test_comparisons_over_draws(records, rows, published, claim):
    table, variant, side, against = ABLATIONS[claim]
    graphs, cells = by_graph(records, side, against, "paired")
    assert len(graphs) >= 5
    check(rows[claim], graphs, said(published, table, variant, cells))


def test_the_meta_learned_lambda(records, rows, published, star):
    tuned = lambda dataset, model: runs(records, dataset, model, "paired", lam=star[dataset, model])  # noqa: E731
    graphs, cells = by_graph(records, {"meta": True}, tuned, "paired")
    check(
        rows[META],
        graphs,
        said(published, "ablation-meta", "meta - ts-tuned", cells),
    )
    graphs, _ = by_graph(records, {"meta": True}, {}, "paired")
    check(rows[META_PLAIN], graphs, None)


def chosen(records, dataset, model) -> pd.DataFrame:
    """The λ of the grid from 0 to 2 with the best mean validation score; of equals the smallest."""
    grid = [runs(records, dataset, model, "paper", lam=round(0.05 * i, 2)) for i in range(41)]
    assert all(own is not None for own in grid)
    return max(grid, key=lambda own: (round(own["val"].mean(), 9), -own["lam"].iloc[0]))


def test_lambda_by_validation(records, rows, published):
    side = lambda dataset, model: chosen(records, dataset, model)  # noqa: E731
    for claim, models in (
        (TUNED, MODELS),
        (TUNED_MLP, ["mlp"]),
    ):
        graphs, cells = by_graph(records, side, {}, "paper", models)
        assert len(graphs) == 10
        check(rows[claim], graphs, said(published, "main", "ts-tuned", cells))


def test_message_passing(records, rows, published):
    graphs = [
        Graph(d, [(chosen(records, d, "mlp"), runs(records, d, "gcn", "paper"))]) for d in GRAPHS
    ]  # fmt: skip
    row = rows[MESSAGES]
    mean = published["mean"]
    paper = sum(mean["main", d, "mlp", "ts-tuned"] < mean["main", d, "gcn", "baseline"] for d in GRAPHS)
    assert numbers(row[0]) == [paper, 10]
    assert numbers(row[1]) == [sum(g.mean < 0 for g in graphs), 10, len(clear(graphs))]
    assert numbers(row[3]) == pytest.approx([min(g.seen for g in graphs), max(g.seen for g in graphs)], abs=0.006)


def test_offsets(records, rows, published, star):
    def best(dataset, model):
        lam = star[dataset, model]
        if lam == 0:
            return None
        steps = [
            runs(records, dataset, model, "paper", lam=lam + d, labeled=-lam + d) for d in (0, -0.1, -0.05, 0.05, 0.1)
        ]
        tried = [own for own in steps if own is not None]
        assert len(tried) == 5
        return min(tried, key=lambda own: (-round(own["val"].mean(), 9), round(abs(own["lam"].iloc[0] - lam), 9)))

    still = lambda dataset, model: runs(records, dataset, model, "paper", lam=star[dataset, model])  # noqa: E731
    graphs, cells = by_graph(records, best, still, "paper")
    row = rows[OFFSETS]
    check(row, graphs, said(published, "ablation-offset", "best-offset - ts-tuned", cells))


def test_a_negative_lambda(records, rows):
    row = rows[NEGATIVE]
    check(row, by_graph(records, {"lam": -0.5}, {}, "paper")[0], None)


def test_the_entropy_gap(records, rows):
    larger = total = 0
    for path in sorted((STORE / "traces").glob("*-gcn-*.parquet")):
        traces = pq.read_table(path).to_pandas().set_index(["id", "name"])["values"]
        dataset = path.name.split("-")[0]
        gaps = []
        for lam in (0.0, 0.25):
            own = runs(records, dataset, "gcn", "paper", lam=lam)
            gaps.append([np.mean(np.subtract(*(np.asarray(traces[i, f"entropy_{w}"], float) for w in ("labeled", "unlabeled"))))
                         for i in own["id"]])  # fmt: skip
        larger += stats.ttest_rel(gaps[1], gaps[0]).confidence_interval(0.95).low > 0
        total += 1
    assert numbers(rows[GAP][1]) == [larger, total]


def test_the_overhead(rows):
    measured = pd.read_csv(ROOT / "docs" / "measurements" / "overhead-cpu.csv").groupby("way")["overhead_percent"]
    ends = [end for way in ("plain loop", "population") for end in (measured.min()[way], measured.max()[way])]
    assert numbers(rows[OVERHEAD][1]) == pytest.approx(ends, abs=0.051)


def test_the_largest_gradients(rows):
    """By the logits of seven classes, searched from many starts over the whole simplex."""

    def norm(z, q):
        p = np.exp(z - z.max())
        p /= p.sum()
        g = p * (np.log(p) + stats.entropy(p)) if q == 1 else 2 * p * (p - (p**2).sum())
        return np.linalg.norm(g)

    rng = np.random.default_rng(0)
    most = [
        max(-optimize.minimize(lambda z, q=q: -norm(z, q), rng.normal(size=7) * 2).fun for _ in range(20))
        for q in (1, 2)
    ]
    found = numbers(rows[GRADIENTS][1])
    assert found == pytest.approx([*most, 7], abs=0.006)


def five(records, dataset, model) -> list[pd.DataFrame] | None:
    """20 draws, or 10, of five values of λ; None unless all are there."""
    tried = [runs(records, dataset, model, "ten", lam=lam) for lam in (0, 0.1, 0.25, 0.5, 1)]
    return None if any(own is None for own in tried) else tried


def test_lambda_by_validation_over_draws(records, rows, published):
    """The best by the mean validation score of all draws; of equals the one nearest to plain training."""

    def best(dataset, model):
        tried = five(records, dataset, model)
        return tried and max(tried, key=lambda own: (round(own["val"].mean(), 9), -own["lam"].iloc[0]))

    graphs, cells = by_graph(records, best, {}, "ten")
    assert len(graphs) == 10
    check(rows[TUNED_DRAWS], graphs, said(published, "main", "ts-tuned", cells))


def test_lambda_by_the_validation_of_each_draw(records, rows):
    def best(dataset, model):
        tried = five(records, dataset, model)
        if tried is None:
            return None
        scores = pd.concat([own["val"].round(11) for own in tried], axis=1).to_numpy()
        picked = [tried[i].iloc[n][["val", "test"]] for n, i in enumerate(scores.argmax(axis=1))]
        return pd.DataFrame(picked, index=tried[0].index).astype(float)

    graphs, _ = by_graph(records, best, {"lam": 0.25}, "ten")
    assert len(graphs) == 10
    check(rows[TUNED_BY_DRAW], graphs, None)
    beyond_plain, _ = by_graph(records, best, {}, "ten")
    promised = [
        np.mean(
            [
                100 * (best(d, m)["val"] - runs(records, d, m, "ten")["val"]).mean()
                for m in MODELS
                if five(records, d, m)
            ]
        )
        for d in GRAPHS
    ]
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    sentence = re.search(r"Where each draw chooses for itself, .*", text)[0]
    told = [np.mean([g.mean for g in beyond_plain]), 10, np.mean([g.mean for g in graphs]), 0.25, np.mean(promised)]
    assert numbers(sentence) == pytest.approx(told, abs=0.006)


def test_retuning(records, rows, published, star):
    """The best of nine by the mean validation score; of equals the setting as it is."""

    def best(dataset, model):
        lam = star[dataset, model]
        steps = sorted(((t, p) for t in (0.5, 1, 2) for p in (-0.1, 0, 0.1)), key=lambda step: step != (1, 0))
        tried = [runs(records, dataset, model, "paper", lam=lam, times=t, plus=p) for t, p in steps]
        if any(own is None for own in tried):
            return None
        return max(tried, key=lambda own: round(own["val"].mean(), 9))

    still = lambda dataset, model: runs(records, dataset, model, "paper", lam=star[dataset, model])  # noqa: E731
    graphs, cells = by_graph(records, best, still, "paper")
    assert len(graphs) >= 7
    row = rows[RETUNED]
    check(row, graphs, said(published, "retune", "retuned - ts-tuned", cells))


def test_the_table_of_the_readme(records):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for dataset in ("cora", "citeseer"):
        row = next(line for line in text.splitlines() if line.startswith(f"| {TITLES[dataset]} | "))
        plain, sharp = (100 * runs(records, dataset, "gcn", "paired", lam=lam)["test"] for lam in (0.0, 0.25))
        d = (sharp - plain).round(9)
        interval = stats.ttest_rel(sharp, plain).confidence_interval(0.95)
        counts = [(d > 0).sum(), (d == 0).sum(), (d < 0).sum()]
        assert numbers(row) == pytest.approx([plain.mean(), sharp.mean(), d.mean(), *interval, *counts], abs=0.0051)
