"""The ``pluri`` command: fit, query and inspect models from a shell. Thin: no mathematics lives here."""

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of this process."""
    import sys

    from pluri.cli import own_process
    from pluri.cli.commands import asked_for, build

    own_process.alone = True
    wanted = asked_for(sys.argv[1:])
    build({wanted} if wanted is not None else set())()
