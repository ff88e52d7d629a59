r"""Strategies beside random choice, honestly: paired repeats, and an interval of the difference.

Whether a strategy is worth its trouble is not told by one curve: curves differ more from one choice of the first labels
to the next than from strategy to strategy. So all strategies get the same pools, first labels and held-out rows in each
repeat, and what is reported is the mean over repeats r of (strategy - random) with its interval by Student's t,

.. math:: \bar d \pm t_{R - 1}(0.975) \, s_d / \sqrt R .

Held-out rows are in no pool, and labels of the pool are behind an oracle that counts how often it is asked. If every
repeat splits the same data anew, repeats are not independent and the interval is of these data, not of their
population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression

from pluri.decisions.active.learner import ActiveLearner
from pluri.decisions.active.oracle import CountingOracle, check_labels
from pluri.decisions.active.rows import check_disjoint, count_rows, indexable, take
from pluri.decisions.active.strategies import Strategy
from pluri.validation import Number, RandomState, Whole, as_generator, check_value

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class StrategyComparison:
    """Learning curves of several strategies over paired repeats.

    Attributes
    ----------
    n_labels : ndarray of shape (n_rounds,)
        Labels that the model has learned from.
    scores : dict of str to ndarray of shape (n_repeats, n_rounds)
        Score on held-out rows by each strategy.
    baseline : str
        The strategy that the others are compared with.
    n_oracle_calls : dict of str to int
        Labels that each strategy asked for, over all repeats.
    """

    n_labels: NDArray[np.int64]
    scores: Mapping[str, Array]
    baseline: str
    n_oracle_calls: Mapping[str, int]

    def __repr__(self) -> str:
        return f"<StrategyComparison of {', '.join(self.scores)}: print its summary()>"

    def mean(self, name: str) -> Array:
        """Mean score over repeats, of shape (n_rounds,)."""
        return np.asarray(self.scores[name].mean(axis=0))

    def std(self, name: str) -> Array:
        """Standard deviation of the score over repeats, of shape (n_rounds,); 0 of a single repeat."""
        values = self.scores[name]
        return np.asarray(values.std(axis=0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1])

    def difference(self, name: str, level: float = 0.95) -> tuple[Array, Array, Array]:
        """Mean of (strategy - baseline) over paired repeats, with the ends of its interval, each (n_rounds,)."""
        return paired_interval(self.scores[name] - self.scores[self.baseline], level)

    def average_difference(self, name: str, level: float = 0.95) -> tuple[float, float, float]:
        """The same of the mean over rounds: one number for the whole curve, which does not choose a round."""
        gap = (self.scores[name] - self.scores[self.baseline]).mean(axis=1, keepdims=True)
        middle, low, high = paired_interval(gap, level)
        return float(middle[0]), float(low[0]), float(high[0])

    def summary(self) -> str:
        """A table: last scores, and differences to the baseline with 95 % intervals."""
        n_repeats = len(next(iter(self.scores.values())))
        title = (
            f"{n_repeats} paired repeats, {self.n_labels[0]} to {self.n_labels[-1]} labels; baseline {self.baseline}"
        )
        width = max(map(len, self.scores))
        lines = [title, f"{'':{width}}  last score   difference at the end       mean over the curve"]
        for name in self.scores:
            line = f"{name:{width}}  {self.mean(name)[-1]:.3f}"
            if name != self.baseline:
                ends = tuple(float(one[-1]) for one in self.difference(name))
                line += "".join(
                    f"        {m:+.3f} [{a:+.3f}, {b:+.3f}]" for m, a, b in (ends, self.average_difference(name))
                )
            lines.append(line)
        return "\n".join(lines)


def paired_interval(differences: Array, level: float = 0.95) -> tuple[Array, Array, Array]:
    """Mean of paired differences (n_repeats, ...) and the ends of its interval by Student's t; NaN of one repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.active.comparison import paired_interval
    >>> [float(one.round(3)) for one in paired_interval(np.array([0.01, 0.02, 0.03]))]
    [0.02, -0.005, 0.045]
    """
    check_value(level, "level", Number(above=0, below=1))
    n_repeats = len(differences)
    middle = differences.mean(axis=0)
    if n_repeats < 2:
        return middle, np.full_like(middle, np.nan), np.full_like(middle, np.nan)
    half = student.ppf(0.5 + level / 2, n_repeats - 1) * differences.std(axis=0, ddof=1) / np.sqrt(n_repeats)
    return middle, middle - half, middle + half


def compare_strategies(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    strategies: Sequence[str] | Mapping[str, str | Strategy | Mapping[str, Any]],
    *,
    n_initial: int = 10,
    n_queries: int = 20,
    batch_size: int = 1,
    eval_size: float | int = 0.4,
    evaluation: tuple[Any, ArrayLike] | None = None,
    n_repeats: int = 10,
    random_state: RandomState = None,
) -> StrategyComparison:
    """Learning curves of strategies, and how much better each is than random choice.

    Parameters
    ----------
    estimator : estimator, or None for a logistic regression
        Its `random_state`, if it has one, is the same for all strategies within a repeat.
    X, y : rows with all their labels
        The strategies see only the labels that they ask for.
    strategies : list of names, or dict of names to strategies
        A strategy is a name or callable as `ActiveLearner` takes it, or a dict of arguments of `ActiveLearner`, such as
        ``{"strategy": "margin", "batches": "diverse"}``. "random" is added if it is missing.
    n_initial : int, default=10
        Labels to begin with, drawn at random: one of each class as far as they go round, then any.
    n_queries : int, default=20
        Labels that each strategy may ask for.
    batch_size : int, default=1
    eval_size : float or int, default=0.4
        Share or number of the rows that each repeat holds out; the others are the pool.
    evaluation : (X_eval, y_eval), optional
        Held-out rows that are the same in all repeats, instead of `eval_size`; none of them may be in X.
    n_repeats : int, default=10
    random_state : int, numpy Generator, RandomState or None

    Returns
    -------
    StrategyComparison

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pluri.decisions import compare_strategies
    >>> X, y = make_classification(200, 2, n_informative=2, n_redundant=0, random_state=0)
    >>> found = compare_strategies(LogisticRegression(), X, y, ["margin"], n_repeats=5, random_state=0)
    >>> found.n_labels[[0, -1]].tolist(), found.n_oracle_calls["margin"]
    ([10, 30], 100)
    >>> middle, low, high = found.average_difference("margin")
    >>> low < middle < high
    True
    """
    for name, value, least in (("n_initial", n_initial, 2), ("n_queries", n_queries, 1), ("n_repeats", n_repeats, 1)):
        check_value(value, name, Whole(least))
    check_value(batch_size, "batch_size", Whole(1))
    X, model = indexable(X), LogisticRegression(max_iter=1000) if estimator is None else estimator
    labels = check_labels(y, count_rows(X, "X"))
    settings = _settings(strategies)
    if evaluation is not None:
        evaluation = (
            indexable(evaluation[0]),
            check_labels(evaluation[1], count_rows(evaluation[0], "X_eval"), "y_eval"),
        )
        check_disjoint(X, evaluation[0])
    n_held = 0 if evaluation is not None else _n_held(eval_size, len(labels))
    if n_initial + n_queries > len(labels) - n_held:
        raise ValueError(
            f"n_initial + n_queries must be at most the {len(labels) - n_held} rows of the pool, got "
            f"{n_initial + n_queries}"
        )
    scores: dict[str, list[list[float]]] = {name: [] for name in settings}
    calls = dict.fromkeys(settings, 0)
    n_labels: list[float] = []
    rng = as_generator(random_state)
    for _ in range(n_repeats):
        order, seed = rng.permutation(len(labels)), int(rng.integers(2**31))
        pool = order[n_held:]
        held = evaluation or (take(X, order[:n_held]), labels[order[:n_held]])
        first = _first_rows(labels[pool], n_initial, is_classifier(model))
        rest = np.setdiff1d(np.arange(len(pool)), first)
        X_rest = take(X, pool[rest])
        seeded = _seeded(model, seed)
        for name, given in settings.items():
            learner = ActiveLearner(
                **{"batch_size": batch_size, **given}, estimator=clone(seeded), n_queries=n_queries, random_state=seed
            )
            learner.fit(take(X, pool[first]), labels[pool[first]])
            oracle = CountingOracle(labels[pool[rest]])
            learner.run(X_rest, oracle, *held, check_rows=False)
            calls[name] += oracle.n_labels
            scores[name].append(learner.history_["score"])
            n_labels = learner.history_["n_labels"]
    curves = {name: np.array(values) for name, values in scores.items()}
    return StrategyComparison(np.array(n_labels, dtype=np.int64), curves, "random", calls)


def _settings(strategies: Any) -> dict[str, dict[str, Any]]:
    """Arguments of a learner by the name of the strategy."""
    if isinstance(strategies, str):
        strategies = [strategies]
    named = strategies if isinstance(strategies, Mapping) else {name: name for name in strategies}
    found: dict[str, dict[str, Any]] = {"random": {"strategy": "random"}}
    for name, given in named.items():
        found[name] = dict(given) if isinstance(given, Mapping) else {"strategy": given}
        fixed = {"estimator", "n_queries", "random_state", "batch_size"} & found[name].keys()
        ending = {"min_score", "checkpoint"} & found[name].keys()
        if ending:
            raise ValueError(
                f"strategies must not set {', '.join(sorted(ending))}: all curves have the same labels, got {name!r}"
            )
        if fixed:
            raise ValueError(
                f"strategies must not set {', '.join(sorted(fixed))}, which is the same for all, got {name!r}"
            )
        ActiveLearner(**found[name])._strategy()
    return found


def _n_held(eval_size: float | int, n_rows: int) -> int:
    whole = isinstance(eval_size, int | np.integer) and not isinstance(eval_size, bool)
    check_value(eval_size, "eval_size", Whole(1, n_rows - 1) if whole else Number(above=0, below=1))
    return int(eval_size) if whole else max(1, round(eval_size * n_rows))


def _first_rows(labels: NDArray[Any], n_rows: int, classes: bool) -> NDArray[np.int64]:
    """The first rows of a shuffled pool: of classes one each in turn, as far as they go, then any."""
    if not classes:
        return np.arange(n_rows)
    one_each = np.sort(np.unique(labels, return_index=True)[1])[:n_rows]
    others = np.setdiff1d(np.arange(len(labels)), one_each)
    return np.concatenate([one_each, others[: n_rows - len(one_each)]])


def _seeded(model: Any, seed: int) -> Any:
    """The model with one seed for all of its parts that have one and were given none."""
    names = {
        name: seed
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    return clone(model).set_params(**names)
