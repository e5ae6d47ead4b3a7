"""The command line as a whole: its subcommands, its help, its exit codes."""

import sys
from typing import Annotated

import typer

from sharpen.cli.ending import INTERRUPTED, interrupted_code, signals_as_interrupts, unbroken_streams
from sharpen.cli.lazy import LazyGroup
from sharpen.errors import InputError

app = typer.Typer(
    name="sharpen", cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version  # which takes a tenth of a second

        try:
            typer.echo(f"sharpen {version('graph-sharpen')}")
        except PackageNotFoundError:
            typer.echo("sharpen (from a source tree that is not installed)")
        raise typer.Exit


@app.callback()
def sharpen(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Label the unlabeled nodes of a graph, and say honestly how well.

    [bold]Your own graph:[/bold] two files in; labels, their probabilities
    and an HTML report out:

    sharpen fit nodes.csv edges.csv

    sharpen predict sharpen-out/fit-nodes/model.safetensors nodes.csv edges.csv

    sharpen evaluate sharpen-out/fit-nodes/predictions.csv later.csv

    sharpen serve sharpen-out/fit-nodes/model.safetensors nodes.csv edges.csv

    [bold]What sharpening does[/bold] on the bundled graph (a minute on two
    cores), and on a benchmark over 30 random splits on a GPU:

    sharpen compare

    sharpen compare cora --model gcn --lam 0.25 --splits 30 --device cuda

    [bold]Several λ at once,[/bold] λ chosen on validation scores, or the
    paper's own split:

    sharpen compare citeseer --lam 0.1,0.25,0.5

    sharpen compare citeseer --lam auto

    sharpen compare cora --splits paper --seeds 10

    [bold]The paper's tables and figures:[/bold] run in slices that resume, then
    report:

    sharpen study run main --device cuda --time-limit 30

    sharpen study report --figures

    [bold]For scripts:[/bold] --json prints only the result, --quiet only the
    headline. Without a terminal there are no colours and no progress bar;
    results go to standard output, everything else to standard error.

    [bold]Exit codes:[/bold] 0 success; 1 a bug in sharpen; 2 invalid input, with
    lines on standard error that say what is wrong and how to fix it;
    130, 143 or 129 interrupted by Ctrl-C, SIGTERM or SIGHUP: what is finished is
    kept, with no half-written files; `fit` stops searching and saves the best so
    far, if there is one.

    [bold]More:[/bold] sharpen COMMAND --help; sharpen --install-completion for
    shell completion.
    """


def main() -> None:
    """Run the command line; the entry point of the installed command ``sharpen``."""
    with unbroken_streams(), signals_as_interrupts():
        try:
            app(prog_name="sharpen")
        except InputError as error:
            print(f"sharpen: {error}", file=sys.stderr)
            sys.exit(2)
        except SystemExit as ended:
            if ended.code == INTERRUPTED:
                sys.exit(interrupted_code())
            raise
