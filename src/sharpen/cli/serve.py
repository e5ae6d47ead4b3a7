"""``sharpen serve``: predictions over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from sharpen.cli.options import Device, EdgesFile
from sharpen.errors import InputError


def serve(
    model: Annotated[Path, typer.Argument(help="model.safetensors from `sharpen fit`.")],
    nodes: Annotated[
        Path | None,
        typer.Argument(help="Node table of the graph to serve; without it, every request brings its own graph."),
    ] = None,
    edges: EdgesFile = None,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
    most_bytes: Annotated[int, typer.Option(help="Maximum size of a request, in bytes.", min=1024)] = 16 * 2**20,
    device: Device = "auto",
) -> None:
    """Serve predictions over HTTP from a model saved by `sharpen fit`.

    POST /predict takes nodes that are new to the graph or have changed, and
    returns their labels and probabilities. Requests are not stored. /docs is an
    interactive description (its script comes from a CDN), /openapi.json the schema.

    There is no authentication: before listening on any other address than this
    machine's own, put a proxy with authentication and TLS in front.
    """
    try:
        import uvicorn

        from sharpen.serving.server import LOOPBACK, Served, make_app
    except ModuleNotFoundError as error:
        what = f"serve needs {error.name}, which is not installed"
        raise InputError(what, hint="run: pip install 'graph-sharpen[serve]'") from None
    from sharpen.prediction import Predictor

    if edges is not None and nodes is None:
        raise InputError("edges are given without nodes; give both, or neither")
    served = Served.open(Predictor.load(model, device), nodes, edges)
    hosts = LOOPBACK if host in LOOPBACK else ("*",)
    typer.echo(
        f"Listening on http://{host}:{port}, documented at http://{host}:{port}/docs; press Ctrl-C to stop.", err=True
    )
    uvicorn.run(
        make_app(served, most_bytes=most_bytes, hosts=hosts),
        host=host,
        port=port,
        log_level="warning",
        limit_concurrency=1000,
        timeout_keep_alive=5,
    )
