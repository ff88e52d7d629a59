"""A fitted hidden Markov model on one page of plain text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def summarize(model: Any, max_states: int = 20) -> str:
    """Title, how the fit went, and a table with a row for each state."""
    k = len(model.startprob_)
    n_features = model._n_features_of_parameters()
    lines = [f"{type(model).__name__}: {_plural(k, 'state')}, {_plural(n_features, 'feature')}", ""]
    lines += _fit_lines(model)
    stationary = model.get_stationary_distribution()
    occupancy = getattr(model, "state_occupancy_", None)
    with np.errstate(divide="ignore"):
        stay = 1.0 / (1.0 - np.diag(model.transmat_))
    header = ["state", "start", "share", "samples", "stay", "next", "emission"]
    rows = []
    for i in range(min(k, max_states)):
        after = model.transmat_[i].copy()
        after[i] = -1.0
        following = int(np.argmax(after))
        rows.append(
            [
                str(i),
                f"{model.startprob_[i]:.3f}",
                f"{stationary[i]:.3f}",
                "-" if occupancy is None else f"{occupancy[i]:.1f}",
                f"{stay[i]:.3g}",
                f"{following} ({after[following]:.2f})" if k > 1 else "-",
                _emission_text(model, i),
            ]
        )
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [header, *rows]]
    if k > max_states:
        lines.append(f"... and {k - max_states} more states")
    lines += ["", "share: stationary probability; stay: expected duration; next: likeliest other state (probability)"]
    return "\n".join(lines)


def _plural(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _fit_lines(model: Any) -> list[str]:
    if not hasattr(model, "converged_"):
        return ["parameters set by hand, not fitted", ""]
    state = "converged" if model.converged_ else "not converged"
    lines = [f"{state} after {model.n_iter_} iterations; objective {model.objective_:.4f}"]
    if hasattr(model, "log_det_"):
        lines.append(f"diversity of the transition rows: log det {model.log_det_:.3f} (0: a permutation, -inf: twins)")
    return [*lines, ""]


def _emission_text(model: Any, state: int) -> str:
    if hasattr(model, "weights_"):
        return "weights " + _numbers(model.weights_[state])
    if hasattr(model, "means_"):
        deviations = np.sqrt(np.diagonal(model.covars_[state]))
        return f"mean {_numbers(model.means_[state])} sd {_numbers(deviations)}"
    for name, label in (("lambdas_", "rate"), ("probs_", "p")):
        if hasattr(model, name):
            return f"{label} {_numbers(getattr(model, name)[state])}"
    probabilities = model.emissionprob_
    table = probabilities if isinstance(probabilities, np.ndarray) else probabilities[0]
    vocabulary = getattr(model, "vocabulary_", None)
    words = vocabulary[0] if vocabulary is not None else np.arange(table.shape[1])
    top = np.argsort(-table[state], kind="stable")[:5]
    return " ".join(f"{words[v]}:{table[state, v]:.2f}" for v in top)


def _numbers(values: NDArray[np.float64], most: int = 4) -> str:
    shown = " ".join(f"{value:.3g}" for value in values[:most])
    return f"[{shown}{' ...' if len(values) > most else ''}]"
