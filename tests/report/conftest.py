"""A store's worth of records that no one trained, partly there: what a report must read well with."""

from collections.abc import Callable

import pytest

from sharpen.analysis.outcome import NO_DATA, Outcome, outcome
from sharpen.studies import load_study
from sharpen.trial import Trial
from tests.studies.fake import records

PARTLY = ["cora", "citeseer", "squirrel"]
UNAVAILABLE = {"wikics": NO_DATA, "amazon-ratings": NO_DATA, "roman-empire": NO_DATA}


def partly(trial: Trial) -> bool:
    """Cora and CiteSeer with a GCN and a GAT, and half of Squirrel's runs."""
    return trial.model in ("gcn", "gat") and (
        trial.dataset in ("cora", "citeseer") or (trial.dataset == "squirrel" and trial.seed < 5)
    )


def diverged(trial: Trial) -> bool:
    return (trial.dataset, trial.model, trial.lam) == ("citeseer", "gat", 0.25) and trial.seed in (1, 3)


@pytest.fixture(scope="session")
def told() -> Callable[[str, str], Outcome]:
    """The outcome of one of the paper's studies, from part of its records."""
    found: dict[tuple[str, str], Outcome] = {}

    def get(name: str, protocol: str = "paper") -> Outcome:
        if (name, protocol) not in found:
            study = load_study(name)
            frame = records(study, protocol, keep=partly, diverged=diverged, datasets=PARTLY)
            # Studies of many variants on a few datasets: planning all of them takes seconds.
            few = [*PARTLY, "wikics"] if len(study.variants) > 41 or name == "retune" else None
            found[name, protocol] = outcome(study, protocol, frame, unavailable=UNAVAILABLE, datasets=few)
        return found[name, protocol]

    return get
