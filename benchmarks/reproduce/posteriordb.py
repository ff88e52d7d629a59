"""Reference posteriors of posteriordb, sampled by our NUTS: means and standard deviations beside the reference.

Reads ``posteriordb_reference.jsonl.gz`` from the folder that PLURI_DATA names. Gradients come from JAX
(``pip install 'pluri[jax]'``), the sampler is ours. Run: ``python benchmarks/reproduce/posteriordb.py [name ...]``
"""

import gzip
import json
import os
import sys
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from pluri.inference import mcmc

jax.config.update("jax_enable_x64", True)

CHAINS, WARMUP, DRAWS = 4, 1000, 2000


def normal(x, mean, sd):
    return jnp.sum(-0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) + 0.0 * x)


def half_cauchy(x, scale):
    return -jnp.log1p((x / scale) ** 2)


# Each model: (dim, log density of an unconstrained vector with the Jacobian, parameters in the reference's order).


def eight_schools(data):
    y, sigma = jnp.array(data["y"], float), jnp.array(data["sigma"], float)

    def unpack(x):
        mu, tau = x[8], jnp.exp(x[9])
        return x[:8], mu, tau

    def log_density(x):
        z, mu, tau = unpack(x)
        return normal(y, mu + tau * z, sigma) + normal(z, 0, 1) + normal(mu, 0, 5) + half_cauchy(tau, 5) + x[9]

    def parameters(x):
        z, mu, tau = unpack(x)
        return jnp.concatenate([mu + tau * z, jnp.array([mu, tau])])

    return 10, log_density, parameters


def gauss_mix(data):
    y = jnp.array(data["y"], float)

    def parameters(x):
        low = x[0]
        return jnp.array([low, low + jnp.exp(x[1]), jnp.exp(x[2]), jnp.exp(x[3]), jax.nn.sigmoid(x[4])])

    def log_density(x):
        mu1, mu2, s1, s2, theta = parameters(x)
        first = jnp.log(theta) - 0.5 * ((y - mu1) / s1) ** 2 - jnp.log(s1)
        second = jnp.log1p(-theta) - 0.5 * ((y - mu2) / s2) ** 2 - jnp.log(s2)
        prior = normal(jnp.array([mu1, mu2]), 0, 2) + normal(jnp.array([s1, s2]), 0, 2)
        prior += 4 * jnp.log(theta) + 4 * jnp.log1p(-theta)
        jacobian = x[1] + x[2] + x[3] + jnp.log(theta) + jnp.log1p(-theta)
        return jnp.sum(jnp.logaddexp(first, second)) + prior + jacobian

    return 5, log_density, parameters


def forward(log_emission, log_transition):
    def step(alpha, emission):
        return logsumexp(alpha[:, None] + log_transition, axis=0) + emission, None

    alpha, _ = jax.lax.scan(step, log_emission[0], log_emission[1:])
    return logsumexp(alpha)


def hmm_example(data):
    y = jnp.array(data["y"], float)

    def parameters(x):
        a, b = jax.nn.sigmoid(x[0]), jax.nn.sigmoid(x[1])
        mu1 = jnp.exp(x[2])
        return jnp.array([a, 1 - a, b, 1 - b, mu1, mu1 + jnp.exp(x[3])])

    def log_density(x):
        a, na, b, nb, mu1, mu2 = parameters(x)
        emission = -0.5 * (y[:, None] - jnp.array([mu1, mu2])) ** 2
        value = forward(emission, jnp.log(jnp.array([[a, na], [b, nb]])))
        value += normal(mu1, 3, 1) + normal(mu2, 10, 1)
        return value + jnp.log(a * na) + jnp.log(b * nb) + x[2] + x[3]

    return 4, log_density, parameters


def hmm_drive(data):
    u, v = jnp.array(data["u"], float), jnp.array(data["v"], float)
    alpha = jnp.array(data["alpha"], float)

    def parameters(x):
        a, b = jax.nn.sigmoid(x[0]), jax.nn.sigmoid(x[1])
        phi, lam = jnp.exp(x[2]), jnp.exp(x[4])
        return jnp.array([a, 1 - a, b, 1 - b, phi, phi + jnp.exp(x[3]), lam, lam + jnp.exp(x[5])])

    def log_density(x):
        a, na, b, nb, phi1, phi2, lam1, lam2 = parameters(x)
        phi, lam = jnp.array([phi1, phi2]), jnp.array([lam1, lam2])
        emission = jnp.log(phi) - phi * u[:, None] + jnp.log(lam) - lam * v[:, None]
        value = forward(emission, jnp.log(jnp.array([[a, na], [b, nb]])))
        value += jnp.sum((alpha[0] - 1) * jnp.log(jnp.array([a, na])) + (alpha[1] - 1) * jnp.log(jnp.array([b, nb])))
        value += normal(phi, jnp.array([0.0, 3.0]), 1) + normal(lam, jnp.array([0.0, 3.0]), 1)
        return value + jnp.log(a * na) + jnp.log(b * nb) + x[2] + x[3] + x[4] + x[5]

    return 6, log_density, parameters


