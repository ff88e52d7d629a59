"""Annealed importance sampling on four problems with known answers.

A1: from N(0, 1) to a normal of mean 3, sd 1/2 (ratio of constants 0.5); A2: two modes in two dimensions (0.0277778);
A3: one and two narrow modes in six (1e-6, 3e-6); A4: evidence of a linear regression, of mixtures, of a tiny topic
model. Figures in the first column were measured with an independent implementation; "truth" rows are exact.

    python benchmarks/reproduce/ais_known_answers.py            # A3 takes a minute
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from published import Report
from scipy.special import gammaln, logsumexp

from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler, log_evidence
from pluri.inference.ais.bidirectional import bidirectional
from pluri.inference.ais.transitions import RandomWalkMoves


def main() -> None:
    one_dimension()
    exact_transitions()
    two_dimensions()
    six_dimensions()
    evidence()


def standard_normal(x):
    return -0.5 * np.square(x).sum(axis=1)


def draw_standard(dim):
    return lambda rng, n: rng.normal(size=(n, dim))


def narrow(x):
    return -np.square(x[:, 0] - 3.0) / 0.5


def one_dimension() -> None:
    report = Report("A1: Z = 0.5, random walk of sd 0.3 then 1, 5000 runs, mean and standard error over 20 repeats")
    measured = {1: (0.538, 0.005), 2: (0.484, None), 5: (0.512, None), 20: (0.516, 0.05), 100: (0.4973, 0.35)}
    for n, (ratio, share) in measured.items():
        runs = [
            AnnealedImportanceSampler(
                narrow, standard_normal, draw_standard(1), transition=RandomWalkMoves((0.3, 1.0)), n_temperatures=n,
                n_runs=5000, random_state=repeat, warn=False,
            ).run()
            for repeat in range(20)
        ]  # fmt: skip
        ratios = np.exp([run.log_z for run in runs])
        report.row(f"n = {n}: Z", ratio, ratios.mean(), ratios.std(ddof=1) / math.sqrt(20))
        report.row(f"n = {n}: effective share", share, np.mean([run.ess for run in runs]) / 5000)
        first = [run.log_weight_paths[:, 1] for run in runs]
        faulty = np.mean([np.exp(run.log_weights - early).mean() for run, early in zip(runs, first)])
        printed = {1: 1.0, 2: 0.480, 5: 0.842, 20: 0.775, 100: 0.585}[n]
        report.row(f"n = {n}: Z without the first factor (wrong)", printed, faulty)
    report.close()


def exact_transitions() -> None:
    report = Report("A1 with exact transitions: effective share and variance of the log weight, 100 000 runs")
    measured = {1: (0.0037, 148), 5: (0.059, 8.63), 20: (0.361, 1.376), 100: (0.797, 0.241), 1000: (0.977, 0.0239)}

    def move(rng, x, beta):
        return rng.normal(12.0 * beta / (1.0 + 3.0 * beta), 1.0 / math.sqrt(1.0 + 3.0 * beta), x.shape)

    for n, (share, variance) in measured.items():
        run = AnnealedImportanceSampler(
            narrow, standard_normal, draw_standard(1), transition=move, n_temperatures=n, keep_paths=False,
            n_runs=100_000 if n < 1000 else 20_000, random_state=0, warn=False,
        ).run()  # fmt: skip
        report.row(f"n = {n}: effective share", share, run.ess / len(run))
        report.row(f"n = {n}: variance of the log weight", variance, run.log_weights.var())
    report.close()


def two_dimensions() -> None:
    report = Report("A2: Z = 0.0277778, E[x_1] = 0.8; 2000 runs, mean and sd over 10 repeats")

    def target(x):
        modes = [np.log(w) - np.square(x - c).sum(axis=1) / 0.5 for w, c in ((0.3, -2.0), (0.7, 2.0))]
        return np.logaddexp(*modes)

    for n, ratio, share in ((10, 0.02788, 0.13), (50, 0.02740, 0.35), (200, 0.02778, 0.63)):
        runs = [
            AnnealedImportanceSampler(
                target, lambda x: -np.square(x).sum(axis=1) / 18.0, lambda rng, n: rng.normal(0.0, 3.0, (n, 2)),
                transition=RandomWalkMoves((0.5, 2.0)), n_temperatures=n, n_runs=2000, random_state=repeat, warn=False,
            ).run()
            for repeat in range(10)
        ]  # fmt: skip
        ratios = np.exp([run.log_z for run in runs])
        report.row(f"n = {n}: 100 Z", 100 * ratio, 100 * ratios.mean(), 100 * ratios.std(ddof=1))
        report.row(f"n = {n}: effective share", share, np.mean([run.ess for run in runs]) / 2000)
        means = [run.expect(lambda x: x[:, 0]).value for run in runs]
        report.row(f"n = {n}: E[x_1]", 0.818 if n == 200 else None, np.mean(means), np.std(means, ddof=1))
    report.close()


def one_mode(x):
    return -np.square(x - 1.0).sum(axis=1) / 0.02


def two_modes(x):
    return np.logaddexp(one_mode(x), math.log(128.0) - np.square(x + 1.0).sum(axis=1) / 0.005)


def draw_one_mode(rng, n):
    return rng.normal(1.0, 0.1, (n, 6))


def draw_two_modes(rng, n):
    first = rng.random((n, 1)) < 1 / 3
    return np.where(first, rng.normal(1.0, 0.1, (n, 6)), rng.normal(-1.0, 0.05, (n, 6)))


def six_dimensions() -> None:
    report = Report("A3: six dimensions, 200 temperatures, 1000 runs, random walk of sd 0.05, 0.15, 0.5")
    report.note("Z in units of 1e-6, truth 1 and 3; E[x_1] truth 1 and -1/3; reverse from exact draws")
    settings = (
        ("one mode", one_mode, draw_one_mode, 10, 0.985, 0.475, None, 2),
        ("two modes", two_modes, draw_two_modes, 10, 2.7, 0.035, -0.237, 3),
        ("two modes, one repeat (fails)", two_modes, draw_two_modes, 1, None, 0.013, None, 3),
    )
    for name, target, draw, n_steps, ratio, share, mean, repeats in settings:
        for repeat in range(repeats):
            sampler = AnnealedImportanceSampler(
                target, standard_normal, draw_standard(6), transition=RandomWalkMoves((0.05, 0.15, 0.5)),
                schedule="mixed", n_temperatures=200, n_steps_per_temperature=n_steps, random_state=repeat, warn=False,
            )  # fmt: skip
            both = bidirectional(sampler, draw(np.random.default_rng(repeat), 1000))
            value = both.forward.expect(lambda x: x[:, 0])
            report.row(f"{name}: Z", ratio, 1e6 * math.exp(both.lower), 1e6 * math.exp(both.lower) * both.lower_se)
            report.row(
                f"{name}: Z, reverse", None, 1e6 * math.exp(both.upper), 1e6 * math.exp(both.upper) * both.upper_se
            )
            report.row(f"{name}: effective share", share, both.forward.ess / 1000)
            report.row(f"{name}: E[x_1]", mean, value.value, value.standard_error)
            report.row(f"{name}: acceptance", 0.54, float(np.nanmean(both.forward.acceptance)))
            report.row(f"{name}: seconds of the forward run", None, both.forward.seconds)
            for problem in both.forward.diagnose():
                report.note(f"    {problem}")
    report.close()


def evidence() -> None:
    report = Report("A4: log evidence; first column exact (closed form, quadrature or enumeration)")
    rng = np.random.default_rng(0)
    n, dim = 30, 4
    X = rng.normal(size=(n, dim))
    y = X @ rng.normal(size=dim) + 0.5 * rng.normal(size=n)
    covariance = 0.25 * np.eye(n) + 4.0 * X @ X.T
    exact = -0.5 * (n * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    found = log_evidence(
        lambda b: -np.square(b).sum(axis=1) / 8.0 - 0.5 * dim * math.log(8.0 * math.pi),
        lambda b: -2.0 * np.square(y - b @ X.T).sum(axis=1) - 0.5 * n * math.log(0.5 * math.pi),
        lambda rng, m: rng.normal(0.0, 2.0, (m, dim)),
        n_temperatures=200, schedule="geometric", n_steps_per_temperature=5, random_state=0,
    )  # fmt: skip
    report.row("Bayesian linear regression", exact, found.value, found.standard_error)
    data = np.concatenate([rng.normal(-3, 1, 12), rng.normal(3, 1, 12)])
    for k in range(1, 5):
        quadrature = mixture_evidence(data, k) if k < 3 else None
        found = log_evidence(
            lambda m, k=k: -0.5 * np.square(m / 5).sum(axis=1) - k * math.log(5 * math.sqrt(2 * math.pi)),
            lambda m, k=k: mixture_likelihood(data, m),
            lambda rng, n, k=k: rng.normal(0, 5, (n, k)),
            n_temperatures=100, schedule="geometric", n_steps_per_temperature=4, random_state=k, warn=False,
        )  # fmt: skip
        report.row(f"mixture of {k} normals (two made the data)", quadrature, found.value, found.standard_error)
    topics = TinyTopics()
    found = log_evidence(
        topics.log_prior, topics.log_likelihood, topics.sample_prior, transition=topics.sweep, n_temperatures=20,
        n_runs=2000, random_state=0,
    )  # fmt: skip
    report.row("topics, tiny corpus (known: -7.5795091)", topics.enumerated(), found.value, found.standard_error)
    report.close()


def mixture_likelihood(data, means):
    """Equal weights, unit variances; means (n, k)."""
    logs = -0.5 * np.square(data[None, :, None] - means[:, None, :]) - 0.5 * math.log(2 * math.pi)
    return (logsumexp(logs, axis=2) - math.log(means.shape[1])).sum(axis=1)


def mixture_evidence(data, k):
    grid = np.linspace(-20, 20, 401)
    points = grid[:, None] if k == 1 else np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    total = [
        mixture_likelihood(data, part) - 0.5 * np.square(part / 5).sum(axis=1)
        for part in np.array_split(points, max(1, len(points) // 10_000))
    ]
    step = grid[1] - grid[0]
    return float(logsumexp(np.concatenate(total)) + k * math.log(step / (5 * math.sqrt(2 * math.pi))))


class TinyTopics:
    """Two documents (0,0,1), (2,2,1), two topics, alpha = eta = 1/2; states are the topics (n, 6) of the tokens."""

    words, documents = np.array([0, 0, 1, 2, 2, 1]), np.array([0, 0, 0, 1, 1, 1])

    def log_prior(self, z):
        counts = np.stack([[(z[:, self.documents == d] == k).sum(1) for k in (0, 1)] for d in (0, 1)])
        return (gammaln(1.0) - gammaln(4.0) + (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)).sum(axis=0)

    def log_likelihood(self, z):
        counts = np.stack([[(z[:, self.words == v] == k).sum(1) for v in (0, 1, 2)] for k in (0, 1)])
        ends = gammaln(1.5) - gammaln(counts.sum(axis=1) + 1.5)
        return (ends + (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)).sum(axis=0)

    def sample_prior(self, rng, n):
        theta = rng.beta(0.5, 0.5, (n, 2))
        return (rng.random((n, 6)) < theta[:, self.documents]).astype(np.int64)

    def sweep(self, rng, z, beta):
        """Gibbs on prior x likelihood^beta, token by token, all runs at a time."""
        for token in range(6):
            other = [z.copy(), z.copy()]
            for k in (0, 1):
                other[k][:, token] = k
            log_zero, log_one = (self.log_prior(z_k) + beta * self.log_likelihood(z_k) for z_k in other)
            z[:, token] = rng.random(len(z)) < 1.0 / (1.0 + np.exp(log_zero - log_one))
        return z

    def enumerated(self):
        states = np.array(list(itertools.product((0, 1), repeat=6)))
        return float(logsumexp(self.log_prior(states) + self.log_likelihood(states)))


if __name__ == "__main__":
    main()
