"""From a YAML file to a study: every key and value checked, and named with its place where it cannot be used."""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from sharpen.errors import InputError
from sharpen.models.registry import MODELS, check_model
from sharpen.models.zoo.settings import settings_of
from sharpen.paper import published_tables
from sharpen.studies.field_values import Relative, Value, fields_of, limited, values_of
from sharpen.studies.own_graphs import dataset_names, known_as
from sharpen.studies.protocol import known_protocol, one_of
from sharpen.studies.spec import Contrast, Study, Variant
from sharpen.studies.tuning import CHOSEN, chosen
from sharpen.studies.yaml_source import Source, Where, read, shown
from sharpen.trial import Trial

# In the order of the paper.
PAPER_STUDIES = (
    "main", "main-five", "lambda-curves", "universal", "labeled-term", "offset", "entropy-order", "meta-lambda",
    "entropy-dynamics", "arxiv", "retune", "retune-nine", "test-only", "comparison",
)  # fmt: skip
# Our own, in the order of their findings.
_OWN_STUDIES = (
    "label-rates",
    "label-rates-small",
    "label-rates-layer-norm",
    "field-tuning",
    "field",
    "field-published",
)
_STUDIES = (*PAPER_STUDIES, *_OWN_STUDIES)
KEYS = (
    "title", "about", "leaves_open", "published", "published_runs", "datasets", "models", "protocols", "runs",
    "traces", "trial", "variants", "baseline", "choose", "compare", "skip", "reads",
)  # fmt: skip
# What a study may say that only shows the records of another.
_READING = ("title", "about", "leaves_open", "published", "datasets", "models", "protocols", "reads")
# The published table that others' scores are in.
_RANKED = "comparison"
_MOST_RUNS = 10_000
_MOST_TRIALS = 200_000
_USUAL_RUNS = 10


def list_studies() -> list[Study]:
    """The paper's tables and figures, in its order.

    >>> [study.name for study in list_studies()][:3]
    ['main', 'main-five', 'lambda-curves']
    """
    return [_included(name) for name in PAPER_STUDIES]


def own_studies() -> list[Study]:
    """Studies beyond the paper that come with the package.

    >>> [study.name for study in own_studies()]
    ['label-rates', 'label-rates-small', 'label-rates-layer-norm', 'field-tuning', 'field', 'field-published']
    """
    return [_included(name) for name in _OWN_STUDIES]


def load_study(name_or_path: str | Path) -> Study:
    """A study that is included, by its name; or your own, by the path of its YAML file.

    >>> load_study("universal").title
    'One λ for all'
    >>> load_study("univesal")
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no study 'univesal'; did you mean 'universal'? There are main, ...
    """
    text, path = str(name_or_path), Path(name_or_path)
    named = isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text or "\\" in text
    if named or (text not in _STUDIES and path.exists()):
        return _study(path.stem, read(path))
    if text not in _STUDIES and (own := Path(f"{text}.yaml")).is_file():
        raise InputError(f"there is no study {text!r}, but there is a file {own}; give that name")
    return _included(one_of("study", text, _STUDIES))


def each_once(studies: Iterable[Study]) -> list[Study]:
    """The studies, those that are the same once; an error if two different ones have one name, which their files would share.

    >>> [study.name for study in each_once([load_study("main"), load_study("arxiv"), load_study("main")])]
    ['main', 'arxiv']
    """
    found: dict[str, Study] = {}
    for study in studies:
        if found.setdefault(study.name, study) != study:
            raise InputError(f"two different studies are called {study.name!r}; rename one of the files")
    return list(found.values())


@cache
def _included(name: str) -> Study:
    folder = "paper" if name in PAPER_STUDIES else "own"
    with as_file(files("sharpen.studies").joinpath(folder, f"{name}.yaml")) as path:
        return _study(name, read(path))


