"""The numbers of the findings: made anew between markers, and nothing else touched."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sharpen.analysis.outcome import Outcome, outcome
from sharpen.errors import InputError
from sharpen.studies import load_study
from sharpen.trial import Trial
from tests.scripts import findings
from tests.studies.fake import bump, records, traces

CLAIMS, COMPARISONS, fill, findings_blocks = (
    findings.CLAIMS,
    findings.COMPARISONS,
    findings.fill,
    findings.findings_blocks,
)
tallies = findings.tallies
DOCS = Path(__file__).parents[1] / "docs"


def effect(trial: Trial) -> float:
    """The split of seed 42 is six points harder for everyone."""
    return 0.5 * bump(trial) - 6 * ("seed42" in trial.split)


@pytest.fixture(scope="module")
def blocks() -> dict:
    found: dict[tuple[str, str], Outcome] = {}

    def get(name: str, protocol: str) -> Outcome:
        if (name, protocol) not in found:
            study = load_study(name)
            few = {"datasets": ["cora"], "models": ["gcn"]}
            frame = records(study, protocol, effect, **few)
            found[name, protocol] = outcome(study, protocol, frame, **few)
        return found[name, protocol]

    frame = records(load_study("entropy-dynamics"), "paper", effect, datasets=["cora"], models=["gcn"])
    made = findings_blocks(get, lambda _: traces(frame), frame, lambda study: study.protocols, lambda *_: [])
    made["get"] = get
    return made


def test_every_marker_of_the_findings_has_its_numbers(blocks):
    text = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in ("findings.md", "evidence.md"))
    names = re.findall(r"<!-- numbers: ([\w-]+) -->", text)
    assert sorted(names) == sorted(set(blocks) - {"get"})
    filled = fill(text, blocks)
    assert re.sub(r"(-->\n).*?(<!-- end of)", r"\1\2", filled, flags=re.DOTALL) == re.sub(
        r"(-->\n).*?(<!-- end of)", r"\1\2", text, flags=re.DOTALL
    )
    assert fill(filled, blocks) == filled
    for claim in (*COMPARISONS.values(), *(claim.says for claim in CLAIMS)):
        assert claim in filled


def test_the_findings_are_read_in_three_minutes():
    text = re.sub(r"<!--.*?-->", "", (DOCS / "findings.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert len(" ".join(prose).split()) <= 1200


def test_the_results_stay_small():
    """A clone brings them all along."""
    assert sum(path.stat().st_size for path in (DOCS.parent / "results").rglob("*") if path.is_file()) < 40e6


def test_claims_lead_to_pages_that_exist():
    results = DOCS.parent / "results"
    assert [claim.page for claim in CLAIMS if not (results / claim.page.split("#")[0]).is_file()] == []
    once = findings.readme("# Results\n\nMade by hand.\n")
    assert findings.readme(once) == once
    assert once.endswith("## Every study\n\nMade by hand.\n")
    assert once.count("findings-graphs.png") == 1


def test_the_split_story_tells_a_split_from_an_effect(blocks):
    text = blocks["splits"]()
    row = next(line for line in text.splitlines() if line.startswith("| no-labeled-term") and "Cora GCN" in line)
    _, _, _, paper, crossed, one, draws, _ = row.split("|")
    assert "−3.80" in paper
    get = blocks["get"]
    here = get("labeled-term", "paper").cell("cora", "gcn").sides["ts-0.25"].tests
    there = get("labeled-term", "ablation").cell("cora", "gcn").sides["no-labeled-term"].tests
    expected = np.mean(there) - np.mean(here)
    assert expected < -2
    interval = stats.ttest_ind(there, here, equal_var=False).confidence_interval(0.95)
    shown = [float(value.replace("−", "-")) for value in re.findall(r"[−+]?\d+\.\d\d", crossed)]
    assert shown == pytest.approx([expected, interval.low, interval.high], abs=0.006)
    for paired in (one, draws):  # on the same splits nearly nothing is left of it
        assert abs(float(re.search(r"[−+]\d+\.\d\d", paired)[0].replace("−", "-"))) < 1
    assert "split of seed 42" in text


def test_both_means_are_over_the_cells_that_were_published():
    study = load_study("entropy-order")  # the paper gives no number for Minesweeper with SAGE
    few = {"datasets": ["photo", "minesweeper"], "models": ["sage"]}

    def get(name: str, protocol: str) -> Outcome:
        own = load_study(name)
        frame = records(own, protocol, lambda t: 7.0 * (t.dataset == "photo" and t.q == 1), **few)
        return outcome(own, protocol, frame if name == study.name else frame[:0], **few)

    row = next(line for line in tallies(get).splitlines() if "shannon-0.25" in line and "paper" in line.split("|")[3])
    _, _, _, _, cells, published_, ours, paper, *_ = (place.strip() for place in row.split("|"))
    effect = get("entropy-order", "paper").cell("photo", "sage").effects[0]
    assert (cells, published_) == ("2", "1")
    assert float(ours) == pytest.approx(effect.difference.difference, abs=0.005)
    assert float(paper.replace("−", "-")) == effect.published


def test_a_claim_says_how_many_cells_diverged():
    few = {"datasets": ["cora", "photo"], "models": ["gcn"]}

    def get(name: str, protocol: str) -> Outcome:
        own = load_study(name)
        lost = lambda t: t.dataset == "cora" and t.seed == 1 and t.lam > 0  # noqa: E731
        frame = records(own, protocol, diverged=lost, **few)
        return outcome(own, protocol, frame if name == "universal" else frame[:0], **few)

    assert "| 1 (1 more diverged) |" in next(line for line in tallies(get).splitlines() if "ts-0.25 − baseline" in line)


def test_baselines_are_judged_on_the_ten_graphs(blocks):
    text = blocks["baselines"]()
    assert "of 1 cell" in text
    tests = blocks["get"]("main", "paper").cell("cora", "gcn").sides["baseline"].tests
    distance = (np.mean(tests) - 84.54) / np.hypot(np.std(tests, ddof=1), 0.86)
    row = next(line for line in text.splitlines() if line.startswith("| Cora GCN"))
    assert float(row.split("|")[-2].replace("−", "-")) == pytest.approx(distance, abs=0.051)


def test_a_baseline_is_judged_although_the_grid_is_not_run_and_nothing_is_chosen():
    few = {"datasets": ["cora"], "models": ["gcn"]}

    def get(name: str, protocol: str) -> Outcome:
        own = load_study(name)
        return outcome(own, protocol, records(own, protocol, keep=lambda t: t.lam in (0, 0.25), **few), **few)

    blocks = findings_blocks(get, lambda _: {}, pd.DataFrame(), lambda study: study.protocols, lambda *_: [])
    assert "| Cora GCN |" in blocks["baselines"]()
    assert "no cell has all its pairs yet" in blocks["main"]()
    assert "| paper | *no cell complete yet, 10 of 205 runs* |" in tallies(get).splitlines()[4]
    (row,) = [line for line in blocks["comparison"]().splitlines() if line.startswith("| Cora")]
    assert "*not run yet*" in row.split("|")[3]


def test_a_run_that_serves_two_studies_is_said_to(blocks):
    rows = [[place.strip() for place in line.split("|")] for line in blocks["cost"]().splitlines() if "| " in line]
    own = {(row[1], row[2]): (row[3], row[5], row[6]) for row in rows}
    assert own["One λ for all", "paper"] == ("10 of 10", "0", "0 s")  # all of them points of the main grid
    assert own["Meta-learned λ", "paper"] == ("10 of 10", "5", "2 s")  # λ* is, what the network learns is not


def test_a_lambda_tuned_elsewhere_is_paired_across_studies(blocks):
    row = next(line for line in blocks["lambda-star"]().splitlines() if line.startswith("| Cora GCN"))
    _, _, lam, plain, fixed, _ = row.split("|")
    assert float(lam) == 1.35
    get = blocks["get"]
    star = get("meta-lambda", "paired").cell("cora", "gcn").sides["ts-tuned"].tests
    for place, name in ((plain, "baseline"), (fixed, "ts-0.25")):
        other = get("universal", "paired").cell("cora", "gcn").sides[name].tests
        low, high = stats.ttest_rel(star, other).confidence_interval(0.95)
        shown = [float(value.replace("−", "-")) for value in re.findall(r"[−+]?\d+\.\d\d", place)]
        assert shown == pytest.approx([np.mean(star) - np.mean(other), low, high], abs=0.006)


def test_one_comparison_on_single_splits_and_over_draws(blocks):
    part = blocks["splits"]().split("on single splits and over draws")[1]
    row = next(line for line in part.splitlines() if line.startswith("| Cora GCN"))
    for place, protocol in zip(row.split("|")[2:5], ("paper", "ablation", "paired"), strict=True):
        d = blocks["get"]("universal", protocol).cell("cora", "gcn").effects[0].difference
        assert float(re.search(r"[−+]?\d+\.\d\d", place)[0].replace("−", "-")) == pytest.approx(d.difference, abs=0.006)


def test_the_gap_is_told(blocks):
    text = blocks["entropy-dynamics"]()
    assert text.startswith(
        "Of 1 cell, the gap H_L − H_U, averaged over epochs, is larger with sharpening in 1 (95 % t "
    )
    shown = float(re.search(r"larger in ([\d.]+) % of the epochs", text)[1])
    frame = records(load_study("entropy-dynamics"), "paper", effect, datasets=["cora"], models=["gcn"])
    traced = traces(frame)

    def gap(lam: float) -> np.ndarray:
        own = [traced[id] for id in frame[frame["lam"] == lam]["id"]]
        return np.mean([t["entropy_labeled"].astype(float) - t["entropy_unlabeled"] for t in own], axis=0)

    assert shown == pytest.approx(100 * np.mean(gap(0.25) > gap(0)), abs=0.05)


def test_misspelt_and_unpaired_markers_are_named():
    with pytest.raises(InputError, match="did you mean 'cost'"):
        fill("<!-- numbers: cots -->\n<!-- end of numbers -->", {"cost": lambda: ""})
    with pytest.raises(InputError, match="2 markers"):
        fill("<!-- numbers: cost -->\n<!-- numbers: cost -->\n<!-- end of numbers -->", {"cost": lambda: ""})
