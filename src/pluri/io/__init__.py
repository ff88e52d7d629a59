"""Models on disk: saved with skops, without pickle, so that loading a file never runs code.

A file is a zip archive that ``skops.io`` can read too, with one member more (``pluri.json``) that tells which class
and which versions wrote it.
"""

from pluri.io.archive import load, save
from pluri.io.header import ModelInfo, VersionWarning, read_info

__all__ = ["ModelInfo", "VersionWarning", "load", "read_info", "save"]
