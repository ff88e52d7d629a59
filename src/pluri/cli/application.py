"""The whole command line, with all its commands."""

from pluri.cli.commands import COMMANDS, build

application = build(set(COMMANDS))
