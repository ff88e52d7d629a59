"""Eight schools (non-centred) by our NUTS and by BlackJAX: the first call with all imports, then later calls.

Each library runs in a fresh process, one after the other, with 4 chains x (1000 warm-up + 1000 draws).
Run: ``python benchmarks/peers/mcmc.py`` (needs ``pip install 'pluri[jax]'``).
"""

import json
import subprocess
import sys
from time import perf_counter

CHAINS, WARMUP, DRAWS, LATER = 4, 1000, 1000, 5
Y = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
SIGMA = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]


def ours(n_jobs):
    started = perf_counter()
    import math

    import numpy as np

    from pluri.inference import mcmc

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

    def run(seed):
        trace = mcmc.sample(
            mcmc.NUTS(value_and_grad), lambda rng: rng.normal(size=10), n_draws=DRAWS, n_warmup=WARMUP,
            n_chains=CHAINS, random_state=seed, n_jobs=n_jobs, warn=False,
        )  # fmt: skip
        return trace["x"]

    return run, started


def theirs():
    started = perf_counter()
    import blackjax
    import jax
    import jax.numpy as jnp
    import numpy as np

    y, sigma = jnp.array(Y), jnp.array(SIGMA)

    def log_density(x):
        mu, log_tau, z = x[0], x[1], x[2:]
        tau = jnp.exp(log_tau)
        value = -0.5 * jnp.sum(((y - mu - tau * z) / sigma) ** 2) - 0.5 * jnp.sum(z**2)
        return value - mu * mu / 50.0 - jnp.log1p(tau * tau / 25.0) + log_tau

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
        draws = compiled(keys, jnp.array(np.random.default_rng(seed).normal(size=(CHAINS, 10))))
        return np.asarray(jax.block_until_ready(draws))

    return run, started


def measure(run, started):
    """Seconds of the first call with its imports, and of later ones with their effective draws."""
    run(0)
    first = perf_counter() - started
    seconds, draws = [], []
    for seed in range(1, LATER + 1):
        began = perf_counter()
        draws.append(run(seed))
        seconds.append(perf_counter() - began)
    from pluri.inference import mcmc

    effective = [min(mcmc.ess_bulk(x[:, :, i]) for i in range(10)) for x in draws]
    rhat = max(mcmc.r_hat(x[:, :, i]) for x in draws for i in range(10))
    return {"first": first, "later": seconds, "ess": effective, "r_hat": rhat,
            "mean": sum(float(x[:, :, 0].mean()) for x in draws) / len(draws)}  # fmt: skip


def main():
    if len(sys.argv) > 1:
        run, started = theirs() if sys.argv[1] == "theirs" else ours(int(sys.argv[2]))
        print(json.dumps(measure(run, started)))
        return

    def child(*arguments):
        output = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
        return json.loads(output.stdout.splitlines()[-1])

    rows = {
        "BlackJAX": child("theirs"),
        "pluri, 1 process": child("ours", "1"),
        "pluri, 2 processes": child("ours", "2"),
    }
    peer = rows["BlackJAX"]
    peer_rate = sum(peer["ess"]) / sum(peer["later"])
    print(
        f"eight schools, {CHAINS} chains x ({WARMUP} + {DRAWS}); effective: smallest bulk ESS, over {LATER} later calls"
    )
    columns = ("first call", "later", "ESS", "ESS/s", "R-hat", "first, peer/ours", "ESS/s, peer/ours")
    print(" " * 20 + "".join(f"{name:>{width}}" for name, width in zip(columns, (12, 9, 8, 9, 8, 18, 18))))
    for name, row in rows.items():
        rate = sum(row["ess"]) / sum(row["later"])
        print(
            f"{name:<20}{row['first']:>10.2f} s{sum(row['later']) / LATER:>7.2f} s{sum(row['ess']) / LATER:>8.0f}"
            f"{rate:>9.0f}"
            f"{row['r_hat']:>8.4f}{peer['first'] / row['first']:>17.1f}x{peer_rate / rate:>17.1f}x"
        )
    print("wanted: first call at least 5x, effective draws a second within 3x")


if __name__ == "__main__":
    main()
