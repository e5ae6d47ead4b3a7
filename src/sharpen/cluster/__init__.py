"""Training on other machines: the processes of a Ray cluster, each with its share of CPUs or GPUs (extra ``ray``)."""
