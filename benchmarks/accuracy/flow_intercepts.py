"""Whether the steps of a flow should have a constant: held-out log density per step with and without it.

    PLURI_DATA=folder python benchmarks/accuracy/flow_intercepts.py

Flows made by `make_switching_flow` (ten data sets), and walks and runs of one person in six coordinates of Isomap,
every fifth recording held out. The folder of data files is needed for the second part alone.
"""

from __future__ import annotations

import numpy as np

from pluri.datasets import data_home, make_switching_flow
from pluri.dynamics import MultiTaskDynamics
from pluri.embedding import SpectralRegression

#: One long chain with clusters of fifty rows: what the figures were measured with.
ONE_CHAIN = {"n_chains": 1, "n_warmup": 200, "n_draws": 100, "n_predictive": 10, "rows_per_cluster": 50}
Motions = list[np.ndarray]


def density(train: Motions, test: Motions, train_tasks: list[int], test_tasks: list[int]) -> np.ndarray:
    """Log density per held-out step with a constant, and without."""
    n_steps = sum(len(X) - 1 for X in test)
    found = []
    for choice in (True, False):
        model = MultiTaskDynamics(fit_intercept=choice, random_state=0).fit(train, tasks=train_tasks)
        found.append(model.score(test, tasks=test_tasks) / n_steps)
    return np.array(found)


def motions() -> tuple[Motions, list[int]]:
    """Walks and runs of subject 35, in coordinates."""
    file = np.load(data_home() / "mocap_cmu_35_16.npz")
    X = file["X"].astype(float)
    kept = (X.std(axis=0) > 1e-6) & ~np.isin(file["channels"], ["Hips:Xposition", "Hips:Zposition"])
    parts = np.split(X[:, kept], np.cumsum(file["length"])[:-1])
    own = [n for n, trial in enumerate(file["trial"]) if trial.startswith("35")]
    chosen = [parts[n] for n in own]
    embedding = SpectralRegression(6, 20, random_state=0, **ONE_CHAIN).fit(np.concatenate(chosen))
    tasks = [int(file["description"][n].startswith("run")) for n in own]
    return [embedding.transform(part) for part in chosen], tasks


def main() -> None:
    made = []
    for seed in range(10):
        train, test = make_switching_flow(random_state=seed), make_switching_flow(random_state=100 + seed)
        made.append(density(train.X, test.X, train.tasks.tolist(), test.tasks.tolist()))
    gain = np.array(made)[:, 0] - np.array(made)[:, 1]
    print(f"made flows: with {np.mean(made, axis=0)[0]:.2f}, without {np.mean(made, axis=0)[1]:.2f}, "
          f"gain {gain.mean():.2f} +- {gain.std(ddof=1) / np.sqrt(len(gain)):.2f}")  # fmt: skip
    if not (data_home() / "mocap_cmu_35_16.npz").exists():
        print("skipped: motions, no data files")
        return
    X, tasks = motions()
    held_out = [n % 5 == 4 for n in range(len(X))]
    train, test = ([x for x, out in zip(X, held_out) if out == wanted] for wanted in (False, True))
    train_tasks, test_tasks = ([t for t, out in zip(tasks, held_out) if out == wanted] for wanted in (False, True))
    with_constant, without = density(train, test, train_tasks, test_tasks)
    print(f"motions: with {with_constant:.2f}, without {without:.2f}")


if __name__ == "__main__":
    main()
