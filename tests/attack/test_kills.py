"""Runners that are killed lose, double and change nothing; more of them in ``benchmarks/attack.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.attack import kills


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runners are forked")
@pytest.mark.parametrize(("count", "runners", "events"), [(5, 3, False), (5, 1, True)])
def test_a_runner_that_is_killed_costs_nothing_but_its_time(tmp_path, count, runners, events):
    command = [sys.executable, kills.__file__, str(tmp_path), str(count), str(runners), "7", *["events"] * events]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tally = json.loads(done.stdout.splitlines()[-1])
    assert tally["kills"] >= count
    assert tally["stores"] >= 1
    assert tally["lost"] == tally["doubled"] == tally["different"] == 0
    assert tally["tracebacks"] == tally["problems"] == []
    assert bool(tally["events"]) == events
