"""Studies: declared sets of trials, what runs them, and how far they are."""

from sharpen.studies.loading import each_once, list_studies, load_study, own_studies
from sharpen.studies.plan import plan
from sharpen.studies.protocol import PROTOCOLS, runs
from sharpen.studies.spec import Study

__all__ = ["PROTOCOLS", "Study", "each_once", "list_studies", "load_study", "own_studies", "plan", "runs"]
