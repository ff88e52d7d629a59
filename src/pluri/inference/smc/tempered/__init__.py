"""Tempered sequential Monte Carlo: particles that follow the path from a prior to a posterior."""

from pluri.inference.smc.tempered.cooling import Cooling
from pluri.inference.smc.tempered.result import TemperedResult
from pluri.inference.smc.tempered.run import tempered_smc

__all__ = ["Cooling", "TemperedResult", "tempered_smc"]