def _study(name: str, source: Source) -> Study:
    content = source.content
    source.keys((), content, KEYS)
    reads = content.get("reads")
    if reads is not None:
        _check_reading(source)
    needed = ("title", "datasets", "models") + (() if reads is not None else ("variants", "baseline"))
    for key in needed:
        if key not in content:
            raise InputError(f"{source.name}: the key {key!r} is missing; add it, as in the studies of the paper")
    variants = {v.name: v for v in _variants(source)}
    baseline = content.get("baseline")
    if variants:
        source.one_of(("baseline",), "variant", baseline, tuple(variants))
    choose = _choices(source, variants)
    datasets = dataset_names(source, ("datasets",), content["datasets"])
    if content["models"] == "field":
        models = tuple(name for name in MODELS if settings_of(name) is not None)
    else:
        models = source.words(("models",), content["models"], None, "model")
    for index, model in enumerate(models):
        check_model(model, where=source.place(("models", index)))
    texts = ("title", "about", "leaves_open")
    title, about, open_ = (source.text((key,), content[key]) if key in content else "" for key in texts)
    published = content.get("published")
    if published is not None:
        source.one_of(("published",), "published table", published, published_tables())
    study = Study(
        name=name,
        title=title,
        about=about,
        leaves_open=open_,
        published=published,
        published_runs=_published_runs(source),
        datasets=datasets,
        models=models,
        protocols=_protocols(source),
        runs=_runs(source, datasets),
        traces=source.flag(("traces",), content.get("traces", False)),
        variants=variants,
        baseline=baseline,
        choose=choose,
        compare=_contrasts(source, (*variants, *choose)),
        skip=_skipped(source, datasets, models) | _not_tuned(variants, datasets, models),
        reads=reads,
    )
    _check_extent(study, source)
    _try_every_cell(study, source)
    _check_different(study, source)
    return study


def _protocols(source: Source) -> tuple[str, ...]:
    names = source.words(("protocols",), source.content.get("protocols", ["paper", "paired"]), None, "protocol")
    return tuple(known_protocol(name, where=source.place(("protocols", index))) for index, name in enumerate(names))


def _check_reading(source: Source) -> None:
    """Whether a study that shows the records of another says nothing that would have no effect, and can show something."""
    where: Where = ("reads",)
    name = source.one_of(where, "study", source.content["reads"], PAPER_STUDIES)
    for key in source.content:
        if key not in _READING:
            problem = f"{key!r} has no effect beside reads, which shows the records of {name}; leave one of the two out"
            raise source.fail((key,), problem)
    if source.content.get("published", _RANKED) != _RANKED:
        raise source.fail(("published",), f"a study that reads another ranks the published table {_RANKED}; name that")
    shown = _included(name)
    if not shown.choose or shown.variants[shown.baseline or ""].fields.get("lam") != 0:
        raise source.fail(where, f"{name} has not both plain training and a choice by validation to rank; read main")


def _variants(source: Source) -> Iterator[Variant]:
    shared: dict[str, Value] = {}
    for field, value in fields_of(source, ("trial",), source.content.get("trial", {})).items():
        values = limited(source, ("trial", field), values_of(source, ("trial", field), field, value))
        if len(values) != 1:
            problem = f"{field} has {len(values)} values; what all variants share has one"
            raise source.fail(("trial", field), problem)
        shared[field] = values[0][1]
    seen: set[str] = set()
    for template, given in source.mapping(("variants",), source.content.get("variants", {})).items():
        where: Where = ("variants", template)
        spread = {
            field: limited(source, (*where, field), values_of(source, (*where, field), field, value))
            for field, value in fields_of(source, where, given).items()
        }
        limited(source, where, range(len(seen) + math.prod(map(len, spread.values()))))
        for slot in re.findall(r"\{(.*?)\}", template):
            source.one_of(where, "field", slot, tuple(spread))
        for combination in itertools.product(*spread.values()):
            picked = dict(zip(spread, combination, strict=True))
            name = re.sub(r"\{(.*?)\}", lambda slot: picked[slot[1]][0], template)  # noqa: B023  # used at once
            if name in seen:
                several = [field for field, values in spread.items() if len(values) > 1]
                nameless = [field for field in several if f"{{{field}}}" not in template]
                way = f"give every value of {several[0]} once" if several else "give every variant its own name"
                way = f"write {{{nameless[0]}}} into its name" if nameless else way
                raise source.fail(where, f"two variants are called {name!r}; {way}")
            seen.add(name)
            yield Variant(name, shared | {field: value for field, (_, value) in picked.items()}, template)


