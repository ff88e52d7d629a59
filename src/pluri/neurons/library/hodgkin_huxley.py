r"""Rates of gates, and those of Hodgkin and Huxley's squid axon with rest near -65 mV.

A gate follows :math:`\dot x = \alpha(V)(1 - x) - \beta(V) x`, with both rates of the form
:math:`(A + B V)/(C + \exp((V + D)/F))`, in 1/ms. Where numerator and denominator vanish together the limit is taken.

A. L. Hodgkin and A. F. Huxley (1952). A quantitative description of membrane current and its application to conduction
and excitation in nerve. Journal of Physiology 117, 500-544.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Floats = Any  # a number or an array of numbers
Rate = tuple[float, float, float, float, float]


class GateRates(NamedTuple):
    """Rates of opening and closing: A, B, C, D and F of each."""

    alpha: Rate
    beta: Rate


SODIUM = (
    GateRates((-4.0, -0.1, -1.0, 40.0, -10.0), (4.0, 0.0, 0.0, 65.0, 18.0)),  # m
    GateRates((0.07, 0.0, 0.0, 65.0, 20.0), (1.0, 0.0, 1.0, 35.0, -10.0)),  # h
)
POTASSIUM = (GateRates((-0.55, -0.01, -1.0, 55.0, -10.0), (0.125, 0.0, 0.0, 65.0, 80.0)),)  # n


def rate(coefficients: Rate, voltage: Floats) -> Floats:
    """The rate at some voltages, with the limit where both parts of the fraction vanish.

    Examples
    --------
    >>> from pluri.neurons.library.hodgkin_huxley import SODIUM, rate
    >>> round(float(rate(SODIUM[0].alpha, -40.0)), 12)
    1.0
    """
    a, b, c, d, f = coefficients
    voltage = np.asarray(voltage, dtype=float)
    argument = (voltage + d) / f
    small = np.abs(argument) < 1e-6 if c == -1.0 else np.zeros(voltage.shape, dtype=bool)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        plain = (a + b * voltage) / (c + np.exp(argument))
    return np.where(small, b * f * (1.0 - argument / 2), plain)


def steady_state(rates: GateRates, voltage: Floats) -> Floats:
    """Where a gate settles at some voltages."""
    alpha, beta = rate(rates.alpha, voltage), rate(rates.beta, voltage)
    return alpha / (alpha + beta)


def time_constant(rates: GateRates, voltage: Floats) -> Floats:
    """How fast a gate settles at some voltages, in ms."""
    return 1.0 / (rate(rates.alpha, voltage) + rate(rates.beta, voltage))
