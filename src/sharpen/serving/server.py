"""The HTTP interface: one model, optionally the graph it serves, and a limit on everything that a request can ask for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import Message, Receive, Scope, Send

from sharpen.errors import InputError, Problems
from sharpen.files.edges import edge_ends
from sharpen.files.ids import id_keys
from sharpen.files.source import assembled, read_tables
from sharpen.files.table import DataTable
from sharpen.prediction import Predictor
from sharpen.serving.merge import merged_edges, merged_nodes

MOST_BYTES, MOST_NODES, MOST_EDGES = 16 * 2**20, 20_000, 200_000
_NO_OBJECT = "the request is not one JSON object sent as application/json"
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")

_Cell = str | bool | int | float | list[float] | None
_Row = dict[str, _Cell]


_EXAMPLE: Any = {"nodes": [{"id": "new", "age": 31}], "edges": [{"source": "new", "target": "a"}]}


class Asked(BaseModel):
    """Nodes to label, by column; one with a known id changes the columns it names, for this request alone."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})
    nodes: Annotated[list[_Row], Field(min_length=1, description="A row for each node: its id, and other columns.")]
    edges: Annotated[list[_Row], Field(description="Edges beside those that are served: source and target.")] = []
    every_class: Annotated[bool, Field(description="Whether to give the probability of each class.")] = False
    abstain: Annotated[float | None, Field(ge=0, le=1, description="Leave the label null below this probability.")] = (
        None
    )


class Answer(BaseModel):
    """One node."""

    id: str
    label: str | None
    probability: float
    second: str
    margin: float
    entropy: float
    probabilities: dict[str, float] | None = None


class Answers(BaseModel):
    """The nodes that were asked about, in the order of the request, and what the asker should know."""

    predictions: list[Answer]
    notes: list[str]


