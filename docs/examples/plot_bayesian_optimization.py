"""
Seven evaluations of an expensive function: Bayesian optimization
=================================================================

A Gaussian process is fitted to what is known of a function. The next evaluation is where the expected improvement is
highest: near the lowest value so far, or where little is known.
"""

# %%
# A function with two valleys, of which one is lower. Five points are spread evenly, two more are chosen by the model.

import numpy as np

from pluri.decisions import BayesianOptimizer, Real
from pluri.plotting import AcquisitionDisplay, AnnealingDisplay, BestSoFarDisplay


def f(params):
    return float(np.sin(3 * params["x"]) + 0.3 * params["x"] ** 2)


optimizer = BayesianOptimizer({"x": Real(-3, 3)}, random_state=1)
optimizer.optimize(f, n_calls=7)
AcquisitionDisplay.from_optimizer(optimizer, title="after seven evaluations")

# %%
# Eight further evaluations, beside twenty random searches.

optimizer.optimize(f, n_calls=8)
rng = np.random.default_rng(0)
random = [[f({"x": x}) for x in rng.uniform(-3, 3, 15)] for _ in range(20)]
lowest = min(f({"x": x}) for x in np.linspace(-3, 3, 100_001))
BestSoFarDisplay.from_optimizer(optimizer, {"random": random}, optimum=min(lowest, optimizer.best_score_))

# %%
# If evaluations cost nothing, annealing does without a model.

from pluri.optimize import SimulatedAnnealing

result = SimulatedAnnealing(bounds=[(-3, 3)], max_iter=1000, random_state=0).minimize(lambda x: f({"x": x[0]}))
AnnealingDisplay.from_result(result, title=f"lowest energy {result.fun:.3f}")
