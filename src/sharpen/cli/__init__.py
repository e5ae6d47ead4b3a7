"""The command ``sharpen``: one file per subcommand."""

from sharpen.cli.app import main

__all__ = ["main"]
