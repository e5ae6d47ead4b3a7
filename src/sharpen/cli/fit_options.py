"""The options of ``sharpen fit``."""

from pathlib import Path
from typing import Annotated

import typer

from sharpen.cli.completion import METRICS, offer
from sharpen.cli.options import of_columns
from sharpen.models.registry import ESTIMATORS, MODELS, MODELS_SHORT

Features = Annotated[str | None, of_columns(help="Feature columns, comma-separated.", show_default="all others")]
Ignore = Annotated[str | None, of_columns(help="Columns to ignore, comma-separated.", show_default="none")]
ModelNames = Annotated[
    str,
    typer.Option(
        help=f"auto; {MODELS_SHORT}; {', '.join(ESTIMATORS)}; or several, comma-separated.",
        autocompletion=offer("auto", *MODELS, *ESTIMATORS),
    ),
]
Lam = Annotated[str, typer.Option(help="λ: auto; a number; or candidates, comma-separated.")]
Balance = Annotated[
    str, typer.Option(help="Class-balance weight: auto (0 or λ); a number; or candidates, comma-separated.")
]
ClassPrior = Annotated[
    str | None,
    typer.Option(
        help="Class proportions of the whole graph, if known: gop=0.85,dem=0.15; a CSV file of them; labels (labeled nodes are a "
        "random sample); uniform. A wrong one costs accuracy.",
        show_default="none",
    ),
]
Budget = Annotated[float, typer.Option(help="Time budget of the search, in minutes.")]
Metric = Annotated[
    str,
    typer.Option(
        help="Model selection metric: accuracy, or balanced-accuracy (every class counts the same).",
        autocompletion=offer(*METRICS),
    ),
]
Ensemble = Annotated[
    bool, typer.Option("--ensemble/--no-ensemble", help="Average the best models, or use the single best.")
]
ClassWeight = Annotated[str | None, typer.Option(help="balanced: weight classes by inverse frequency in training.")]
Suggest = Annotated[
    int | None, typer.Option(help="Name so many nodes worth labeling next, in suggestions.csv.", show_default="none")
]
Explain = Annotated[
    int,
    typer.Option(
        help="Say of so many unlabeled nodes, the least sure first, which neighbours and columns spoke for the answer; 0 for none."
    ),
]
OutFolder = Annotated[Path | None, typer.Option(help="Output folder.", show_default="sharpen-out/fit-NODES")]
Seed = Annotated[int, typer.Option(help="Random seed of folds, initial weights and dropout.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON only.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only, without progress.")]
