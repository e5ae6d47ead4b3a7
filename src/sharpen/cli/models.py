"""``sharpen models``: what can be trained, by name."""

from sharpen.cli.options import JsonFlag
from sharpen.cli.printing import listing, print_json, print_table
from sharpen.models.registry import REGISTRY


def models(as_json: JsonFlag = False) -> None:
    """List the models.

    All of them can be named wherever a model is: compare, fit, bench, studies. The cost is the time of a run, a GCN's of the same
    size being 1. A model of your own is named by its file: my_net.py:MyNet.
    """
    if as_json:
        fields = ("title", "name", "about", "reference", "cost")
        print_json([{field: getattr(model, field) for field in fields} for model in REGISTRY.values()])
        return
    table = listing("name", left=("what it computes", "from"))
    table.add_column("cost", justify="right")
    for model in REGISTRY.values():
        table.add_row(model.name, model.about, model.reference, f"{model.cost:g}")
    print_table(table)