def kernel(x, rho, alpha):
    return alpha**2 * jnp.exp(-0.5 * ((x[:, None] - x[None, :]) / rho) ** 2)


def gp_hyper(rho, alpha):
    return 24 * jnp.log(rho) - 4 * rho + normal(alpha, 0, 2)


def gp_poisson(data):
    x_in, counts = jnp.array(data["x"], float), jnp.array(data["k"], float)

    def unpack(x):
        rho, alpha = jnp.exp(x[0]), jnp.exp(x[1])
        factor = jnp.linalg.cholesky(kernel(x_in, rho, alpha) + 1e-10 * jnp.eye(len(x_in)))
        return rho, alpha, factor @ x[2:]

    def log_density(x):
        rho, alpha, f = unpack(x)
        return jnp.sum(counts * f - jnp.exp(f)) + normal(x[2:], 0, 1) + gp_hyper(rho, alpha) + x[0] + x[1]

    def parameters(x):
        rho, alpha, f = unpack(x)
        return jnp.concatenate([jnp.array([rho, alpha]), f])

    return 2 + len(x_in), log_density, parameters


def gp_regression(data):
    x_in, y = jnp.array(data["x"], float), jnp.array(data["y"], float)

    def log_density(x):
        rho, alpha, sigma = jnp.exp(x)
        factor = jnp.linalg.cholesky(kernel(x_in, rho, alpha) + sigma * jnp.eye(len(x_in)))
        white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        value = -0.5 * white @ white - jnp.sum(jnp.log(jnp.diag(factor)))
        return value + gp_hyper(rho, alpha) + normal(sigma, 0, 1) + jnp.sum(x)

    return 3, log_density, jnp.exp


def autoregression(data):
    y, order = np.array(data["y"], float), data["K"]
    lags = jnp.array(np.column_stack([y[order - k : len(y) - k] for k in range(1, order + 1)]))
    rest = jnp.array(y[order:])

    def parameters(x):
        return x.at[-1].set(jnp.exp(x[-1]))

    def log_density(x):
        sigma = jnp.exp(x[-1])
        value = normal(rest, x[0] + lags @ x[1:-1], sigma)
        return value + normal(x[:-1], 0, 10) + half_cauchy(sigma, 2.5) + x[-1]

    return order + 2, log_density, parameters


def garch(data):
    y, first = jnp.array(data["y"], float), data["sigma1"]

    def parameters(x):
        alpha1 = jax.nn.sigmoid(x[2])
        return jnp.array([x[0], jnp.exp(x[1]), alpha1, (1 - alpha1) * jax.nn.sigmoid(x[3])])

    def log_density(x):
        mu, alpha0, alpha1, beta1 = parameters(x)

        def step(variance, previous):
            variance = alpha0 + alpha1 * (previous - mu) ** 2 + beta1 * variance
            return variance, variance

        _, later = jax.lax.scan(step, jnp.array(first**2), y[:-1])
        variance = jnp.concatenate([jnp.array([first**2]), later])
        value = jnp.sum(-0.5 * (y - mu) ** 2 / variance - 0.5 * jnp.log(variance))
        share = jax.nn.sigmoid(x[3])
        jacobian = x[1] + jnp.log(alpha1 * (1 - alpha1)) + jnp.log((1 - alpha1) * share * (1 - share))
        return value + jacobian

    return 4, log_density, parameters


def lotka_volterra(data):
    times = np.concatenate([[0.0], data["ts"]])
    y, y_init = jnp.array(data["y"], float), jnp.array(data["y_init"], float)
    steps = 50  # of fourth-order Runge-Kutta in each interval
    widths = jnp.array(np.diff(times)) / steps

    def solve(theta, z):
        a, b, c, d = theta

        def slope(z):
            return jnp.array([(a - b * z[1]) * z[0], (-c + d * z[0]) * z[1]])

        def small(z, h):
            k1 = slope(z)
            k2 = slope(z + 0.5 * h * k1)
            k3 = slope(z + 0.5 * h * k2)
            k4 = slope(z + h * k3)
            return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        def interval(z, h):
            z, _ = jax.lax.scan(small, z, jnp.full(steps, h))
            return z, z

        return jax.lax.scan(interval, z, widths)[1]

    def log_density(x):
        theta, z_init, sigma = jnp.exp(x[:4]), jnp.exp(x[4:6]), jnp.exp(x[6:])
        path = solve(theta, z_init)
        value = normal(jnp.log(y_init), jnp.log(z_init), sigma) + normal(jnp.log(y), jnp.log(path), sigma[None, :])
        value += normal(theta[jnp.array([0, 2])], 1, 0.5) + normal(theta[jnp.array([1, 3])], 0.05, 0.05)
        value += normal(x[6:], -1, 1) + normal(x[4:6], jnp.log(10.0), 1)  # log-normal: the Jacobian cancels 1/x
        return value + jnp.sum(x[:4])

    return 8, log_density, jnp.exp


