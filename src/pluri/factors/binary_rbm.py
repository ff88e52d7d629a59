"""Restricted Boltzmann machine for binary rows that completes them: hidden units switch columns on and off together.

Trained by contrastive divergence whose number of Gibbs steps grows (`pluri.factors.rbm_energy`). Unknown columns are
sampled given the known ones. If all others than the known ones S are taken as zero, the odds are exact and cheap:

    log-odds_i = b_i + sum_l [softplus(a_l + W_il) - softplus(a_l)],   a_l = c_l + sum_{j in S} W_jl.

References
----------
.. [1] Hinton, G. (2002). Training products of experts by minimizing contrastive divergence. Neural Computation 14.
.. [2] Hu, D., van der Maaten, L., Cho, Y., Saul, L. and Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted
from threadpoolctl import threadpool_limits

from pluri.factors.binary_completion import BinaryCompletionMixin, check_binary
from pluri.factors.rbm_chains import ClampedGibbs, share_of_ones
from pluri.factors.rbm_energy import MOST_UNITS, JointPath, Machine
from pluri.factors.rbm_training import ContrastiveTraining, Training
from pluri.inference import mcmc
from pluri.optimize.fixed_point import iterate
from pluri.progress import Step, open_progress
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_count,
    check_parameters,
    check_value,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted, holding

Array = NDArray[np.float64]

#: Rows whose log-odds are computed at a time.
STEP = 256


class BinaryRBM(BinaryCompletionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, mcmc.Sampled, Estimator):
    """Restricted Boltzmann machine with binary units.

    Parameters
    ----------
    n_components : int, default=50
        Number of hidden units.
    n_iter : int, default=300
        Passes over the data.
    cd_start, cd_end : int, default=1 and 9
        Gibbs steps of contrastive divergence in the first and the last pass; the number grows in between.
    learning_rate : float, default=0.05
        Halved when the reconstruction error rises five passes in a row.
    batch_size : int, default=100
    momentum : float, default=0.9
        0.5 in the first five passes.
    weight_decay : float, default=1e-4
    sparsity_target : float or None, default=None
        Mean activity that hidden units are drawn to.
    sparsity_cost : float, default=0.1
        How strongly.
    inference : {"gibbs", "factorised"}, default="gibbs"
        How rows are completed: by Gibbs sampling of all unknown columns with the known ones held fast, so that
        nothing is assumed of them; or with all columns that are not known to be one taken as zero, each asked by
        itself, which is exact and fast, and right where few columns are ones.
    n_chains, n_warmup, n_draws : int, default=5, 100 and 100
        Chains of that sampling for each row, which begin apart; their steps that are thrown away, and those that count.
    binarize : float or None, default=0.0
        Values above this are ones; None if X already holds zeros and ones.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 prints the reconstruction error of each pass.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Weights.
    intercept_visible_, intercept_hidden_ : arrays of shape (n_features,) and (n_components,)
    reconstruction_errors_ : list of float
        Mean squared error of one step from hidden units drawn given each row, by pass.
    learning_rate_ : float
        The last one.
    column_means_ : array of shape (n_features,)
        Share of ones in each column.
    trace_ : `pluri.inference.mcmc.Trace`
        Chains of the trained machine with no column known, if it completes rows by sampling. Where these do not agree,
        ``trace_.settled("log_density", limit=1.1)``, completions depend on where their chains begin.
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.binary_rbm import BinaryRBM
    >>> X = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 50, axis=0)
    >>> model = BinaryRBM(4, n_iter=200, batch_size=10, random_state=0).fit(X)
    >>> answer = model.predict_missing([0, 1])
    >>> bool(answer[2] > 0.8 and answer[3:].max() < 0.2)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **dict.fromkeys(("n_components", "n_iter", "cd_start", "cd_end", "batch_size"), Whole(1)),
        "learning_rate": Number(above=0),
        "momentum": Number(least=0, below=1),
        "weight_decay": Number(least=0),
        "sparsity_target": Number(above=0, below=1) | Only(None),
        "sparsity_cost": Number(least=0),
        "inference": Only("gibbs", "factorised"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_hidden", "n_features_in_"),
        "intercept_visible_": Stored("n_features_in_"),
        "intercept_hidden_": Stored("n_hidden"),
        "column_means_": Stored("n_features_in_"),
    }
    _input_tags: ClassVar[Mapping[str, bool]] = {"sparse": True}

    def __init__(
        self,
        n_components: int = 50,
        *,
        n_iter: int = 300,
        cd_start: int = 1,
        cd_end: int = 9,
        learning_rate: float = 0.05,
        batch_size: int = 100,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        sparsity_target: float | None = None,
        sparsity_cost: float = 0.1,
        inference: str = "gibbs",
        n_chains: int = 5,
        n_warmup: int = 100,
        n_draws: int = 100,
        binarize: float | None = 0.0,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_iter = n_iter
        self.cd_start = cd_start
        self.cd_end = cd_end
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.sparsity_target = sparsity_target
        self.sparsity_cost = sparsity_cost
        self.inference = inference
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.binarize = binarize
        self.random_state = random_state
        self.verbose = verbose

    def _rows(self, X: Any, *, reset: bool) -> Any:
        rows = check_binary(self, X, binarize=self.binarize, reset=reset)
        if rows.missing is not None:
            raise ValueError("X must not contain NaN: all units of a row are needed; see predict_missing_rows")
        return rows.ones

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the machine.

        After Ctrl-C the model is that of the passes so far.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Values above `binarize` are ones.
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        check_value(self.cd_end, "cd_end", Whole(self.cd_start))
        # A batch is small: threads of the linear algebra would mostly wait for each other.
        with restored_on_failure(self), threadpool_limits(limits=1, user_api="blas"):
            self._train(self._rows(X, reset=True))
        return self

    def _train(self, rows: Any) -> None:
        rng = as_generator(self.random_state)
        n, width = rows.shape
        self.column_means_ = np.asarray(rows.sum(axis=0)).ravel() / n
        training = ContrastiveTraining(
            int(self.n_iter), int(self.cd_start), int(self.cd_end), int(self.batch_size), float(self.momentum),
            float(self.weight_decay), self.sparsity_target, float(self.sparsity_cost),
        )  # fmt: skip
        last = Training.begun(self.column_means_, n, int(self.n_components), float(self.learning_rate), rng)

        def one_pass(state: Training) -> tuple[Training, float]:
            nonlocal last
            last = training.after_pass(state, rows, rng)
            report(Step(last.number, int(self.n_iter), -last.errors[-1] if last.errors else np.nan))
            return last, np.inf  # the number of passes is fixed

        with (
            open_progress(int(self.verbose)) as report,
            holding(lambda: f"fit interrupted after {len(last.errors)} passes; they are kept") as block,
        ):
            iterate(one_pass, last, max_iter=int(self.n_iter))
        if block.interrupted and not last.errors:
            raise Interrupted
        self.components_ = np.ascontiguousarray(last.machine.weights.T)
        self.intercept_visible_, self.intercept_hidden_ = last.machine.visible, last.machine.hidden
        self.reconstruction_errors_, self.learning_rate_, self.n_iter_ = list(last.errors), last.rate, len(last.errors)
        self.__dict__.pop("trace_", None)
        if self.inference == "gibbs" and not block.interrupted:
            nothing = np.zeros((1, width), dtype=bool)
            self.trace_ = self._chains(nothing, nothing, as_generator(self.random_state)).detached()

    def _machine(self) -> Machine:
        check_is_fitted(self)
        return Machine(self.components_.T, self.intercept_visible_, self.intercept_hidden_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """Probabilities of the hidden units (n_samples, n_components)."""
        machine = self._machine()
        return np.asarray(expit(machine.field(self._rows(X, reset=False))))

    def inverse_transform(self, Y: Any) -> Array:
        """Probabilities of the visible units (n_samples, n_features) given hidden ones."""
        machine = self._machine()
        hidden = check_array(Y, dtype=np.float64)
        if hidden.shape[1] != len(self.components_):
            raise ValueError(f"Y must have {len(self.components_)} columns, one per unit, got {hidden.shape[1]}")
        return np.asarray(expit(hidden @ self.components_ + machine.visible))

    def free_energy(self, X: Any) -> Array:
        """Minus the log of the unnormalised probability of each row; add `log_partition` for minus log p(x)."""
        machine = self._machine()
        return machine.free_energy(self._rows(X, reset=False))

    def score_samples(self, X: Any) -> Array:
        """Pseudo-log-likelihood of each row, exactly: the sum over columns of log p(x_i | all other columns)."""
        machine = self._machine()
        rows = self._rows(X, reset=False)
        scores = np.empty(rows.shape[0])
        for first in range(0, len(scores), STEP):
            part = rows[first : first + STEP]
            on = part.toarray().astype(bool)
            odds = machine.log_odds(machine.field(part), on)
            scores[first : first + STEP] = log_expit(np.where(on, odds, -odds)).sum(axis=1)
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean())

    def log_partition(
        self, *, exact: bool | None = None, n_runs: int = 200, n_temperatures: int = 1000,
        random_state: RandomState = None,
    ) -> tuple[float, float]:  # fmt: skip
        """Logarithm of the normalising constant and its standard error.

        Parameters
        ----------
        exact : bool, optional
            Sum over all states of the smaller side; by default where that has at most 16 units. Otherwise annealed
            importance sampling from independent columns.
        n_runs, n_temperatures : int, default=200 and 1000
            Of the annealing.
        random_state : int, Generator, RandomState or None
            That of the model by default.
        """
        machine = self._machine()
        if exact or (exact is None and min(machine.weights.shape) <= MOST_UNITS):
            return machine.log_partition(), 0.0
        from pluri.inference.ais import AnnealedImportanceSampler, FunctionMoves

        share = np.clip(self.column_means_, 1e-3, 1 - 1e-3)
        path = JointPath(machine, np.log(share) - np.log1p(-share))
        samples = AnnealedImportanceSampler(
            path.log_end, path.log_start, path.sample_start, transition=FunctionMoves(path.move), n_runs=n_runs,
            n_temperatures=n_temperatures, keep_paths=False, warn=False,
            random_state=as_generator(self.random_state if random_state is None else random_state),
        ).run()  # fmt: skip
        return float(samples.log_z), float(samples.log_z_se)

    def _chains(self, known: NDArray[np.bool_], ones: NDArray[np.bool_], rng: np.random.Generator) -> mcmc.Trace:
        """Chains of rows (n, D) with the known columns held fast, `ones` of them at one."""
        kernel = ClampedGibbs(self._machine(), known)
        return mcmc.sample(
            kernel, lambda stream: kernel.start(stream, ones), n_draws=int(self.n_draws),
            n_warmup=int(self.n_warmup), n_chains=int(self.n_chains), record=share_of_ones, random_state=rng,
            warn=False, draw_if_interrupted=True,
        )  # fmt: skip

    def _complete(self, ones: Any, zeros: Any) -> Array:
        machine = self._machine()
        answer, rng = np.empty(ones.shape), as_generator(self.random_state)
        for first in range(0, len(answer), STEP):
            part = slice(first, first + STEP)
            if self.inference == "gibbs":
                present = ones[part].toarray().astype(bool)
                trace = self._chains(present | zeros[part].toarray().astype(bool), present, rng)
                answer[part] = sum(end.state.total / end.state.n_steps for end in trace.ends) / trace.n_chains
            else:
                absent = np.zeros(ones[part].shape, dtype=bool)
                answer[part] = expit(machine.log_odds(machine.field(ones[part]), absent))
        return answer

    def sample(self, n_samples: int = 1, *, n_warmup: int = 1000) -> NDArray[np.int64]:
        """Draw rows (n_samples, n_features): each by a chain of its own, after `n_warmup` Gibbs steps."""
        machine = self._machine()
        shape = check_count(n_samples, "n_samples"), len(machine.visible)
        check_count(n_warmup, "n_warmup", 0)
        kernel, nothing = ClampedGibbs(machine, np.zeros(shape, dtype=bool)), np.zeros(shape, dtype=bool)
        trace = mcmc.sample(
            kernel, lambda rng: kernel.start(rng, nothing, expit(machine.visible)), n_draws=1, n_warmup=n_warmup,
            n_chains=1, record=share_of_ones, random_state=as_generator(self.random_state), warn=False,
        )  # fmt: skip
        return np.asarray(trace.ends[0].position["visible"]).astype(np.int64)

    def summary(self, n_units: int = 10, n_columns: int = 4) -> str:
        """The hidden units with the largest weights and their columns, on one page of plain text."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        lines = [
            f"{type(self).__name__}: {len(self.components_)} hidden units, {self.n_features_in_} columns",
            f"{self.n_iter_} passes; reconstruction error {self.reconstruction_errors_[-1]:.4g}, "
            f"learning rate {self.learning_rate_:g}",
            "",
            "unit   bias     heaviest columns",
        ]
        for unit in np.argsort(-np.abs(self.components_).max(axis=1), kind="stable")[:n_units]:
            row = self.components_[unit]
            order = np.argsort(-np.abs(row), kind="stable")[:n_columns]
            columns = ", ".join(f"{names[i]} {row[i]:+.2f}" for i in order)
            lines.append(f"{unit:<5d}  {self.intercept_hidden_[unit]:<+7.2f}  {columns}")
        return "\n".join(lines)
