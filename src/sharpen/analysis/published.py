"""What the paper says of a cell: of a variant, and of a difference."""

from __future__ import annotations

import math

from sharpen.paper import Published, published
from sharpen.studies.plan import Cell, CellPlan
from sharpen.studies.protocol import runs
from sharpen.studies.spec import Contrast, Study


def published_runs(study: Study, cell: Cell) -> int:
    """On how many runs the paper's number of a cell rests."""
    return study.published_runs.get(cell.model, len(runs(cell.dataset, "paper")))


def published_side(study: Study, planned: CellPlan, name: str) -> Published | None:
    """What the paper says of a variant, in the table of the study or in its main one."""
    if study.published is None:
        return None
    key = (*planned.cell, name)
    return published(study.published).get(key) or published("main").get(key)


def published_effect(study: Study, planned: CellPlan, contrast: Contrast) -> tuple[float | None, float | None]:
    """The difference that the paper gives, and its spread."""
    if study.published is None:
        return None, None
    row = published(study.published).get((*planned.cell, contrast.name))
    if row is not None:
        return row.delta, row.sd
    side, against = (published_side(study, planned, name) for name in contrast)
    if (
        side is None
        or against is None
        or side.mean is None
        or against.mean is None
        or contrast.against != study.baseline
    ):
        return None, None
    delta = side.mean - against.mean if side.delta is None else side.delta
    return delta, None if side.sd is None or against.sd is None else math.hypot(side.sd, against.sd)
