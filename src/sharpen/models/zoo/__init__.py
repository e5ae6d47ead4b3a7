"""The methods of the field, one file each that reads like its formula; their published settings are data (``settings/``).

Every method begins with ``num_features`` and ``num_classes`` of the graph, and those that know one graph with its ``num_nodes`` or
``num_edges``; what else an argument is, the docstring says. All
give class scores of all nodes; in training, those whose loss has terms of its own give these beside them. Where they differ from
their authors' code, docs/field.md says.
"""
