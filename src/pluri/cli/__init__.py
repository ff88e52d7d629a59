"""The ``pluri`` command: fit, query and inspect models from a shell. Thin: no mathematics lives here."""

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of this process."""
    from pluri.cli import own_process
    from pluri.cli.application import application

    own_process.alone = True
    application()
