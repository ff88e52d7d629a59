"""
A funnel, and the way around it: NUTS on eight schools
======================================================

Eight schools tried a course, and each reported an effect with its standard error (Rubin 1981). How far do the schools
really differ? The model has eight effects :math:`\\theta_j \\sim N(\\mu, \\tau^2)` and is small, but it has a trap:
where :math:`\\tau` is small the effects are squeezed together, and no step size is right for both ends of that funnel.
NUTS notices, and a change of variables mends it.
"""

# %%
# The model as it is told
# -----------------------
# Effects are variables of their own. The function gives the log density and its gradient by name;
# :class:`~pluri.inference.mcmc.Space` takes care of the constraint on tau. Warnings are turned off here, to be printed
# below.

import matplotlib.pyplot as plt
import numpy as np

from pluri.inference import mcmc
from pluri.plotting import AutocorrelationDisplay, RankDisplay, TraceDisplay

effects = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def hyperprior(mu, tau):
    """mu ~ N(0, 5^2), tau ~ half-Cauchy(5): log density and slopes."""
    return -0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2), -mu / 25, -2 * tau / (25 + tau**2)


def centred(v):
    mu, tau, theta = v["mu"], v["tau"], v["theta"]
    prior, slope_mu, slope_tau = hyperprior(mu, tau)
    pull = (effects - theta) / errors**2
    z = (theta - mu) / tau
    value = prior - 0.5 * z @ z - 8 * np.log(tau) - 0.5 * (effects - theta) @ pull
    return value, {"mu": slope_mu + z.sum() / tau, "tau": slope_tau + (z @ z - 8) / tau, "theta": pull - z / tau}


space = mcmc.Space(mu=mcmc.Real(), tau=mcmc.Positive(), theta=mcmc.Real(8))
start = space.unconstrain({"mu": 4.0, "tau": 5.0, "theta": effects})
trace = mcmc.sample(mcmc.NUTS(space.value_and_grad(centred)), start, record=space.constrain, random_state=1, warn=False)
for problem in trace.diagnose():
    print("-", problem)

# %%
# Paths of the four chains. The ticks below are divergences: trajectories that fell off the true one. One chain hangs
# for long at the smallest tau that it reached, and no chain goes lower.

log_tau = mcmc.Trace({"mu": trace["mu"], "log tau": np.log(trace["tau"])}, trace.stats)
TraceDisplay.from_trace(log_tau)

# %%
# The same model, told another way
# --------------------------------
# Write :math:`\theta_j = \mu + \tau \eta_j` with :math:`\eta_j` standard normal: the same posterior, whose free
# variables no longer squeeze each other.


def non_centred(v):
    mu, tau, eta = v["mu"], v["tau"], v["eta"]
    prior, slope_mu, slope_tau = hyperprior(mu, tau)
    residual = effects - mu - tau * eta
    pull = residual / errors**2
    value = prior - 0.5 * eta @ eta - 0.5 * residual @ pull
    return value, {"mu": slope_mu + pull.sum(), "tau": slope_tau + pull @ eta, "eta": tau * pull - eta}


free = mcmc.Space(mu=mcmc.Real(), tau=mcmc.Positive(), eta=mcmc.Real(8))
kernel = mcmc.NUTS(free.value_and_grad(non_centred), target_accept=0.9)
start = free.unconstrain({"mu": 4.0, "tau": 5.0, "eta": np.zeros(8)})
better = mcmc.sample(kernel, start, record=free.constrain, random_state=1)
print("problems:", better.diagnose() or "none")
TraceDisplay.from_trace(mcmc.Trace({"mu": better["mu"], "log tau": np.log(better["tau"])}, better.stats))

# %%
# The funnel
# ----------
# Draws of one effect against log tau. Left, the chains do not go down into the neck, and divergences (orange) gather at
# its entrance. Right, they do.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharex=True, sharey=True, layout="constrained")
theta = better["mu"][..., None] + better["tau"][..., None] * better["eta"]
for ax, name, run, effect in (
    (axes[0], "centred", trace, trace["theta"][..., 0]),
    (axes[1], "non-centred", better, theta[..., 0]),
):
    ax.plot(effect.ravel(), np.log(run["tau"]).ravel(), ".", ms=2.5, color="#0072B2", alpha=0.35)
    divergent = run.stats["divergent"] > 0
    ax.plot(effect[divergent], np.log(run["tau"])[divergent], "o", ms=4, color="#D55E00")
    ax.set(xlabel="effect of the first school", title=f"{name}: {int(divergent.sum())} divergences")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="log tau", ylim=(-7, 4), xlim=(-25, 45))

# %%
# Ranks and memory
# ----------------
# If all chains sample the same distribution, their ranks among all draws are uniform (dashed line); if they forget
# quickly, the autocorrelation falls at once into the band of independent draws.

figure, axes = plt.subplots(2, 2, figsize=(9, 4.6), layout="constrained")
for column, (name, run) in zip(axes.T, (("centred", trace), ("non-centred", better))):
    RankDisplay.from_trace({f"tau, {name}": run["tau"]}, axes=column[:1])
    AutocorrelationDisplay.from_trace({f"tau, {name}": run["tau"]}, axes=column[1:])

# %%
# The answer
# ----------
# The schools differ little, if at all: every effect is pulled far towards the common mean.

for school, values in enumerate(theta.reshape(-1, 8).T):
    print(f"school {school + 1}: reported {effects[school]:5.1f}, posterior {values.mean():4.1f} +- {values.std():.1f}")

# sphinx_gallery_thumbnail_number = 3
