"""``pluri demo prior``: an HMM and a diversified HMM on the toy problem, side by side.

Each data set (300 sequences of length 6, five states) is fitted from two starts: the poor one of the published
experiment [1]_ (means from N(0, 1), variances from Gamma(1, 1), start and transition rows from Dirichlet(3)), the same
for both models, and the k-means start that `GaussianHMM` makes for itself.

References
----------
.. [1] Qiao, M., Bian, W., Xu, R. Y. D. & Tao, D. (2015). Diversified hidden Markov models for sequential labeling.
   IEEE Trans. Knowledge and Data Engineering 27, 2947-2960.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import print_json, reporting
from pluri.cli.demo.part import prepare_folder

if TYPE_CHECKING:
    from numpy.random import Generator

    from pluri.datasets import ToyHMM

FILE = "toy_hmm.png"
STRENGTH = 1.0
STARTS = ("poor", "k-means")
MODELS = {"HMM": 0.0, "diversified": STRENGTH}
TRUTH = "truth"
#: A state counts as found if it labels at least so many of the 1800 samples, as in the published experiment.
FOUND = 50


@dataclass(frozen=True)
class Outcome:
    """One model on one data set."""

    start: str
    model: str
    data_set: int
    accuracy: float
    diversity: float
    log_det: float
    states_found: float
    log_likelihood: float
    seconds: float
    n_iter: int


def prior(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the figure.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and the starts.")] = 0,
    data_sets: Annotated[int, typer.Option(min=2, max=1000, help="Number of data sets.")] = 10,
    as_json: options.Json = False,
) -> None:
    """Compare an HMM with a diversified HMM on a toy problem: a table and a figure."""
    with reporting():
        figure = output / FILE
        prepare_folder(output, [FILE])
        outcomes, example = run(seed, data_sets)
        from pluri.cli.demo.prior_figure import draw

        draw(example, outcomes, figure)
        if as_json:
            print_json(
                {
                    "summary": summarize(outcomes),
                    "reading": reading(outcomes),
                    "outcomes": [dataclasses.asdict(outcome) for outcome in outcomes],
                    "figure": str(figure),
                }
            )
            return
        _print_results(outcomes, data_sets)
        print(f"\nFigure: {figure}")


def run(seed: int, data_sets: int) -> tuple[list[Outcome], dict[str, Any]]:
    """Fit everything; also return the first data set and its models from the poor start, to be drawn."""
    import numpy as np
    from rich.console import Console
    from rich.progress import track

    from pluri.datasets import make_toy_hmm

    outcomes: list[Outcome] = []
    example: dict[str, Any] = {}
    _warm_up()
    console = Console(stderr=True)
    numbers = range(data_sets)
    for number in track(numbers, "fitting", console=console, transient=True, disable=not console.is_terminal):
        rng = np.random.default_rng([seed, number])
        toy = make_toy_hmm(random_state=rng)
        poor = _poor_start(toy, rng)
        outcomes.append(_judge(_true_model(toy), toy, TRUTH, TRUTH, number, 0.0))
        for start in STARTS:
            for name, strength in MODELS.items():
                began = time.perf_counter()
                model = _fit(toy, strength, poor if start == "poor" else None, number)
                seconds = time.perf_counter() - began
                outcomes.append(_judge(model, toy, start, name, number, seconds))
                if number == 0 and start == "poor":
                    example |= {"toy": toy, name: model}
    return outcomes, example


def _warm_up() -> None:
    """Compile the loops, so that the seconds in the table are those of the fits."""
    from pluri.datasets import make_toy_hmm

    toy = make_toy_hmm(20, random_state=0)
    for strength in MODELS.values():
        _fit(toy, strength, None, 0)


def _poor_start(toy: ToyHMM, rng: Generator) -> dict[str, Any]:
    import numpy as np

    k = len(toy.startprob)
    return {
        "startprob_": rng.dirichlet(np.full(k, 3.0)),
        "transmat_": rng.dirichlet(np.full(k, 3.0), size=k),
        "means_": rng.normal(size=(k, 1)),
        "covars_": rng.gamma(1.0, 1.0, size=(k, 1)),
    }


def _fit(toy: ToyHMM, strength: float, start: dict[str, Any] | None, seed: int) -> Any:
    from pluri.sequences import GaussianHMM

    model = GaussianHMM(len(toy.startprob), diversity=strength, random_state=seed)
    if start is not None:
        model.init_params = ""
        for name, value in start.items():
            setattr(model, name, value)
    from threadpoolctl import threadpool_limits

    # So few rows gain nothing from threads; k-means loses a lot of time waiting for them.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a poor start may need more iterations or lose a state: that is the point
        return model.fit(toy.X, lengths=toy.lengths)


def _true_model(toy: ToyHMM) -> Any:
    from pluri.sequences import GaussianHMM

    model = GaussianHMM(len(toy.startprob))
    model.startprob_, model.transmat_ = toy.startprob, toy.transmat
    model.means_, model.covars_ = toy.means, toy.covars
    return model


def _judge(model: Any, toy: ToyHMM, start: str, name: str, number: int, seconds: float) -> Outcome:
    from pluri.metrics import bhattacharyya_diversity, effective_states, one_to_one_accuracy

    states = model.predict(toy.X, toy.lengths)
    diversity = bhattacharyya_diversity(model.transmat_)
    return Outcome(
        start=start,
        model=name,
        data_set=number,
        accuracy=one_to_one_accuracy(toy.states, states),
        diversity=diversity.mean,
        log_det=diversity.log_det,
        states_found=effective_states(states, threshold=FOUND),
        log_likelihood=model.score(toy.X, lengths=toy.lengths),
        seconds=seconds,
        n_iter=getattr(model, "n_iter_", 0),
    )


def summarize(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """A row for each start and model: mean and spread of the accuracy, medians of the rest."""
    import numpy as np

    rows = []
    for start, model in dict.fromkeys((outcome.start, outcome.model) for outcome in outcomes):
        group = [outcome for outcome in outcomes if (outcome.start, outcome.model) == (start, model)]
        accuracy = [outcome.accuracy for outcome in group]
        medians = {
            name: float(np.median([getattr(outcome, name) for outcome in group]))
            for name in ("diversity", "log_det", "log_likelihood", "seconds", "n_iter")
        }
        rows.append(
            {
                "start": start,
                "model": model,
                "data_sets": len(group),
                "accuracy": float(np.mean(accuracy)),
                "accuracy_sd": float(np.std(accuracy, ddof=1)),
                "states_found": float(np.mean([outcome.states_found for outcome in group])),
                **medians,
            }
        )
    return rows


def reading(outcomes: list[Outcome]) -> list[str]:
    """What the numbers show, in plain sentences made from the numbers themselves."""
    import numpy as np

    def values(start: str, model: str, name: str) -> Any:
        chosen = [outcome for outcome in outcomes if (outcome.start, outcome.model) == (start, model)]
        return np.array([getattr(outcome, name) for outcome in chosen])

    plain, diverse = MODELS
    sentences = []
    for start in STARTS:
        before, after = values(start, plain, "accuracy"), values(start, diverse, "accuracy")
        gain = after - before
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        clear = abs(gain.mean()) > 2 * error and abs(gain.mean()) >= 0.005
        size = f"{gain.mean():+.3f}, standard error {error:.3f}"
        verdict = f"more than chance ({size})" if clear else f"no more than chance ({size})"
        sentences.append(
            f"From the {start} start the prior takes the mean accuracy from {before.mean():.3f} to {after.mean():.3f}: "
            f"{verdict}; it helped on {(gain > 0.005).sum()}, hurt on {(gain < -0.005).sum()} of {len(gain)} data sets."
        )
    before, after = values("poor", plain, "diversity"), values("poor", diverse, "diversity")
    sentences.append(
        f"What it does is keep the transition rows apart: from the poor start their mean distance rose on "
        f"{(after > before).sum()} of {len(after)} data sets (median {np.median(before):.2f} to "
        f"{np.median(after):.2f}; {np.median(values(TRUTH, TRUTH, 'diversity')):.2f} is true)."
    )
    poor, good = values("poor", plain, "accuracy").mean(), values("k-means", plain, "accuracy").mean()
    sentences.append(
        f"The start matters more: k-means takes the plain HMM from {poor:.3f} to {good:.3f}, where "
        f"{values(TRUTH, TRUTH, 'accuracy').mean():.3f} is the best possible."
    )
    return sentences


def _print_results(outcomes: list[Outcome], data_sets: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = f"Five-state toy problem, {data_sets} data sets, diversity {STRENGTH:g}"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))  # 80 columns are enough
    for name in ("start", "model"):
        table.add_column(name, no_wrap=True)
    for name in ("accuracy", "distance", "log det", "states", "log-lik.", "sec"):
        table.add_column(name, justify="right", no_wrap=True)
    previous = None
    for row in summarize(outcomes):
        start = row["start"]
        if previous not in (None, start):
            table.add_section()
        table.add_row(
            "" if start == previous else start,
            row["model"],
            f"{row['accuracy']:.3f}±{row['accuracy_sd']:.3f}",
            f"{row['diversity']:.3f}",
            f"{row['log_det']:.2f}",
            f"{row['states_found']:.1f}",
            f"{row['log_likelihood']:.0f}",
            "" if start == TRUTH else f"{row['seconds']:.2f}",
        )
        previous = start
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "accuracy: one-to-one, mean ± sd over the data sets. distance: mean Bhattacharyya distance of the transition "
        f"rows; log det: of their kernel. states: mean number that label at least {FOUND} of 1800 samples. distance, "
        "log det, log-likelihood and seconds are medians.\n",
        style="dim",
    )
    for sentence in reading(outcomes):
        console.print(f"- {sentence}", markup=False)
