"""Reaching a Ray cluster: one that runs already, or one that is started for the time of a call and that nobody else can reach."""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from sharpen.cluster.leftovers import watched_folder
from sharpen.errors import InputError

HERE = "here"
# Despite its name, what decides on every system whether Ray uses the loopback interface only; Ray reads it on import.
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def check_place(on: str) -> None:
    """Refuses what is neither ``here`` nor ``ray`` nor the address of a Ray cluster.

    >>> check_place("ray://head.example:10001")
    >>> check_place("spark")
    Traceback (most recent call last):
    sharpen.errors.InputError: on is 'spark'; give here (this process), ray, or ray://HOST:PORT
    """
    host, _, port = on.removeprefix("ray://").rpartition(":")
    if on not in (HERE, "ray") and not (on.startswith("ray://") and host and port.isdecimal()):
        raise InputError(f"is {on!r}; give here (this process), ray, or ray://HOST:PORT", field="on")


@contextmanager
def connected(on: str, say: Callable[[str], None] = lambda line: None) -> Iterator[None]:
    """Is connected to a Ray cluster for the time of the block.

    A connection that this process has already is used, and left as it is.

    Args:
        on: ``ray``: the cluster that ``RAY_ADDRESS`` names, else one that is started on this machine, listens on the loopback
            interface only, asks for a token that nobody else knows, has no dashboard, and ends with the block; or
            ``ray://HOST:PORT``: the cluster whose client server listens there.
        say: Is given a line if the cluster is open to anybody who can reach it.
    """
    check_place(on)
    address = on if on != "ray" else os.environ.get("RAY_ADDRESS", "")
    address = "" if address == "local" else address  # Ray's word for a cluster of one's own
    before = "ray" in sys.modules and _LOOPBACK not in os.environ and not _imported
    with _environment({} if address else _private_variables()):
        ray = _import_ray()
        if ray.is_initialized():
            yield
            return
        if not address and before:
            raise _reachable(f"ray was imported before, without {_LOOPBACK}=0")
        with _joined(ray, address) if address else _started(ray):
            if address and os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
                say(
                    "This Ray cluster asks for no token: whoever reaches it can run code on its machines. "
                    "Start it with RAY_AUTH_MODE=token to fix that."
                )
            yield


# Whether Ray was imported here first, with the variables of a private cluster.
_imported: list[bool] = []


def _import_ray() -> Any:
    private = "ray" not in sys.modules and os.environ.get(_LOOPBACK) == "0"
    try:
        import ray
    except ImportError as error:
        raise InputError(f'needs the package ray ({error}); pip install "graph-sharpen[ray]"', field="on") from error
    if private:
        _imported.append(True)
    return ray


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    _check_listener(address)
    for last in (False, True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what goes wrong is said once, below
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            break
        except Exception as error:  # Ray raises many kinds, also plain RuntimeError and grpc's own
            # A client server starts a process of its own for every client, which now and then fails.
            if last or not address.startswith("ray://"):
                raise _unreachable(address, str(error).strip() or type(error).__name__) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_listener(address: str) -> None:
    """Refuses an address at which nobody listens: Ray would try for a minute, and then end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError as error:
            raise _unreachable(address, error.strerror or str(error)) from None


def _reachable(what: str) -> InputError:
    return InputError(
        f"{what}, so that other machines could reach a cluster that is started here; set {_LOOPBACK}=0 before ray is imported. If "
        "others are meant to reach it, call ray.init() yourself before, or name a running cluster in RAY_ADDRESS"
    )


def _unreachable(address: str, reason: str) -> InputError:
    return InputError(
        f"cannot connect to the Ray cluster at {address} ({reason.splitlines()[0]}); is it running, with the same versions of "
        "ray and Python, and is its token in RAY_AUTH_TOKEN?"
    )


@contextmanager
def _started(ray: Any) -> Iterator[None]:
    # Ray opens the folder that it is given to every user of the machine; the one around it stays closed.
    with watched_folder() as folder:
        quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(address="local", _temp_dir=str(folder / "ray"), **quiet)
        try:
            # By Ray's own word, and not by what was asked for: other versions may understand something else by it.
            addresses = [node["NodeManagerAddress"] for node in ray.nodes()]
            if not all(ipaddress.ip_address(address).is_loopback for address in addresses):
                raise _reachable(f"Ray listens on {addresses[0]}")
            yield
        finally:
            ray.shutdown()


def _private_variables() -> dict[str, str]:
    """Environment variables for a cluster of our own; what the user has set is respected."""
    # RAY_AUTH_MODE is left to Ray, which sets it to token for a cluster that it starts, also where it was imported before.
    variables = {_LOOPBACK: "0", "RAY_USAGE_STATS_ENABLED": "0"}
    if "RAY_AUTH_TOKEN" not in os.environ and "RAY_AUTH_TOKEN_PATH" not in os.environ:
        # In the environment of our own processes, and not in a file, where Ray would put it for all to read.
        variables["RAY_AUTH_TOKEN"] = _token()
    return {name: value for name, value in variables.items() if name not in os.environ}


@cache
def _token() -> str:
    """One for this process: Ray looks at it once."""
    return secrets.token_hex(32)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """With variables that were not there before; afterwards without them, and without what Ray has added for its own."""
    ours = {*variables, "RAY_AUTH_MODE"} - os.environ.keys()
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)
