"""The training of decoders: minibatches with their share of true tokens, validation in both ways, and ensembles."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.checkpoint import Checkpoint
from pluri.networks.backend import jax
from pluri.networks.batches import bucket_edges, chunks, minibatches, rounded_rows
from pluri.networks.decoding import NO_KEY, free_running, teacher_forced
from pluri.networks.design import Design, initialize
from pluri.networks.error_rates import Scores, edit_distances
from pluri.networks.examples import Examples
from pluri.networks.scheduled_sampling import SampledLoss
from pluri.networks.schedules import ConstantRate, EpochRamp, probability_at
from pluri.networks.training import Optimizer, Training, train

#: Sequences that are asked about at once.
CHUNK = 256
#: Free-running error that rose by so much, of what it was at its best, is worth a word.
RISE = 0.1


@dataclass(frozen=True)
class Plan:
    """How a decoder is trained; see the parameters of `SequenceDecoder`."""

    loss: SampledLoss
    schedule: Callable[[Any], Any]
    optimizer: Optimizer
    learning_rate: float
    batch_size: int
    max_epochs: int
    min_epochs: int
    n_iter_no_change: int
    early_stopping: str | None
    verbose: int = 0


def n_batches(data: Examples, batch_size: int) -> int:
    """Minibatches of an epoch."""
    return len(minibatches(data.lengths, batch_size, bucket_edges(data.lengths, batch_size)))


def train_member(
    plan: Plan, data: Examples, held_out: Examples, start: Any, rng: np.random.Generator, place: Checkpoint | None
) -> Training:
    """Train one network; `start` are its first parameters, or None for random ones."""
    design = plan.loss.design
    params = initialize(design, rng) if start is None else start
    edges = bucket_edges(data.lengths, plan.batch_size)
    n_rows = min(plan.batch_size, len(data))
    sources = _source_lengths(data, edges)

    def epoch(number: int, first: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
        # Of its own, so that the order of the sequences does not depend on how many numbers the coins take.
        chance = np.random.default_rng(rng.integers(2**63))
        for step, (rows, length) in enumerate(minibatches(data.lengths, plan.batch_size, edges, rng), first):
            batch = data.batch(rows, length, n_rows, sources.get(length))
            if plan.loss.feedback is not None:
                eps = np.float32(probability_at(plan.schedule, step, number))
                batch |= plan.loss.draw(chance, length, n_rows) | {"eps": eps}
            yield batch

    def validate(params: Any) -> tuple[float, ...]:
        scores = evaluate(stack([params]), design, held_out)
        surprise = math.log(scores.perplexity)
        # Of epochs with equal errors, the surer one: a part so small that it only decides between those.
        judged = surprise if plan.early_stopping == "teacher_forced" else scores.free_running_error + 1e-6 * surprise
        return (judged, *scores)

    return train(
        params,
        plan.loss,
        epoch,
        rng=rng,
        validate=validate,
        optimizer=plan.optimizer,
        learning_rate=plan.learning_rate,
        max_epochs=plan.max_epochs,
        min_epochs=plan.max_epochs if plan.early_stopping is None else min(plan.min_epochs, plan.max_epochs),
        n_iter_no_change=plan.n_iter_no_change,
        checkpoint=place,
        verbose=plan.verbose,
    )


def _source_lengths(data: Examples, edges: NDArray[np.int64]) -> dict[int, int]:
    """Longest source of each bucket of targets."""
    if data.source_lengths is None:
        return {}
    bucket = np.searchsorted(edges, data.lengths)
    longest = [data.source_lengths[bucket == number].max(initial=1) for number in range(len(edges))]
    return {int(edge): int(length) for edge, length in zip(edges, longest)}


def evaluate(members: Any, design: Design, data: Examples) -> Scores:
    """Errors with the true tokens before each and without them, and the perplexity."""
    if data.targets is None or not len(data):
        raise ValueError("y must be given to tell how often a decoder is wrong")
    wrong_steps = n_steps = wrong_free = n_true = n_known = 0.0
    total = 0.0
    # All at the longest length: another program for shorter ones would take longer than it saves.
    longest, sources = int(data.lengths.max()), None
    if data.source_lengths is not None:
        sources = int(data.source_lengths.max())
    n_rows = rounded_rows(len(data), CHUNK)
    for rows, length in minibatches(data.lengths, n_rows, [longest]):
        batch = data.batch(rows, length, n_rows, sources)
        forced = teacher_forced(members, design, batch)
        free = free_running(members, design, batch, length, NO_KEY, np.float32(1.0))
        mask, truth = batch["mask"], batch["targets"]
        known = mask & (truth < design.n_outputs)
        wrong_steps += float(((np.asarray(forced.tokens) != truth) & mask).sum())
        total -= float(np.asarray(forced.log_probs, dtype=np.float64)[known].sum())
        n_steps, n_known = n_steps + float(mask.sum()), n_known + float(known.sum())
        found = np.asarray(free.tokens)
        if design.ends:
            lengths, found_lengths = mask.sum(axis=1) - 1, lengths_of(found, design.n_outputs - 1)
            found_lengths[len(rows) :] = lengths[len(rows) :] = 0
            wrong_free += float(edit_distances(truth, lengths, found, found_lengths).sum())
            n_true += float(lengths.sum())
        else:
            wrong_free += float(((found != truth) & mask).sum())
            n_true += float(mask.sum())
    perplexity = math.exp(min(700.0, total / n_known)) if n_known else math.nan
    return Scores(wrong_steps / n_steps, wrong_free / max(1.0, n_true), perplexity)


def lengths_of(tokens: NDArray[Any], end: int) -> NDArray[np.int64]:
    """Number of tokens before the end of each row, or all of them."""
    is_end = tokens == end
    return np.where(is_end.any(axis=1), is_end.argmax(axis=1), tokens.shape[1]).astype(np.int64)


def stack(networks: list[Any]) -> Any:
    """Members of an ensemble side by side."""
    return jax.tree.map(lambda *parts: np.stack([np.asarray(part) for part in parts]), *networks)


def asked(data: Examples, known: Any = ()) -> Iterator[tuple[NDArray[np.int64], int, int, int | None]]:
    """Rows to be asked about together, their padded length, number of rows, and length of the sources."""
    by = data.lengths if data.source_lengths is None else data.source_lengths
    for rows, length in chunks(by, CHUNK, known):
        n_rows = rounded_rows(len(rows), CHUNK)
        yield rows, length, n_rows, None if data.source_lengths is None else length


def warn_of_schedule(schedule: Any, first: float, last: float, n_steps: int, weak: bool) -> None:
    """Say what a schedule will do that is hardly meant; `weak` if the input tells little of the output."""
    if weak and first < 0.25:
        warnings.warn(
            f"schedule begins at {first:.3g}: below 0.25, without a warm-up, training diverges on language-like data",
            UserWarning,
            stacklevel=4,
        )
    constant = isinstance(schedule, ConstantRate) or (isinstance(schedule, EpochRamp) and schedule.start < 1)
    if not constant and last > 0.99:
        warnings.warn(
            f"schedule does not decay: it is {last:.3g} at the last of {n_steps} minibatches, so that the network "
            "never meets its own tokens",
            UserWarning,
            stacklevel=4,
        )


def warn_of_rise(training: Training) -> None:
    """Say so if the free-running error rose in the end while the teacher-forced one went on falling."""
    if not training.details or training.interrupted:
        return
    best, last = training.details[training.best_epoch - 1], training.details[-1]
    if last[2] > (1 + RISE) * best[2] + 1e-9 and last[1] < best[1]:
        warnings.warn(
            f"the free-running error rose from {best[2]:.3g} in epoch {training.best_epoch} to {last[2]:.3g} in the "
            f"last one, while the teacher-forced error fell from {best[1]:.3g} to {last[1]:.3g}: epoch "
            f"{training.best_epoch} is kept",
            UserWarning,
            stacklevel=4,
        )


def fingerprint(settings: Any, data: Examples) -> str:
    """What must be the same for a checkpoint to be of this fit."""
    found = hashlib.sha256()
    for array in (*data.inputs.values(), data.lengths, data.targets):
        found.update(np.ascontiguousarray(array).tobytes())
    return f"{settings} {found.hexdigest()}"
