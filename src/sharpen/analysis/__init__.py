"""From records to outcomes: paired runs, comparisons, curves over λ, rankings, and how entropies move during training."""
