"""The methods of the field, one file each that reads like its formula; their published settings are data (``settings/``).

Every method begins with ``num_features`` and ``num_classes`` of the graph, and those that know one graph with its ``num_nodes`` or
``num_edges``; what follows are the arguments that its docstring explains.
"""