def _count(source: Source, where: Where, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= _MOST_RUNS:
        raise source.fail(where, f"{where[-1]} is {shown(given)}; give a whole number from 1 to {_MOST_RUNS:,}")
    return given


def _runs(source: Source, datasets: tuple[str, ...]) -> dict[str, int]:
    """One number for all datasets, or one for some of them; the others have as many as the protocol says."""
    where: Where = ("runs",)
    given = source.content.get("runs", {})
    if not isinstance(given, dict):
        return dict.fromkeys(datasets, _count(source, where, given))
    source.keys(where, given, datasets, "dataset")
    return {dataset: _count(source, (*where, dataset), count) for dataset, count in given.items()}


def _published_runs(source: Source) -> dict[str, int]:
    """One number for all models, or one for some of them."""
    where: Where = ("published_runs",)
    given = source.content.get("published_runs", {})
    if not isinstance(given, dict):
        return dict.fromkeys(MODELS, _count(source, where, given))
    source.keys(where, given, MODELS, "model")
    return {model: _count(source, (*where, model), count) for model, count in given.items()}


def _choices(source: Source, variants: Mapping[str, Variant]) -> dict[str, tuple[str, ...]]:
    choices = {}
    for name, given in source.mapping(("choose",), source.content.get("choose", {})).items():
        if name in variants:
            raise source.fail(("choose", name), f"{name!r} is a variant already; give the choice its own name")
        patterns = source.words(("choose", name), given, None, "baseline")
        found: dict[str, None] = {}
        for index, pattern in enumerate(patterns):
            found |= dict.fromkeys(_matches(source, ("choose", name, index), pattern, tuple(variants)))
        choices[name] = tuple(found)
    return choices


def _contrasts(source: Source, names: tuple[str, ...]) -> tuple[Contrast, ...]:
    lines = source.content.get("compare", [])
    if not isinstance(lines, list):
        raise source.fail(("compare",), f"compare is {shown(lines)}; give a list of lines like 'ts-0.25 - baseline'")
    contrasts: dict[Contrast, None] = {}
    for index, line in enumerate(lines):
        where: Where = ("compare", index)
        sides = line.split(" - ") if isinstance(line, str) else []
        if len(sides) != 2:
            raise source.fail(where, f"{shown(line)} does not name two variants; write it like 'ts-0.25 - baseline'")
        against = source.one_of(where, "variant", sides[1].strip(), names)
        first = [name for name in _matches(source, where, sides[0].strip(), names) if name != against]
        if not first:
            raise source.fail(where, f"{line!r} compares {against!r} with itself; name two variants")
        for contrast in (Contrast(name, against) for name in first):
            if contrast in contrasts:
                raise source.fail(where, f"{contrast.name!r} is compared twice; leave it out in one of the lines")
            contrasts[contrast] = None
        limited(source, where, contrasts)
    return tuple(contrasts)


def _matches(source: Source, where: Where, pattern: str, names: tuple[str, ...]) -> list[str]:
    if "*" not in pattern:
        return [source.one_of(where, "variant", pattern, names)]
    found = fnmatch.filter(names, pattern)
    if not found:
        raise source.fail(where, f"no variant is like {pattern!r}; there are {', '.join(names[:12])}")
    return found


def _skipped(source: Source, datasets: tuple[str, ...], models: tuple[str, ...]) -> dict[tuple[str, str], str]:
    given = source.content.get("skip", [])
    if not isinstance(given, list):
        raise source.fail(("skip",), "give a list of cells, each like {dataset: cs, model: gat, reason: …}")
    skipped: dict[tuple[str, str], str] = {}
    for index, entry in enumerate(given):
        where: Where = ("skip", index)
        cell = source.mapping(where, entry)
        source.keys(where, cell, ("dataset", "model", "reason"))
        if len(cell) < 3:
            raise source.fail(where, "a cell that is left out has a dataset, a model and a reason; give all three")
        try:
            dataset = known_as(str(cell["dataset"]))
        except InputError as error:
            raise source.fail(where, str(error)) from None
        model = check_model(cell["model"], where=source.place(where))
        if dataset not in datasets or model not in models:
            problem = f"the study has no cell {dataset} {model} to leave out; fix it, or remove this entry"
            raise source.fail(where, problem)
        if (dataset, model) in skipped:
            raise source.fail(where, f"{dataset} {model} is left out twice; remove one of the entries")
        skipped[dataset, model] = source.text((*where, "reason"), cell["reason"])
    return skipped


def _not_tuned(
    variants: Mapping[str, Variant], datasets: tuple[str, ...], models: tuple[str, ...]
) -> dict[tuple[str, str], str]:
    """The cells that wait for a choice of their configuration."""
    if not any(variant.fields.get("configuration") == CHOSEN for variant in variants.values()):
        return {}
    waiting = (cell for cell in itertools.product(datasets, models) if chosen(*cell) is None)
    return dict.fromkeys(waiting, "its configuration is not chosen yet")


def _check_extent(study: Study, source: Source) -> None:
    """Each of variants, cells and runs may be many, but not all of them."""
    cells = len(study.datasets) * len(study.models) - len(study.skip)
    runs = max(study.runs.get(dataset, _USUAL_RUNS) for dataset in study.datasets)
    trials = len(study.variants) * cells * runs
    if trials > _MOST_TRIALS:
        raise InputError(
            f"{source.name}: {len(study.variants):,} variants in {cells:,} cells, with {runs:,} runs each, are {trials:,} trials; "
            f"give at most {_MOST_TRIALS:,}, or divide the study"
        )


def _try_every_cell(study: Study, source: Source) -> None:
    """A value that no trial can have is found now, and not after hours of training."""
    for dataset, model in itertools.product(study.datasets, study.models):
        if (dataset, model) in study.skip:
            continue
        for variant in study.variants.values():
            try:
                variant.trial(dataset, model)
            except InputError as error:
                named, own = error.field or "", source.content["variants"][variant.template]
                shared = named in source.content.get("trial", {}) and named not in own
                where: Where = ("trial", named) if shared else ("variants", variant.template, named)
                raise source.fail(where, f"variant {variant.name!r}: {error}") from error


def _check_different(study: Study, source: Source) -> None:
    """Two names for one trial would be compared as if they were two; a grid around the paper's setting may hold that setting."""
    cells = [cell for cell in itertools.product(study.datasets, study.models) if cell not in study.skip]
    seen: dict[Trial, list[Variant]] = {}
    for variant in study.variants.values() if cells else ():
        alike = seen.setdefault(variant.trial(*cells[0]).resolve("any"), [])
        for other in alike:
            pairs = [(variant.fields.get(name), other.fields.get(name)) for name in {*variant.fields, *other.fields}]
            fixed = not any(isinstance(value, Relative) for pair in pairs if pair[0] != pair[1] for value in pair)
            trials = ((variant.trial(*cell).resolve("any"), other.trial(*cell).resolve("any")) for cell in cells)
            if fixed and all(one == another for one, another in trials):
                problem = f"{variant.name!r} and {other.name!r} are the same trial; leave one of them out"
                raise source.fail(("variants", variant.template), problem)
        alike.append(variant)
