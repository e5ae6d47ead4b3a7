#!/usr/bin/env bash
# What the evidence still lacks on the ten graphs, one command for each study: bash results/run_missing.sh NAME [OPTIONS]
# NAME is one of those below, `all` for all of them in this order, `again` to make runs of uncommitted code anew, or `retrace` to trace anew
# the runs whose traces hold no Shannon entropy.
# OPTIONS go to `sharpen study run`, such as --time-limit 9 (minutes) to run in slices. The smallest cells come first; a command that
# was stopped goes on where it was. One NVIDIA H200 was used so far; docs/evidence.md says how long each takes there. Then: make results
set -eu
cd "$(dirname "$0")/.."
graphs=cora,citeseer,pubmed,computer,photo,cs,physics,squirrel,chameleon,minesweeper
names="test-only-paired entropy-dynamics-paper entropy-order-paired main-five-paired retune-nine-paper meta-lambda-paper meta-lambda-paired \
    lambda-curves-paper retune-paper main-paired"
sharpen=${SHARPEN:-.venv/bin/sharpen}

study() { # NAME-PROTOCOL
    "$sharpen" study run "${1%-*}" --protocol "${1##*-}" --datasets "$graphs" --models gcn,sage,gat \
        --store results/store --precision tf32 "${@:2}"
}

name=${1:-none}
case " $names all again retrace " in *" $name "*) shift ;; *) echo "give one of: $names all again retrace" >&2; exit 2 ;; esac
case $name in
all) for each in $names; do study "$each" "$@"; done ;;
again) # the records in question leave the store, and their studies are run
    "$(dirname "$sharpen")/python" - <<'PYTHON'
from pathlib import Path

import pyarrow.parquet as pq

store, aside = Path("results/store/records"), Path("results/uncommitted")
aside.mkdir(exist_ok=True)
for path in sorted(store.glob("*.parquet")):
    revisions = pq.read_table(path, columns=["revision"])["revision"].to_pylist()
    if any(r.endswith("+changes") or r.startswith("source-") for r in revisions):
        path.rename(aside / path.name)
PYTHON
    for each in universal-paper universal-paired universal-ablation labeled-term-paper labeled-term-paired labeled-term-ablation \
        entropy-order-paper entropy-order-paired entropy-order-ablation test-only-paper test-only-paired test-only-ablation \
        meta-lambda-ablation meta-lambda-paired entropy-dynamics-paper; do study "$each" "$@"; done ;;
retrace) # traces without Shannon's entropy leave the store, and their study is run
    "$(dirname "$sharpen")/python" - <<'PYTHON'
from pathlib import Path

import pyarrow.parquet as pq

store, aside = Path("results/store/traces"), Path("results/uncommitted")
aside.mkdir(exist_ok=True)
for path in sorted(store.glob("*.parquet")):
    if "shannon_labeled" not in pq.read_table(path, columns=["name"])["name"].to_pylist():
        path.rename(aside / f"traces-{path.name}")
PYTHON
    study entropy-dynamics-paper "$@" ;;
*) study "$name" "$@" ;;
esac
