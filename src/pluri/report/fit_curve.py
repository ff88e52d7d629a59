"""How a fit went, as a small picture: log joint, bound or objective from step to step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.report.markup import escape

MOST_POINTS = 300
MOST_CURVES = 8
WIDTH, HEIGHT, LEFT, BOTTOM = 380.0, 120.0, 8.0, 18.0


class FitCurve(NamedTuple):
    """What was followed during a fit: its name, what a step is called, and one row for each run or chain."""

    name: str
    step: str
    values: list[NDArray[np.float64]]


def fit_curve(model: Any) -> FitCurve | None:
    """The record that a fitted model keeps of its fit, if it keeps one."""
    curves = _curves(getattr(model, "log_joint_", None))
    if curves:
        # Some keep all sweeps, others only those whose draws they keep.
        kept = len(curves[0]) == getattr(model, "n_draws", None)
        return FitCurve("log joint probability", "draw" if kept else "sweep", curves)
    curves = _curves(getattr(getattr(model, "trace_", None), "stats", {}).get("log_density"))
    if curves:
        return FitCurve("log density", "draw", curves)
    history: Any = getattr(model, "history_", None)
    if hasattr(history, "restart") and hasattr(history, "objective"):
        runs = [history.objective[history.restart == run] for run in np.unique(history.restart)]
        curves = [values for run in runs for values in _curves(run)]
        if curves:
            return FitCurve("objective", "iteration", curves)
    for attribute in ("elbo_", "bounds_", "bound_", "lower_bounds_"):
        curves = _curves(getattr(model, attribute, None))
        if curves:
            return FitCurve("lower bound", "iteration", curves)
    return None


def _curves(found: Any) -> list[NDArray[np.float64]]:
    if found is None:
        return []
    try:
        values = np.atleast_2d(np.asarray(found, dtype=np.float64))
    except (TypeError, ValueError):
        return []
    if values.ndim != 2 or values.shape[1] < 2 or not np.isfinite(values).all():
        return []
    return list(values[:MOST_CURVES])


def draw_curve(curve: FitCurve) -> str:
    """A figure in HTML; the axis begins where the first tenth of the steps is over, so that the rest can be seen."""
    longest = max(len(values) for values in curve.values)
    late = np.concatenate([values[len(values) // 10 :] for values in curve.values])
    low, high = float(late.min()), float(late.max())
    extent = high - low or 1.0
    low, high = low - 0.06 * extent, high + 0.06 * extent
    lines = []
    for values in curve.values:
        steps = np.unique(np.linspace(0, len(values) - 1, min(MOST_POINTS, len(values))).astype(int))
        x = LEFT + (WIDTH - 2 * LEFT) * steps / max(longest - 1, 1)
        y = (HEIGHT - BOTTOM) * (1.0 - (values[steps] - low) / (high - low))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
        lines.append(f'<polyline class="curve" points="{points}"/>')
    ends = ", ".join(_number(float(values[-1])) for values in curve.values)
    told = f"{curve.name}: from {_number(float(curve.values[0][0]))} to {ends} in {longest} {curve.step}s"
    floor = HEIGHT - BOTTOM
    texts = (
        f'<text x="{LEFT:g}" y="{HEIGHT - 4:g}">{escape(curve.step)} 1</text>'
        f'<text x="{WIDTH - LEFT:g}" y="{HEIGHT - 4:g}" text-anchor="end">{longest}</text>'
    )
    return (
        f'<figure class="fit"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(told)}">'
        f'<path class="axis" d="M{LEFT:g} {floor:g}H{WIDTH - LEFT:g}"/>'
        f'<svg width="{WIDTH:g}" height="{floor:g}">{"".join(lines)}</svg>{texts}</svg>'
        f"<figcaption>{escape(told.capitalize())}</figcaption></figure>"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
