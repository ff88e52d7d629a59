"""``pluri doctor``: what is installed here, and whether it computes what it should."""

from pluri.cli.doctor.command import doctor

__all__ = ["doctor"]
