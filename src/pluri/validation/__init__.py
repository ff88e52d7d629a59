"""Checks at the door: what comes in is turned into what the core expects, or refused in one sentence."""

from pluri.validation.random import RandomState, as_generator

__all__ = ["RandomState", "as_generator"]
