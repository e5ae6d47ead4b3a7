"""The models, each described for one run, and what populations of them are computed with."""
