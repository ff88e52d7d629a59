"""Query strategies by name: how the rows of a pool are scored by a learner that has a fitted model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingRegressor
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline

from pluri.decisions.active.expected_error import expected_error_scores
from pluri.decisions.active.fisher import CRITERIA, fisher_scores
from pluri.decisions.active.uncertainty import UNCERTAINTY, committee_scores, uncertainty_scores

Array = NDArray[np.float64]

#: Draws of a model that has none of its own number (MC dropout).
N_DRAWS = 20
#: Rows of the pool that expected error reduction tries, and averages over: each costs a fit for each class.
N_TRIED, N_REFERENCE = 30, 200


class Learned(Protocol):
    """What a strategy sees of a learner."""

    estimator_: Any
    X_: Any
    y_: NDArray[Any]


#: Gives a score for each row of the pool; the larger, the sooner it is to be labelled.
Strategy = Callable[[Any, Any], Any]


def random_scores(learner: Learned, X: Any, rng: np.random.Generator) -> Array:
    """No preference."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    return rng.random(n_rows)


def probabilities(model: Any, X: Any) -> Array:
    """Probabilities of the classes; an error for a model that has none."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"strategy must be 'random', 'variance' or a callable for {type(model).__name__}, which has no "
            "predict_proba"
        )
    return np.asarray(model.predict_proba(X), dtype=np.float64)


def member_probabilities(model: Any, X: Any, rng: np.random.Generator) -> Array | None:
    """Probabilities by each member of an ensemble, or by draws of the model; None if it has neither."""
    if isinstance(model, Pipeline):
        return member_probabilities(model[-1], model[:-1].transform(X) if len(model) > 1 else X, rng)
    draws = getattr(model, "predict_proba_samples", None)
    if draws is not None:
        known = inspect.signature(draws).parameters
        settings: dict[str, Any] = {"n_predictive": N_DRAWS} if "n_predictive" in known else {}
        if "random_state" in known:
            settings["random_state"] = int(rng.integers(2**31))
        return np.asarray(draws(X, **settings), dtype=np.float64)
    members = getattr(model, "estimators_", None)
    if members is None or not hasattr(model, "classes_") or np.ndim(members[0]) != 0 or not _votes(model, members):
        return None
    # scikit-learn's ensembles fit some of their members to a part of the columns.
    columns = getattr(model, "estimators_features_", [None] * len(members))
    found = np.zeros((len(members), X.shape[0] if hasattr(X, "shape") else len(X), len(model.classes_)))
    for place, (member, chosen) in enumerate(zip(members, columns)):
        rows = np.asarray(X) if hasattr(X, "iloc") else X
        rows = rows if chosen is None or len(chosen) == rows.shape[1] else rows[:, chosen]
        found[place][:, _class_codes(model, member)] = member.predict_proba(rows)
    return found


def _votes(model: Any, members: Any) -> bool:
    """Whether each member answers the question of the whole: those of one class against the rest do not."""
    return not isinstance(model, OneVsRestClassifier | OneVsOneClassifier | OutputCodeClassifier) and all(
        hasattr(member, "predict_proba") for member in members
    )


def _class_codes(model: Any, member: Any) -> NDArray[np.int64]:
    """Places of a member's classes among those of the ensemble.

    All ensembles of scikit-learn but AdaBoost fit their members to the codes of the classes.
    """
    own = np.asarray(member.classes_)
    if isinstance(model, AdaBoostClassifier):
        return np.searchsorted(model.classes_, own).astype(np.int64)
    return own.astype(np.int64)


def disagreement_scores(learner: Learned, X: Any, rng: np.random.Generator, kind: str, name: str) -> Array:
    """Disagreement of the members or draws of a model; or its own information of a label about its parameters."""
    model = learner.estimator_
    P = member_probabilities(model, X, rng)
    if P is not None:
        return committee_scores(P, kind)
    last = model[-1] if isinstance(model, Pipeline) else model
    rows = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    if kind == "kl" and hasattr(last, "mutual_information"):
        return np.asarray(last.mutual_information(rows, random_state=int(rng.integers(2**31))), dtype=np.float64)
    if kind == "kl" and hasattr(last, "planning_scores"):
        return np.asarray(last.planning_scores(rows, "bald", random_state=int(rng.integers(2**31))), dtype=np.float64)
    raise ValueError(
        f"strategy {name!r} must be used with several models or draws (QueryByCommittee, an ensemble of scikit-learn, "
        f"predict_proba_samples), got {type(model).__name__}"
    )


def variance_scores(learner: Learned, X: Any, rng: np.random.Generator) -> Array:
    """Predictive variance of a regressor: of its own, or the spread of the members of an ensemble."""
    model = learner.estimator_
    last = model[-1] if isinstance(model, Pipeline) else model
    if "return_std" in inspect.signature(last.predict).parameters:
        return np.asarray(model.predict(X, return_std=True)[1], dtype=np.float64) ** 2
    rows = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    # Trees of a boosted sum are corrections of those before, not predictions of the response.
    members = None if isinstance(last, GradientBoostingRegressor) else getattr(last, "estimators_", None)
    if members is None:
        raise ValueError(
            "strategy 'variance' must be used with a regressor whose predict takes return_std, or with an ensemble "
            f"whose members predict the response, got {type(last).__name__}"
        )
    rows = np.asarray(rows) if hasattr(rows, "iloc") else rows
    columns = getattr(last, "estimators_features_", [None] * len(members))
    found = [
        member.predict(rows if chosen is None or len(chosen) == rows.shape[1] else rows[:, chosen])
        for member, chosen in zip(np.ravel(members), columns)
    ]
    return np.asarray(np.var(found, axis=0))


def information_scores(learner: Learned, X: Any, rng: np.random.Generator, criterion: str) -> Array:
    """Gain of Fisher information; columns are those that the regression at the end of a pipeline sees."""
    model = learner.estimator_
    last = model[-1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "coef_"):
        raise ValueError(
            f"strategy 'fisher_{criterion}' must be used with a linear or logistic regression, "
            f"got {type(last).__name__}"
        )
    rows, labelled = (_regressors(model, last, some) for some in (X, learner.X_))
    if hasattr(last, "classes_"):
        P, P_labelled = (probabilities(model, some) for some in (X, learner.X_))
        return fisher_scores(
            rows, P, X_labelled=labelled, P_labelled=P_labelled, criterion=criterion, alpha=_penalty(last)
        )
    residual = np.asarray(learner.y_, dtype=np.float64) - model.predict(learner.X_)
    variance = float(residual @ residual) / max(1, len(residual) - rows.shape[1])
    scale = max(variance, np.finfo(np.float64).eps * max(1.0, float(np.var(learner.y_))))
    # A penalty beside a sum of squares is one beside a log-likelihood times the variance.
    alpha = _penalty(last) / scale
    return fisher_scores(rows, X_labelled=labelled, criterion=criterion, alpha=alpha, noise_variance=scale)


def _penalty(model: Any) -> float:
    """Weight of the squared penalty of a regression; a tiny one, which makes matrices invertible, if it has none."""
    if getattr(model, "penalty", "l2") is None:
        return 1e-8
    if hasattr(model, "C"):
        return float(1.0 / model.C) if np.isfinite(model.C) else 1e-8
    alpha = getattr(model, "alpha", 0.0)
    return float(alpha) if np.ndim(alpha) == 0 and isinstance(alpha, int | float) and alpha > 0 else 1e-8


def _regressors(model: Any, last: Any, X: Any) -> Any:
    """What the coefficients multiply: with ones for the intercept."""
    rows = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    if not getattr(last, "fit_intercept", False):
        return rows
    ones = np.ones((rows.shape[0] if hasattr(rows, "shape") else len(rows), 1))
    return hstack([rows, csr_array(ones)], format="csr") if issparse(rows) else np.hstack([np.asarray(rows), ones])


def error_scores(learner: Learned, X: Any, rng: np.random.Generator) -> Array:
    """Expected error reduction, of a part of the pool."""
    return expected_error_scores(
        learner.estimator_, X, X_labelled=learner.X_, y_labelled=learner.y_,
        n_candidates=N_TRIED, n_reference=N_REFERENCE, random_state=rng,
    )  # fmt: skip


def _of_probabilities(kind: str) -> Callable[..., Array]:
    return lambda learner, X, rng: uncertainty_scores(probabilities(learner.estimator_, X), kind)


def _of_members(kind: str, name: str) -> Callable[..., Array]:
    return lambda learner, X, rng: disagreement_scores(learner, X, rng, kind, name)


def _of_information(criterion: str) -> Callable[..., Array]:
    return lambda learner, X, rng: information_scores(learner, X, rng, criterion)


#: Functions of a learner, rows and a generator, by name.
STRATEGIES: dict[str, Callable[..., Array]] = {
    "random": random_scores,
    **{kind: _of_probabilities(kind) for kind in UNCERTAINTY},
    "vote_entropy": _of_members("vote_entropy", "vote_entropy"),
    "kl": _of_members("kl", "kl"),
    "bald": _of_members("kl", "bald"),
    **{f"fisher_{criterion}": _of_information(criterion) for criterion in CRITERIA},
    "variance": variance_scores,
    "expected_error": error_scores,
}


def score_rows(learner: Learned, X: Any, strategy: str | Strategy, rng: np.random.Generator) -> Array:
    """Scores of the rows of a pool, checked: one number for each row, none of them missing."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    scores = STRATEGIES[strategy](learner, X, rng) if isinstance(strategy, str) else strategy(learner, X)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n_rows,):
        raise ValueError(
            f"strategy must give a score for each of the {n_rows} rows of X_pool, got shape {values.shape}"
        )
    if np.isnan(values).any():
        raise ValueError(f"strategy must give numbers, got NaN for row {int(np.isnan(values).argmax())} of X_pool")
    return values
