"""The numbers of the findings: made anew between markers, and nothing else touched."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sharpen.errors import InputError
from sharpen.report.findings import CLAIMS, claims, fill, findings_blocks
from sharpen.studies import load_study
from sharpen.studies.outcome import Outcome, outcome
from sharpen.trial import Trial
from tests.studies.fake import bump, records, traces

FINDINGS = Path(__file__).parents[2] / "docs" / "findings.md"


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

    frame = records(load_study("entropy-dynamics"), "paper", effect, datasets=["cora"])
    made = findings_blocks(get, lambda _: traces(frame), get("main", "paper").costs)
    made["get"] = get
    return made


def test_every_marker_of_the_findings_has_its_numbers(blocks):
    text = FINDINGS.read_text(encoding="utf-8")
    names = re.findall(r"<!-- numbers: ([\w-]+) -->", text)
    assert sorted(names) == sorted(set(blocks) - {"get"})
    filled = fill(text, blocks)
    assert re.sub(r"(-->\n).*?(<!-- end of)", r"\1\2", filled, flags=re.DOTALL) == re.sub(
        r"(-->\n).*?(<!-- end of)", r"\1\2", text, flags=re.DOTALL
    )
    assert fill(filled, blocks) == filled
    for claim in CLAIMS.values():
        assert claim in filled


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

    row = next(line for line in claims(get).splitlines() if "shannon-0.25" in line and "paper" in line.split("|")[3])
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

    assert "| 1 (1 more diverged) |" in next(line for line in claims(get).splitlines() if "ts-0.25 − baseline" in line)


def test_baselines_are_judged_on_the_ten_graphs(blocks):
    assert "of 1 cell" in blocks["baselines"]()


def test_the_gap_is_told(blocks):
    assert blocks["entropy-dynamics"]().startswith(
        "Of 1 cells, the mean gap over epochs is larger with sharpening in 1"
    )


def test_misspelt_and_unpaired_markers_are_named():
    with pytest.raises(InputError, match="did you mean 'cost'"):
        fill("<!-- numbers: cots -->\n<!-- end of numbers -->", {"cost": lambda: ""})
    with pytest.raises(InputError, match="2 markers"):
        fill("<!-- numbers: cost -->\n<!-- numbers: cost -->\n<!-- end of numbers -->", {"cost": lambda: ""})
