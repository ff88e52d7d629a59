"""The ``pluri`` command: fit, query and inspect models from a shell. Thin: no mathematics lives here."""

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of this process."""
    import os
    import sys

    from pluri.cli import own_process
    from pluri.cli.commands import asked_for, build

    own_process.alone = True
    # A shell that completes a line passes it on in the environment.
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    wanted = asked_for(typed.split()[1:] if "_PLURI_COMPLETE" in os.environ else sys.argv[1:])
    build({wanted} if wanted is not None else set())()
