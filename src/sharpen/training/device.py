"""Where and in which arithmetic to compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from sharpen.errors import InputError

PRECISIONS = ("float32", "tf32", "float64")


def resolve_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is a GPU if there is one.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"is {name!r}; choose auto, cpu or cuda", field="device")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "is 'cuda', but torch finds no usable GPU; choose cpu, or install a CUDA build of torch", field="device"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"is {name!r}, but there are {torch.cuda.device_count()} GPUs, counted from cuda:0", field="device"
        )
    return device


def describe_device(device: torch.device) -> str:
    """The device's name as people know it."""
    return "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)


def check_precision(precision: str, kind: str) -> None:
    """Refuses a precision that a kind of device, ``cpu`` or ``cuda``, does not know.

    >>> check_precision("tf32", "cuda")
    """
    if precision not in PRECISIONS:
        raise InputError(f"is {precision!r}; choose one of {', '.join(PRECISIONS)}", field="precision")
    if precision == "tf32" and kind != "cuda":
        raise InputError("precision 'tf32' exists on GPUs only; use float32 on the CPU")


def arithmetic_type(precision: str) -> torch.dtype:
    """The type that a precision computes in.

    >>> arithmetic_type("tf32")
    torch.float32
    """
    return torch.float64 if precision == "float64" else torch.float32


@contextmanager
def arithmetic(precision: str, device: torch.device) -> Iterator[torch.dtype]:
    """Sets the current GPU and how float32 products are computed, for the time of the block; gives the type to compute in.

    >>> with arithmetic("float64", torch.device("cpu")) as dtype:
    ...     dtype
    torch.float64
    """
    check_precision(precision, device.type)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    here = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    try:
        with here:  # kernels are launched on the current GPU
            yield arithmetic_type(precision)
    finally:
        torch.set_float32_matmul_precision(before)


def free_memory(device: torch.device) -> int:
    """Bytes that can be allocated now on a GPU."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def keep_freed_memory(device: torch.device) -> None:
    """Lets a CPU's memory be reused rather than returned and fetched again, page by page, in every epoch.

    The GNU C library returns freed memory to the system beyond a limit of twice the largest block that was ever freed, up to
    32 MiB: so one such block is taken and freed, unused. Elsewhere this has no effect.
    """
    if device.type == "cpu":
        torch.empty(2**25 - 2**16, dtype=torch.uint8)
