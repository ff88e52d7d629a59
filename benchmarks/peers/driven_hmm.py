"""pluri's regression and driven hidden Markov models beside statsmodels' Markov-switching ones, in one process.

Three cases with two regimes: a regression, an autoregression (a regression on the lagged series, which is what
`AutoregressiveHMM` is; statsmodels' `MarkovAutoregression` switches the mean of the lags too and is another model), and
transitions that depend on one input. First the log-likelihoods at the same parameters, which must agree to 1e-6; then
the time of one log-likelihood, and that of a whole fit from each library's own start with the log-likelihood that it
reached. Last, a sweep of driven EM beside one of plain EM. Seconds are of the processor. statsmodels is left out where
it is not installed.

    python benchmarks/peers/driven_hmm.py
    python benchmarks/peers/driven_hmm.py --quick      # a shorter series
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from pluri.sequences import AutoregressiveHMM, DrivenHMM, GaussianHMM, RegressionHMM


def seconds(run: Callable[[], Any], n_repeats: int = 3) -> tuple[float, Any]:
    """Least processor seconds of some runs, and the last answer."""
    times, answer = [], None
    for _ in range(n_repeats):
        begin = time.process_time()
        answer = run()
        times.append(time.process_time() - begin)
    return min(times), answer


def series(n_steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, states that the inputs drive, and standard normal noise."""
    rng = np.random.default_rng(0)
    u, states = rng.normal(size=n_steps), np.zeros(n_steps, dtype=int)
    for t in range(1, n_steps):
        leave = rng.random() < 1.0 / (1.0 + np.exp(3.0 - u[t]))
        states[t] = 1 - states[t - 1] if leave else states[t - 1]
    return u, states, rng.normal(size=n_steps)


def cases(n_steps: int) -> dict[str, tuple[Any, np.ndarray, dict[str, Any]]]:
    """By name: a model of ours, its X, and the arguments of statsmodels' MarkovRegression."""
    u, states, noise = series(n_steps)
    y = np.where(states, 1.0 + 2.0 * u, -1.0 - 0.5 * u) + noise
    x = np.zeros(n_steps)
    for t in range(1, n_steps):
        x[t] = (0.9 if states[t] else -0.3) * x[t - 1] + noise[t]
    level = 3.0 * states + noise
    tvtp = np.column_stack([np.ones(n_steps), u])
    settings = {"random_state": 0, "n_init": 3, "tol": 1e-4, "covars_prior": 0.0}
    return {
        "regression": (RegressionHMM(2, [1], alpha=0.0, **settings), np.column_stack([y, u]), {"endog": y, "exog": u}),
        "autoregression": (AutoregressiveHMM(2, alpha=0.0, **settings), x[:, None], {"endog": x[1:], "exog": x[:-1]}),
        "driven": (
            DrivenHMM(GaussianHMM(2, **settings), [1], alpha=0.0),
            np.column_stack([level, u]),
            {"endog": level, "exog_tvtp": tvtp},
        ),
    }


def parameters_of(model: Any, peer: Any) -> np.ndarray:
    """Our fitted parameters in statsmodels' order."""
    found = dict.fromkeys(peer.param_names)
    hmm = model.hmm_ if isinstance(model, DrivenHMM) else model
    intercepts = hmm.means_[:, 0] if isinstance(hmm, GaussianHMM) else hmm.intercept_[:, 0]
    for i in range(2):
        found[f"const[{i}]"] = intercepts[i]
        found[f"sigma2[{i}]"] = hmm.covars_[i, 0, 0]
        if not isinstance(hmm, GaussianHMM):
            found[f"x1[{i}]"] = hmm.coef_[i, 0, 0]
        odds = np.log(hmm.transmat_[i, 0] / hmm.transmat_[i, 1])
        if isinstance(model, DrivenHMM):
            slope = model.transition_coef_[i, 0, 0] - model.transition_coef_[i, 1, 0]
            found[f"p[{i}->0].tvtp0"], found[f"p[{i}->0].tvtp1"] = odds - slope * model.input_mean_[0], slope
        else:
            found[f"p[{i}->0]"] = hmm.transmat_[i, 0]
    return np.array([found[name] for name in peer.param_names], dtype=float)


def compare(name: str, model: Any, X: np.ndarray, given: dict[str, Any]) -> None:
    taken, _ = seconds(lambda: model.fit(X), 2)
    hmm = model.hmm_ if isinstance(model, DrivenHMM) else model
    reached = model.score(X)
    scoring, _ = seconds(lambda: model.score(X))
    print(f"{name}: ours {taken:.3f} s a fit, log-likelihood {reached:.4f}, {1e3 * scoring:.2f} ms to score")
    try:
        from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression
    except ImportError:
        print("  statsmodels is not installed")
        return
    peer = MarkovRegression(k_regimes=2, trend="c", switching_variance=True, **given)
    peer.initialize_known(np.array([0.5, 0.5]))
    parameters = parameters_of(model, peer)
    # statsmodels takes two steps from its initial probabilities to the first observation. Ours starts there, or one
    # step earlier in an autoregression, at the row that is conditioned on.
    first = peer.regime_transition_matrix(parameters)[:, :, 0]
    hmm.startprob_ = first @ np.array([0.5, 0.5])
    if not isinstance(model, AutoregressiveHMM):
        hmm.startprob_ = first @ hmm.startprob_
    ours = model.score(X)
    theirs = float(peer.loglike(parameters))
    agree = abs(ours - theirs) < 1e-6 * abs(ours)
    print(f"  the same parameters: ours {ours:.8f}, statsmodels {theirs:.8f}, {'agree' if agree else 'DISAGREE'}")
    scoring_theirs, _ = seconds(lambda: peer.loglike(parameters))
    if agree:
        print(f"  score: statsmodels {1e3 * scoring_theirs:.2f} ms, ratio {scoring_theirs / scoring:.1f}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitting, result = seconds(lambda: MarkovRegression(k_regimes=2, switching_variance=True, **given).fit(), 1)
    print(f"  fit: statsmodels {fitting:.2f} s, log-likelihood {result.llf:.4f}, ratio {fitting / taken:.1f}")


def sweeps(n_steps: int) -> None:
    u, states, noise = series(n_steps)
    X = np.column_stack([3.0 * states + noise, u])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (2, 5, 10):
            hmm = GaussianHMM(k, random_state=0, n_iter=10, tol=-np.inf)
            plain, _ = seconds(lambda hmm=hmm: hmm.fit(X[:, :1]))
            driven, _ = seconds(lambda hmm=hmm: DrivenHMM(hmm, [1]).fit(X))
            print(
                f"{k} states, {n_steps} steps: a plain sweep {100 * plain:.2f} ms, a driven one {100 * driven:.2f} ms"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a shorter series")
    n_steps = 1000 if parser.parse_args().quick else 5000
    for name, case in cases(n_steps).items():
        compare(name, *case)
    sweeps(4 * n_steps)


if __name__ == "__main__":
    main()
