"""Class proportions that someone knows or assumes of a graph: how they are written, checked, and turned into numbers.

A prior is written as one of three words, or as numbers in the order of the classes:

===============  ======================================================================================================
``uniform``      all classes alike
``labels``       as among the training labels: right where the labeled nodes are a random sample of all nodes
``oracle``       as among all labels of a benchmark, test labels included: what somebody knows who knows them; for studies
``0.85,0.15``    shares above 0 that sum to 1, one for each class
===============  ======================================================================================================
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sharpen.errors import InputError, did_you_mean

_WORDS = ("uniform", "labels", "oracle")
_CLASSES = "class_prior"  # what users call a prior by classes
# Shares that people round to three digits still sum to 1 within this.
_SLACK = 1e-3


def canonical_prior(given: Any, name: str = "prior") -> str | None:
    """A prior as one text: a word, or the shares with commas between them; refuses what cannot be one.

    >>> canonical_prior([0.85, 0.15]), canonical_prior("0.85, 0.150"), canonical_prior("labels"), canonical_prior(None)
    ('0.85,0.15', '0.85,0.15', 'labels', None)
    >>> canonical_prior([0.85, 0.25])
    Traceback (most recent call last):
    sharpen.errors.InputError: prior sums to 1.1; give shares that sum to 1
    """
    if given is None or (isinstance(given, str) and given in _WORDS):
        return given
    expected = f"{', '.join(_WORDS)}, or one share for each class, such as 0.85,0.15"
    try:
        shares = [float(part) for part in (given.split(",") if isinstance(given, str) else given)]
    except (TypeError, ValueError):
        near = did_you_mean(given, _WORDS)
        raise InputError(f"is {given!r}; {near}{'Give' if near else 'give'} {expected}", field=name) from None
    for place, share in enumerate(shares):
        if not math.isfinite(share) or share <= 0:
            way_out = "give every class a share above 0, a small one if it is rare"
            raise InputError(f"is {share:g} for class {place}", field=name, hint=way_out)
    if abs(sum(shares) - 1) > _SLACK or not shares:
        raise InputError(f"sums to {sum(shares):.4g}; give shares that sum to 1", field=name)
    return ",".join(f"{share:.12g}" for share in shares)


def check_prior(prior: str | None, num_classes: int, where: str) -> None:
    """Refuses a canonical prior that does not have one share for each class.

    >>> check_prior("0.85,0.15", 3, "cora")
    Traceback (most recent call last):
    sharpen.errors.InputError: prior has 2 shares, but cora has 3 classes; give one share for each class
    """
    shares = _num_shares(prior)
    if shares not in (0, num_classes):
        why = f"has {shares} share{'s' * (shares > 1)}, but {where} has {num_classes} classes"
        raise InputError(why, field="prior", hint="give one share for each class")


def _num_shares(prior: str | None) -> int:
    """Of a canonical prior; 0 of none and of a word, which fit any number of classes."""
    return 0 if prior is None or prior in _WORDS else prior.count(",") + 1


def proportions(prior: str, num_classes: int, labels: ArrayLike, every_label: ArrayLike) -> list[float]:
    """The share of every class, above 0 and summing to 1, that a canonical prior stands for.

    Args:
        prior: As :func:`canonical_prior` gives it.
        labels: The training labels, for ``labels``. One is added to the count of each class (Laplace), so that none is ruled out.
        every_label: All labels of the graph, for ``oracle``; likewise.

    >>> proportions("labels", 2, [0, 0, 1], []), proportions("uniform", 4, [], [])
    ([0.6, 0.4], [0.25, 0.25, 0.25, 0.25])
    """
    if prior == "uniform":
        return [1 / num_classes] * num_classes
    if prior in _WORDS:
        known = np.asarray(labels if prior == "labels" else every_label)
        shares = np.bincount(known[known >= 0].astype(np.int64), minlength=num_classes) + 1.0
    else:
        shares = np.array([float(part) for part in prior.split(",")])
    return (shares / shares.sum()).tolist()


def prior_by_class(given: Any, class_names: Sequence[str]) -> str | None:
    """The canonical prior of a graph whose classes have names.

    Args:
        given: A word; shares by class name, as a mapping or as ``gop=0.85,dem=0.15``; shares in the order of the classes; a file
            with a row ``class,share`` for each class; or None.

    >>> prior_by_class("gop=0.85,dem=0.15", ["dem", "gop"]), prior_by_class({"dem": 0.2, "gop": 0.8}, ["dem", "gop"])
    ('0.15,0.85', '0.2,0.8')
    >>> prior_by_class("gop=1", ["dem", "gop"])
    Traceback (most recent call last):
    sharpen.errors.InputError: class_prior has no share for class 'dem'; give one for each of dem, gop
    """
    if given is None or (isinstance(given, str) and given in _WORDS):
        return None if given is None else str(given)
    if isinstance(given, str) and "=" in given:
        given = _pairs([part.rsplit("=", 1) for part in given.split(",")], given)
    elif isinstance(given, os.PathLike) or (isinstance(given, str) and _is_path(given)):
        given = _read(Path(given))
    if isinstance(given, Mapping):
        shares = {str(key): value for key, value in given.items()}
        names = [str(each) for each in class_names]
        every = ", ".join(names)
        for unknown in [key for key in shares if key not in names]:
            way_out = f"{did_you_mean(unknown, names)}there are {every}"
            raise InputError(f"has a share for {unknown!r}, which is no class", field=_CLASSES, hint=way_out)
        for missing in [each for each in names if each not in shares]:
            raise InputError(f"has no share for class {missing!r}; give one for each of {every}", field=_CLASSES)
        given = [shares[each] for each in names]
    found = canonical_prior(given, _CLASSES)
    if _num_shares(found) not in (0, len(class_names)):
        why = f"has {_num_shares(found)} shares, but there are {len(class_names)} classes"
        raise InputError(why, field=_CLASSES, hint=f"give them by name, such as {class_names[0]}=0.85")
    return found


def _is_path(text: str) -> bool:
    return os.path.isfile(text) or text.lower().endswith((".csv", ".tsv", ".txt"))


def _pairs(rows: Sequence[Sequence[str]], given: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        if len(row) != 2:
            raise InputError(f"is {given!r}; give a share for each class, such as gop=0.85,dem=0.15", field=_CLASSES)
        key = row[0].strip()
        if key in found:
            raise InputError(f"has two shares for class {key!r}; give one for each class", field=_CLASSES)
        found[key] = row[1].strip()
    return found


def _read(path: Path) -> dict[str, str]:
    """The shares in a file of two columns, class and share, with or without a line of headings."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"names the file {path}, which cannot be read ({why}); give another", field=_CLASSES) from None
    rows = [row for row in csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ",") if any(row)]
    if rows and len(rows[0]) == 2 and not _is_number(rows[0][1]):
        rows = rows[1:]
    return _pairs(rows, str(path))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
