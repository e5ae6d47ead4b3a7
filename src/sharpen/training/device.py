"""Where and in which arithmetic to compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
        raise InputError(f"device is {name!r}; choose auto, cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device is {name!r}; choose auto, cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "device is 'cuda', but torch finds no usable GPU; use --device cpu, or install a CUDA build of torch"
        )
    return device


def describe_device(device: torch.device) -> str:
    """The device's name as people know it."""
    return "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)


@contextmanager
def arithmetic(precision: str, device: torch.device) -> Iterator[torch.dtype]:
    """Sets how float32 matrix products are computed, for the time of the block, and gives the type to compute in.

    >>> with arithmetic("float64", torch.device("cpu")) as dtype:
    ...     dtype
    torch.float64
    """
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}; choose one of {', '.join(PRECISIONS)}")
    if precision == "tf32" and device.type != "cuda":
        raise InputError("precision 'tf32' exists on GPUs only; use float32 on the CPU")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield torch.float64 if precision == "float64" else torch.float32
    finally:
        torch.set_float32_matmul_precision(before)


def free_memory(device: torch.device) -> int:
    """Bytes that can be allocated now."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        reserved_but_free = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + reserved_but_free
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            available = next(line for line in lines if line.startswith("MemAvailable"))
        return int(available.split()[1]) * 1024
    except (OSError, StopIteration):  # not Linux: half of what the machine has
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 2**32
