"""Training whole populations of trials."""

from sharpen.training.trials import train

__all__ = ["train"]