def kid_score(data):
    score, iq = jnp.array(data["kid_score"], float), jnp.array(data["mom_iq"], float)

    def log_density(x):
        sigma = jnp.exp(x[2])
        return normal(score, x[0] + x[1] * iq, sigma) + half_cauchy(sigma, 2.5) + x[2]

    return 3, log_density, lambda x: x.at[2].set(jnp.exp(x[2]))


def linear_regression(data):
    design, y = jnp.array(data["X"], float), jnp.array(data["y"], float)

    def log_density(x):
        sigma = jnp.exp(x[-1])
        return normal(y, design @ x[:-1], sigma) + normal(x[:-1], 0, 10) + normal(sigma, 0, 10) + x[-1]

    return design.shape[1] + 1, log_density, lambda x: x.at[-1].set(jnp.exp(x[-1]))


MODELS = {
    "eight_schools_noncentered": eight_schools,
    "low_dim_gauss_mix": gauss_mix,
    "hmm_example": hmm_example,
    "hmm_drive_0": hmm_drive,
    "gp_pois_regr": gp_poisson,
    "gp_regr": gp_regression,
    "arK": autoregression,
    "garch11": garch,
    "lotka_volterra": lotka_volterra,
    "kidscore_momiq": kid_score,
    "blr": linear_regression,
}
#: Posteriors with strong linear correlation (an intercept far outside the data): the full covariance is learned.
DENSE = {"kidscore_momiq", "garch11", "lotka_volterra"}


def run(row):
    dim, log_density, parameters = MODELS[row["model"]](row["data"])
    gradient = jax.jit(jax.value_and_grad(log_density))
    gather = jax.jit(jax.vmap(parameters))

    def value_and_grad(x):
        value, slope = gradient(x)
        return float(value), np.asarray(slope)

    def initial(rng):
        for _ in range(1000):
            x = rng.uniform(-2, 2, size=dim)
            value, slope = value_and_grad(x)
            if np.isfinite(value) and np.isfinite(slope).all():
                return x
        raise ValueError("no finite start")

    started = perf_counter()
    sampler = mcmc.NUTS(value_and_grad, metric="dense" if row["model"] in DENSE else "diag", target_accept=0.9)
    trace = mcmc.sample(
        sampler, initial, n_draws=DRAWS, n_warmup=WARMUP, n_chains=CHAINS, random_state=1, warn=False,
        record=lambda x: {"x": x},
    )  # fmt: skip
    seconds = perf_counter() - started
    values = np.asarray(gather(trace.flat("x"))).reshape(CHAINS, DRAWS, -1)
    summary = mcmc.Trace({"p": values}).summary()
    reference = row["n_draws"]
    mean, sd = np.array(row["mean"]), np.array(row["sd"])
    # The reference has an error of its own: `reference` draws that are nearly independent.
    mean_z = (summary["mean"] - mean) / np.sqrt(summary["mcse_mean"] ** 2 + sd**2 / reference)
    sd_z = (summary["sd"] - sd) / np.sqrt(
        summary["mcse_sd"] ** 2 + summary["mcse_sd"] ** 2 * summary["ess_bulk"] / reference
    )
    plain = np.abs(summary["mean"] - mean) / summary["mcse_mean"]
    return {
        "mean": np.abs(mean_z).max(),
        "sd": np.abs(sd_z).max(),
        "plain": plain.max(),
        "r_hat": np.nanmax(summary["r_hat"]),
        "ess": np.nanmin(summary["ess_bulk"]),
        "divergent": int((trace.stats["divergent"] > 0).sum()),
        "seconds": seconds,
        "n": len(mean),
    }


def main():
    folder = os.environ.get("PLURI_DATA")
    if not folder:
        sys.exit("set PLURI_DATA to the folder that holds posteriordb_reference.jsonl.gz")
    with gzip.open(Path(folder) / "posteriordb_reference.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    wanted = set(sys.argv[1:])
    print(f"{CHAINS} chains x ({WARMUP} + {DRAWS}); deviations in standard errors (largest over the parameters)")
    print(f"{'posterior':<44}{'mean':>7}{'sd':>7}{'mean*':>7}{'R-hat':>8}{'ESS':>8}{'div.':>6}{'s':>7}")
    worst = 0.0
    for row in rows:
        if wanted and row["model"] not in wanted:
            continue
        found = run(row)
        worst = max(worst, found["mean"], found["sd"])
        verdict = "" if max(found["mean"], found["sd"]) < 4 and found["r_hat"] < 1.01 else "  <-- outside"
        print(
            f"{row['name']:<44}{found['mean']:>7.2f}{found['sd']:>7.2f}{found['plain']:>7.2f}{found['r_hat']:>8.4f}{found['ess']:>8.0f}"
            f"{found['divergent']:>6}{found['seconds']:>7.1f}{verdict}",
            flush=True,
        )
    print("mean*: in our own standard errors alone, as if the reference had none")
    print(f"largest deviation {worst:.2f} standard errors (limit 4)")


if __name__ == "__main__":
    main()
