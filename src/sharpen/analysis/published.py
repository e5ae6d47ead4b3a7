"""What the paper says of a cell: of a variant, and of a difference."""

from __future__ import annotations

import math

from sharpen.analysis.runs import Side
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


def published_effect(study: Study, cell: Cell, side: Side, against: Side) -> tuple[float | None, float | None]:
    """The difference of two sides that the paper gives, and its spread."""
    contrast, one, other = Contrast(side.name, against.name), side.published, against.published
    if study.published is not None and (row := published(study.published).get((*cell, contrast.name))) is not None:
        return row.delta, row.sd
    if one is None or other is None or one.mean is None or other.mean is None or against.name != study.baseline:
        return None, None
    delta = one.mean - other.mean if one.delta is None else one.delta
    return delta, None if one.sd is None or other.sd is None else math.hypot(one.sd, other.sd)
