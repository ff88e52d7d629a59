"""What all decoders share: their settings, and the fit of one network or an ensemble.

Estimators differ in what they read: see `pluri.networks.SequenceDecoder` and `pluri.networks.FrameTagger`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.inference.checkpoint import Checkpoint
from pluri.networks.backend import jax
from pluri.networks.batches import rows_of_batches
from pluri.networks.cells import CELLS
from pluri.networks.decoder_fit import (
    Plan,
    evaluate,
    fingerprint,
    n_batches,
    stack,
    train_member,
    warn_of_rise,
    warn_of_schedule,
)
from pluri.networks.decoder_queries import FittedDecoder
from pluri.networks.design import Design
from pluri.networks.examples import Examples
from pluri.networks.parameters import to_arrays
from pluri.networks.scheduled_sampling import COINS, FEEDBACKS, SampledLoss
from pluri.networks.schedules import as_schedule, probability_at
from pluri.networks.training import OPTIMIZERS, Optimizer, Training
from pluri.validation import Allowed, Flag, Number, Only, Stored, Whole, as_generator, check_parameters
from pluri.validation.interruption import held

#: Sequences from which a part is held out; fewer are too few to be split.
LEAST_TO_SPLIT = 10


class RecurrentDecoder(FittedDecoder):
    """Base of the decoders."""

    #: Whether the input tells little of the output, so that a decoder leans on what it wrote before.
    _weak_input: ClassVar[bool] = True
    #: Share of true tokens at which schedules that are asked for by name end.
    _minimum: ClassVar[float] = 0.25
    #: Settings in which a fit may differ from the one whose checkpoint it goes on from.
    _free_of_checkpoint: ClassVar[frozenset[str]] = frozenset({"verbose", "checkpoint", "warm_start", "beam_size"})
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "cell": Only(*CELLS),
        **dict.fromkeys(
            ("hidden_size", "n_layers", "embedding_size", "max_epochs", "min_epochs", "n_members",
             "beam_size", "n_iter_no_change"),
            Whole(1),
        ),
        "batch_size": Whole(1) | Only("auto"),
        "feedback": Only(*FEEDBACKS),
        "coin": Only(*COINS),
        "sampling_grad": Only("gumbel", None),
        "temperature": Number(above=0),
        "confidence": Flag(),
        "dropout": Number(least=0, below=1),
        "optimizer": Only(*OPTIMIZERS),
        "learning_rate": Number(above=0),
        "early_stopping": Only("free_running", "teacher_forced", None),
        "validation_fraction": Number(least=0, below=1),
        "clip_norm": Number(above=0) | Only(None),
        "warm_start": Flag(),
    }  # fmt: skip
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        **dict.fromkeys(
            ("loss_history_", "teacher_forced_history_", "free_running_history_", "perplexity_history_",
             "epsilon_history_"),
            Stored("n_members_", "n_iter_", finite=False),
        ),
        "lengths_": Stored(None, whole=True, least=0),
        "best_epoch_": Stored("n_members_", whole=True, least=0),
        "mean_": Stored("n_features_in_"),
        "scale_": Stored("n_features_in_", least=0),
    }  # fmt: skip

    cell: str
    hidden_size: int
    n_layers: int
    embedding_size: int
    schedule: Any
    feedback: str
    coin: str
    sampling_grad: str | None
    temperature: float
    confidence: bool
    dropout: float
    optimizer: str
    learning_rate: float
    batch_size: int | str
    max_epochs: int
    min_epochs: int
    early_stopping: str | None
    n_iter_no_change: int
    validation_fraction: float
    clip_norm: float | None
    n_members: int
    warm_start: bool
    checkpoint: Any
    random_state: Any
    verbose: int

    def _plan(self, design: Design, data: Examples) -> Plan:
        batch_size = rows_of_batches(self.batch_size, len(data))
        n_steps = n_batches(data, batch_size) * int(self.max_epochs)
        schedule = as_schedule(self.schedule, n_steps, self._minimum)
        first, last = probability_at(schedule, 0, 0), probability_at(schedule, n_steps - 1, int(self.max_epochs) - 1)
        if self.schedule is not None:
            warn_of_schedule(schedule, first, last, n_steps, self._weak_input)
        loss = SampledLoss(
            design,
            None if self.schedule is None else self.feedback,
            self.coin,
            self.sampling_grad,
            float(self.temperature),
            bool(self.confidence),
            float(self.dropout),
        )
        return Plan(
            loss, schedule, Optimizer(self.optimizer, self.clip_norm), float(self.learning_rate), batch_size,
            int(self.max_epochs), int(self.min_epochs), int(self.n_iter_no_change), self.early_stopping,
            int(self.verbose),
        )  # fmt: skip

    def _learn(self, design: Design, data: Examples, held_out: Examples | None) -> None:
        """Train all members and store what they learned."""
        rng = as_generator(self.random_state)
        starts = self._starts(design)
        is_held_out = held_out is not None
        if held_out is None:
            data, held_out = self._split(data, rng)
            is_held_out = held_out is not data
        plan = self._plan(design, data)
        done: list[Training] = []
        for number, stream in enumerate(rng.spawn(int(self.n_members))):
            if held():
                break  # what is trained already is kept
            place = self._place(number, data)
            done.append(train_member(plan, data, held_out, starts[number] if starts else None, stream, place))
        members = stack([one.params for one in done])
        scores = evaluate(members, design, held_out)
        self.settings_ = {name: getattr(design, name) for name in design.__dataclass_fields__}
        self.n_members_ = len(done)
        self.params_ = to_arrays(members)
        self._store_histories(done, plan, data)
        self.scores_ = {**scores._asdict(), "held_out": is_held_out}
        if self.early_stopping == "free_running":
            warn_of_rise(done[0])

    def _starts(self, design: Design) -> list[Any] | None:
        """Where members begin if `warm_start`."""
        if not (self.warm_start and hasattr(self, "params_")):
            return None
        if self._design() != design or self.n_members_ != self.n_members:
            raise ValueError(
                "warm_start needs the same network as before: other data, tokens or sizes have another one"
            )
        members = self._members()
        return [jax.tree.map(lambda part, k=k: np.asarray(part)[k], members) for k in range(self.n_members_)]

    def _split(self, data: Examples, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """Examples to learn from and held-out ones; both are all of them if there are too few."""
        n_held = round(self.validation_fraction * len(data))
        if not n_held or len(data) < LEAST_TO_SPLIT:
            return data, data
        order = rng.permutation(len(data))
        return data.part(np.sort(order[n_held:])), data.part(np.sort(order[:n_held]))

    def _place(self, number: int, data: Examples) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        given = self.get_params(deep=False).items()
        settings = {name: value for name, value in given if name not in self._free_of_checkpoint}
        path = f"{self.checkpoint}.{number}" if number else self.checkpoint
        return Checkpoint(path, every=1, fingerprint=f"{type(self).__name__} {number} {fingerprint(settings, data)}")

    def _store_histories(self, done: list[Training], plan: Plan, data: Examples) -> None:
        n_epochs, n_steps = max(len(one.losses) for one in done), n_batches(data, plan.batch_size)

        def table(rows: list[list[float]]) -> NDArray[np.float64]:
            return np.array([row + [np.nan] * (n_epochs - len(row)) for row in rows], dtype=np.float64)

        self.n_iter_ = n_epochs
        self.loss_history_ = table([one.losses for one in done])
        names = ("teacher_forced_history_", "free_running_history_", "perplexity_history_")
        for place, name in enumerate(names, 1):
            setattr(self, name, table([[row[place] for row in one.details] for one in done]))
        eps = [probability_at(plan.schedule, epoch * n_steps, epoch) for epoch in range(n_epochs)]
        self.epsilon_history_ = table([eps[: len(one.losses)] for one in done])
        self.best_epoch_ = np.array([one.best_epoch for one in done], dtype=np.int64)
        self.converged_ = all(one.converged for one in done)

    def _checked(self) -> None:
        check_parameters(self)
        if self.min_epochs > self.max_epochs:
            raise ValueError(f"min_epochs must be at most max_epochs ({self.max_epochs}), got {self.min_epochs}")

    def summary(self) -> str:
        """What was learned, in a few lines.

        Returns
        -------
        text : str
        """
        check_is_fitted(self, "params_")
        s, design = self.scores_, self._design()
        where = "held-out" if s["held_out"] else "training"
        n_parameters = sum(array.size for array in self.params_.values()) // self.n_members_
        return "\n".join(
            [
                f"{type(self).__name__}: {design.n_layers} x {design.hidden_size} {design.cell} units, "
                f"{n_parameters} parameters, {self.n_members_} network{'s' * (self.n_members_ > 1)}",
                f"best epoch {', '.join(map(str, self.best_epoch_.tolist()))} of {self.n_iter_}",
                f"on {where} sequences: teacher-forced error {s['teacher_forced_error']:.3f}, "
                f"free-running error {s['free_running_error']:.3f}, perplexity {s['perplexity']:.3g}",
            ]
        )