@dataclass(frozen=True)
class Served:
    """A model, and the tables of the graph that it serves."""

    predictor: Predictor
    nodes: DataTable | None  # None: every request brings its own
    edges: DataTable | None
    id_column: str
    ends: tuple[str, str]  # what the two ends of an edge are called
    _known: list[tuple[pd.DataFrame, list[str]]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def open(cls, predictor: Predictor, nodes: Path | str | None = None, edges: Path | str | None = None) -> Served:
        """Reads the files of a graph, if there are any, and tries them."""
        if nodes is None:
            id_column, *ends = (predictor.columns.get(name) or name for name in ("id", "source", "target"))
            return cls(predictor, None, None, id_column, (ends[0], ends[1]))
        tables = predictor.read(nodes, edges)
        with Problems() as problems:
            files = read_tables(nodes, edges, predictor.meaning(), problems)
        if files.whole is not None:
            raise InputError(f"{nodes} holds a whole graph; serve takes a table of nodes and one of edges")
        id_column, source, target = str(tables.id_column), "source", "target"
        if files.edges is not None:
            source, target, _ = edge_ends(files.edges, predictor.meaning(), id_keys(files.nodes, id_column))
        return cls(predictor, files.nodes, files.edges, id_column, (source, target))

    def answer(self, asked: Asked) -> Answers:
        """Predictions for the nodes of one request."""
        if len(asked.nodes) > MOST_NODES or len(asked.edges) > MOST_EDGES:
            way_out = f"give at most {MOST_NODES:,} and {MOST_EDGES:,}, or use sharpen predict"
            what = f"{len(asked.nodes):,} nodes and {len(asked.edges):,} edges are too many for one request"
            raise InputError(what, hint=way_out)
        nodes, rows = merged_nodes(self.nodes, asked.nodes, self.id_column)
        if self.nodes is None or asked.edges or any(set(row) != {self.id_column} for row in asked.nodes):
            frame, notes = self._predicted(nodes, asked.edges)
        elif nodes.columns.num_rows > self.nodes.columns.num_rows:  # new ones, of which nothing is known
            frame, notes = self._predicted(nodes, [])
        else:  # the graph as it is, whose predictions are the same each time
            if not self._known:
                self._known.append(self._predicted(self.nodes, []))
            frame, notes = self._known[0]
        prefix, found = "probability of ", []
        records: list[dict[str, Any]] = frame.iloc[rows].to_dict("records")  # type: ignore[assignment]
        for record in records:
            each = {name.removeprefix(prefix): record[name] for name in record if name.startswith(prefix)}
            plain = {name: value for name, value in record.items() if not name.startswith(prefix) and name != "labeled"}
            if asked.abstain is not None and record["probability"] < asked.abstain:
                plain["label"] = None
            found.append(Answer(**plain, probabilities=each if asked.every_class else None))
        return Answers(predictions=found, notes=notes)

    def _predicted(self, nodes: DataTable, more: list[_Row]) -> tuple[pd.DataFrame, list[str]]:
        """What is said of every node of a graph, with the probability of each class, and what the asker should know."""
        edges = merged_edges(self.edges, more, self.ends)
        columns = replace(self.predictor.meaning(), id=self.id_column, source=self.ends[0], target=self.ends[1])
        if columns.label is not None and columns.label not in nodes.names:
            columns = replace(columns, label="")
        notes: list[str] = []
        with Problems() as problems:
            tables = assembled(nodes, edges, columns, problems)
        frame = self.predictor.predict(tables, notes, every_class=True)
        return frame, [*(note for note in tables.guesses if "left out" in note), *notes]


def make_app(served: Served, *, most_bytes: int = MOST_BYTES, hosts: tuple[str, ...] = LOOPBACK) -> FastAPI:
    """The application; by a name of ``hosts`` only, so that no web page can have a browser call it by another."""
    app = FastAPI(
        title="sharpen serve",
        description="Labels for nodes that are new to a graph or have changed, with calibrated probabilities.",
        version="1",
    )
    one_at_a_time = threading.Lock()  # torch uses all cores for one; and the memory of one prediction is known

    @app.get("/", summary="What is served")
    def describe() -> dict[str, Any]:
        return {
            "model": served.predictor.name,
            "classes": served.predictor.classes,
            "nodes": 0 if served.nodes is None else served.nodes.columns.num_rows,
            "edges": 0 if served.edges is None else served.edges.columns.num_rows,
            "columns": served.predictor.encoder.describe(),
            "id": served.id_column,
            "most_bytes": most_bytes,
        }

    @app.get("/health", summary="Whether it is up")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/predict", summary="Label nodes that are new or have changed")
    def predict(asked: Asked) -> Answers:
        with one_at_a_time:
            return served.answer(asked)

    @app.exception_handler(InputError)
    def refused(request: Request, error: InputError) -> JSONResponse:
        return _error(str(error), 422)

    @app.exception_handler(UnicodeEncodeError)
    def halved(request: Request, error: UnicodeEncodeError) -> JSONResponse:
        return _error(
            f"the request holds {error.object[error.start]!r}, half of a character; write whole characters", 422
        )

    @app.exception_handler(Exception)
    def unforeseen(request: Request, error: Exception) -> JSONResponse:
        return _error(f"this request ran into a fault of the server ({type(error).__name__}), which its log names", 500)

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        what = f"{where}: {first['msg']}"
        if not where or first["type"] == "json_invalid":
            what = _NO_OBJECT
        return _error(f"{what}; see /docs", 422)

    @app.exception_handler(HTTPException)
    def failed(request: Request, error: HTTPException) -> JSONResponse:
        unread = error.status_code == 400  # bytes that are no text, numbers or lists beyond what a parser takes
        return _error(f"{_NO_OBJECT}; see /docs" if unread else str(error.detail), error.status_code)

    app.add_middleware(_Limited, most_bytes=most_bytes)
    if "*" not in hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return app


def _error(text: str, status: int) -> JSONResponse:
    """An error as JSON, whatever characters it quotes."""
    return JSONResponse({"error": text.encode("utf-8", "backslashreplace").decode("utf-8")}, status_code=status)


class _Limited:
    """Refuses a request as soon as it is larger than it may be, whatever length it claims."""

    def __init__(self, app: Any, most_bytes: int) -> None:
        self.app, self.most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        messages, size = [], 0
        while True:  # the body is read before it is parsed, so that the answer can still say that it is too large
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self.most_bytes:
                error = f"the request is larger than {self.most_bytes:,} bytes; give fewer nodes at once, or use sharpen predict"
                await _error(error, 413)(scope, receive, send)
                return
            if message["type"] != "http.request" or not message.get("more_body", False):
                break
        remaining = iter(messages)

        async def again() -> Message:
            return next(remaining, None) or await receive()

        await self.app(scope, again, send)
