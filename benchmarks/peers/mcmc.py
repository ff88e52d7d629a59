"""Eight schools (non-centred) and a logistic regression by our NUTS and by BlackJAX: the first call, then later ones.

Each library runs in a fresh process, one after the other, with 4 chains x (1000 warm-up + 1000 draws). The first call
has all imports in it and an empty cache of compiled code. Seconds are those of the processors, all of them together, so
that other work on the machine counts little; ``--wall`` for those of the clock. Ours computes in double precision,
BlackJAX in single precision unless it is told otherwise: it is run both ways, and ratios are to the first.
Run: ``python benchmarks/peers/mcmc.py [schools] [logistic] [--wall]`` (needs ``pip install 'pluri[jax]'``).
"""

import json
import os
import subprocess
import sys
import tempfile
from time import perf_counter, process_time

CHAINS, WARMUP, DRAWS, LATER = 4, 1000, 1000, 5
Y = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
SIGMA = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
DIM = {"schools": 10, "logistic": 20}
seconds_of = perf_counter if "--wall" in sys.argv else process_time


def logistic_data():
    """A thousand samples of twenty features, and labels from coefficients of standard deviation 0.5."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    return X, (rng.random(1000) < 1 / (1 + np.exp(-X @ (0.5 * rng.normal(size=20))))).astype(float)


def plain_schools():
    import math

    import numpy as np

    y, precision, ones = np.array(Y), 1 / np.array(SIGMA) ** 2, np.ones(8)

    def value_and_grad(x):
        mu, log_tau = x[:2].tolist()
        z = x[2:]
        tau = math.exp(log_tau)
        square = tau * tau
        residual = y - mu - tau * z
        weighted = residual * precision
        value = log_tau - math.log1p(square / 25.0) - mu * mu / 50.0
        value -= 0.5 * float(residual.dot(weighted) + z.dot(z))
        gradient = np.empty(10)
        gradient[0] = weighted.dot(ones) - mu / 25.0
        gradient[1] = tau * float(weighted.dot(z)) + (25.0 - square) / (25.0 + square)
        gradient[2:] = tau * weighted - z
        return value, gradient

    return {"value_and_grad": value_and_grad}


def compiled_schools():
    import math

    import numpy as np

    def density(x, gradient, data):
        y, sigma = data
        mu, log_tau = x[0], x[1]
        tau = math.exp(log_tau)
        square = tau * tau
        value = log_tau - math.log1p(square / 25.0) - mu * mu / 50.0
        total, along = 0.0, 0.0
        for j in range(8):
            z = x[2 + j]
            residual = y[j] - mu - tau * z
            weighted = residual / sigma[j] ** 2
            value -= 0.5 * (residual * weighted + z * z)
            total += weighted
            along += weighted * z
            gradient[2 + j] = tau * weighted - z
        gradient[0] = total - mu / 25.0
        gradient[1] = tau * along + (25.0 - square) / (25.0 + square)
        return value

    return {"value_and_grad": density, "compiled": True, "data": (np.array(Y), np.array(SIGMA))}


def compiled_logistic():
    """Prior N(0, 1) of each coefficient; ``sum_i y_i e_i - log(1 + exp e_i)`` for ``e = X b``.

    X comes by columns, so that every loop is over samples and is vectorised. So is ``exp(-|e|)``, which without Intel's
    library Numba would ask for one number at a time: a polynomial at a 256th of the exponent, squared eight times, with
    a relative error of 1e-13.
    """
    import math

    import numba
    import numpy as np

    @numba.njit(fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
    def density(b, gradient, data):
        X, y = data
        n = len(y)
        e, factors = np.zeros(n), np.empty(n)
        for j in range(len(b)):
            for i in range(n):
                e[i] += X[j, i] * b[j]
        value = 0.0
        for i in range(n):
            x = -abs(e[i]) / 256 if abs(e[i]) < 40 else -40 / 256
            x = 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7 * (1 + x / 8)))))))
            x *= x
            x *= x
            x *= x
            x *= x
            x *= x
            x *= x
            x *= x
            x *= x
            factors[i] = 1 + x
            value += (y[i] - 0.5) * e[i] - 0.5 * abs(e[i])
            e[i] = y[i] - (1.0 if e[i] > 0 else x) / (1 + x)
        product = 1.0
        for i in range(n):
            product *= factors[i]
            if i % 32 == 0:  # one logarithm for 32 factors of at most 2
                value -= math.log(product)
                product = 1.0
        for j in range(len(b)):
            total = 0.0
            for i in range(n):
                total += X[j, i] * e[i]
            gradient[j] = total - b[j]
            value -= 0.5 * b[j] * b[j]
        return value - math.log(product)

    X, y = logistic_data()
    return {"value_and_grad": density, "compiled": True, "data": (np.ascontiguousarray(X.T), y)}


def ours(problem, kind, n_jobs):
    started = seconds_of()
    from pluri.inference import mcmc

    settings = {"plain": plain_schools, "compiled": compiled_schools if problem == "schools" else compiled_logistic}
    kernel = mcmc.NUTS(**settings[kind]())

    def run(seed):
        trace = mcmc.sample(
            kernel, lambda rng: rng.normal(size=DIM[problem]), n_draws=DRAWS, n_warmup=WARMUP, n_chains=CHAINS,
            random_state=seed, n_jobs=n_jobs, warn=False,
        )  # fmt: skip
        return trace["x"]

    return run, started


def theirs(problem):
    started = seconds_of()
    import blackjax
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_enable_x64", "--double" in sys.argv)

    y, sigma = jnp.array(Y), jnp.array(SIGMA)

    def schools(x):
        mu, log_tau, z = x[0], x[1], x[2:]
        tau = jnp.exp(log_tau)
        value = -0.5 * jnp.sum(((y - mu - tau * z) / sigma) ** 2) - 0.5 * jnp.sum(z**2)
        return value - mu * mu / 50.0 - jnp.log1p(tau * tau / 25.0) + log_tau

    X, labels = (jnp.array(part) for part in logistic_data())

    def logistic(b):
        e = X @ b
        return jnp.sum(labels * e - jax.nn.softplus(e)) - 0.5 * jnp.sum(b * b)

    log_density = schools if problem == "schools" else logistic

    def chain(key, position):
        warm_key, draw_key = jax.random.split(key)
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, settings), _ = adaptation.run(warm_key, position, num_steps=WARMUP)
        step = blackjax.nuts(log_density, **settings).step

        def one(state, key):
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, jax.random.split(draw_key, DRAWS))[1]

    compiled = jax.jit(jax.vmap(chain))

    def run(seed):
        keys = jax.random.split(jax.random.PRNGKey(seed), CHAINS)
        draws = compiled(keys, jnp.array(np.random.default_rng(seed).normal(size=(CHAINS, DIM[problem]))))
        return np.asarray(jax.block_until_ready(draws))

    return run, started


def measure(run, started):
    """Seconds of the first call with its imports, and of later ones with their effective draws."""
    run(0)
    first = seconds_of() - started
    seconds, draws = [], []
    for seed in range(1, LATER + 1):
        began = seconds_of()
        draws.append(run(seed))
        seconds.append(seconds_of() - began)
    from pluri.inference import mcmc

    dim = draws[0].shape[2]
    effective = [min(mcmc.ess_bulk(x[:, :, i]) for i in range(dim)) for x in draws]
    rhat = max(mcmc.r_hat(x[:, :, i]) for x in draws for i in range(dim))
    return {"first": first, "later": seconds, "ess": effective, "r_hat": rhat,
            "mean": sum(float(x[:, :, 0].mean()) for x in draws) / len(draws)}  # fmt: skip


def child(*arguments):
    command = [sys.executable, __file__, *arguments, *[word for word in sys.argv if word == "--wall"]]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(output.stdout.splitlines()[-1])


def compare(problem):
    rows = {"BlackJAX": child("theirs", problem), "BlackJAX, double precision": child("theirs", problem, "--double")}
    if problem == "schools":
        rows["pluri, 1 process"] = child("ours", problem, "plain", "1")
        if seconds_of is perf_counter:
            rows["pluri, 2 processes"] = child("ours", problem, "plain", "2")
    rows |= {f"pluri compiled, {n} thread(s)": child("ours", problem, "compiled", str(n)) for n in (1, 2)}
    peer = rows["BlackJAX"]
    peer_rate = sum(peer["ess"]) / sum(peer["later"])
    kind = "of the clock" if seconds_of is perf_counter else "of processors"
    print(
        f"{problem}, {CHAINS} chains x ({WARMUP} + {DRAWS}); effective: smallest bulk ESS, over {LATER} later calls; "
        f"seconds {kind}"
    )
    columns = ("first call", "later", "ESS", "ESS/s", "R-hat", "mean", "first, peer/ours", "ESS/s, ours/peer")
    print(" " * 30 + "".join(f"{name:>{width}}" for name, width in zip(columns, (12, 10, 8, 9, 8, 8, 18, 18))))
    for name, row in rows.items():
        rate = sum(row["ess"]) / sum(row["later"])
        print(
            f"{name:<30}{row['first']:>10.2f} s{sum(row['later']) / LATER:>8.3f} s{sum(row['ess']) / LATER:>8.0f}"
            f"{rate:>9.0f}{row['r_hat']:>8.4f}{row['mean']:>8.3f}{peer['first'] / row['first']:>17.1f}x"
            f"{rate / peer_rate:>17.1f}x"
        )


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if arguments[:1] == ["theirs"]:
        print(json.dumps(measure(*theirs(arguments[1]))))
    elif arguments[:1] == ["ours"]:
        print(json.dumps(measure(*ours(arguments[1], arguments[2], int(arguments[3])))))
    else:
        for problem in arguments or DIM:
            compare(problem)
        print("wanted: compiled at least 2x the effective draws a second, first call below 3 s; plain within 3x")


if __name__ == "__main__":
    main()
