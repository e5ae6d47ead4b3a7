"""``sharpen serve``: predictions over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from sharpen.cli.options import Device, EdgesFile
from sharpen.errors import InputError


def serve(
    model: Annotated[Path, typer.Argument(help="model.safetensors, from `sharpen fit`.")],
    nodes: Annotated[
        Path | None, typer.Argument(help="Table of nodes of the graph to serve; none: requests bring theirs.")
    ] = None,
    edges: EdgesFile = None,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
    most_bytes: Annotated[int, typer.Option(help="Refuse larger requests.", min=1024)] = 16 * 2**20,
    device: Device = "auto",
) -> None:
    """Answer predictions over HTTP with a model that `sharpen fit` saved.

    POST /predict takes nodes that are new to the graph or have changed, and answers with their labels and probabilities; nothing
    is kept of a request. /docs describes it and lets you try (it fetches its script from a CDN), /openapi.json is for programs.
    There are no passwords: on an address other than this machine's own, put a server in front that asks for them.
    """
    try:
        import uvicorn

        from sharpen.serving.server import LOOPBACK, Served, make_app
    except ModuleNotFoundError as error:
        raise InputError(
            f"serve needs {error.name}, which is not installed; run: pip install 'graph-sharpen[serve]'"
        ) from None
    from sharpen.prediction import Predictor

    if edges is not None and nodes is None:
        raise InputError("edges are given without nodes; give both, or neither")
    served = Served.open(
        Predictor.load(model, device), None if nodes is None else str(nodes), None if edges is None else str(edges)
    )
    hosts = LOOPBACK if host in LOOPBACK else ("*",)
    typer.echo(f"Listening on http://{host}:{port}, described at http://{host}:{port}/docs; Ctrl-C stops.", err=True)
    uvicorn.run(
        make_app(served, most_bytes=most_bytes, hosts=hosts),
        host=host,
        port=port,
        log_level="warning",
        limit_concurrency=1000,
        timeout_keep_alive=5,
    )
