"""``pluri demo``: what pluri does for a person, in six short parts; ``pluri demo prior``: what one prior brings."""

from pluri.cli.demo.command import demo

__all__ = ["demo"]
