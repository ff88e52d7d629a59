"""What sampling leaves behind: draws by name, what each step told, and where each chain stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine.extras import import_pandas
from pluri.inference.mcmc import diagnostics
from pluri.inference.mcmc.health import R_HAT_LIMIT, Verdict, find_problems, judge

Draws = Mapping[str, NDArray[Any]]


COLUMNS = ("mean", "sd", "hdi_low", "hdi_high", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat")


@dataclass(frozen=True)
class Summary:
    """Rows by name, columns by :data:`COLUMNS`; prints as a table.

    Attributes
    ----------
    names : tuple of str
        ``"x[0]"``, ``"x[1]"``, ...
    values : (n_rows, n_columns)
    mass : share of the draws inside the interval ``hdi_low`` to ``hdi_high``
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    mass: float

    def __getitem__(self, key: str) -> NDArray[np.float64]:
        """Column, or row, of that name."""
        if key in COLUMNS:
            return self.values[:, COLUMNS.index(key)]
        if key in self.names:
            return self.values[self.names.index(key)]
        raise KeyError(f"{key!r} is neither a column ({', '.join(COLUMNS)}) nor a variable")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def to_frame(self) -> Any:
        """As a pandas table."""
        return import_pandas().DataFrame(self.values, index=list(self.names), columns=list(COLUMNS))

    def __str__(self) -> str:
        width = max([len(name) for name in self.names], default=0)
        lines = [" " * width + "".join(f"{column:>11}" for column in COLUMNS)]
        for name, row in zip(self.names, self.values):
            cells = [
                f"{value:>11.0f}" if column.startswith("ess") else f"{value:>11.4g}"
                for column, value in zip(COLUMNS, row)
            ]
            lines.append(f"{name:<{width}}" + "".join(cells))
        lines.append(f"hdi: shortest interval with {100 * self.mass:g} % of the draws")
        return "\n".join(lines)

    __repr__ = __str__


def summarize(draws: Mapping[str, NDArray[Any]], mass: float = 0.94) -> Summary:
    """Summary of draws by name, each of shape (n_chains, n_draws, ...)."""
    names, rows = [], []
    for name, values in diagnostics.each_number(draws):
        low, high = diagnostics.highest_density_interval(values, mass)
        names.append(name)
        rows.append(
            (
                values.mean() if values.size else np.nan,
                values.std(ddof=1) if values.size > 1 else np.nan,
                low,
                high,
                diagnostics.mcse_mean(values),
                diagnostics.mcse_sd(values) if values.size else np.nan,
                diagnostics.ess_bulk(values),
                diagnostics.ess_tail(values),
                diagnostics.r_hat(values),
            )
        )
    return Summary(tuple(names), np.array(rows, dtype=np.float64).reshape(len(rows), len(COLUMNS)), mass)


@dataclass(frozen=True)
class ChainEnd:
    """Where a chain stopped: all that it needs to go on.

    Attributes
    ----------
    position : array or dict of arrays
    random_state : state of the chain's own random stream (a dict of numbers, as NumPy's bit generators give it)
    settings : what the warm-up learned of the kernel, by name
    kernel, state, record : the kernel, its state and what is kept of a position, themselves; None for a trace that was
        read from a file
    memory : what the warm-up knew, if the chain stopped in the middle of it
    since_draw : what the steps since the last draw told, if the chain is thinned
    """

    position: Any
    random_state: dict[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    kernel: Any = None
    state: Any = None
    record: Any = None
    memory: Any = None
    since_draw: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True)
class Trace:
    """Draws of several chains.

    Attributes
    ----------
    draws : dict of arrays of shape (n_chains, n_draws, ...)
        By name; a kernel that moves a plain vector calls it ``"x"``.
    stats : dict of arrays of shape (n_chains, n_draws)
        What each step told: ``log_density``, ``acceptance``, ``divergent``, ...; means over the steps between two
        draws if the chain is thinned.
    ends : tuple of ChainEnd
        Where the chains stopped; :func:`pluri.inference.mcmc.resume` goes on from there.
    n_warmup, thin : int
    interrupted : bool
        Whether Ctrl-C ended the run early: the draws made until then are here.
    seconds : float
        Wall time of the run.
    warmup_left : int
        Steps of the warm-up that are still to be made, if Ctrl-C came before the first draw.
    origin : str
        The function that made the chains, if it was not :func:`pluri.inference.mcmc.sample`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> kernel = mcmc.NUTS(lambda x: (-0.5 * x @ x, -x))
    >>> trace = mcmc.sample(kernel, np.zeros(2), n_draws=300, n_warmup=200, random_state=1)
    >>> trace
    <Trace of 4 chains x 300 draws: x (2,)>
    >>> trace.flat("x").shape
    (1200, 2)
    >>> bool(trace.summary()["r_hat"].max() < 1.02)
    True
    """

    draws: Draws
    stats: Draws = field(default_factory=dict)
    ends: tuple[ChainEnd, ...] = ()
    n_warmup: int = 0
    thin: int = 1
    interrupted: bool = False
    seconds: float = float("nan")
    warmup_left: int = 0
    origin: str = ""

    def _check_fitted_state(self) -> None:
        arrays = {**self.draws, **self.stats}
        shapes = {name: np.shape(values)[:2] for name, values in arrays.items()}
        for name, shape in shapes.items():
            if len(shape) != 2 or shape != next(iter(shapes.values())):
                raise ValueError(f"{name} must have as many chains and draws as the others, got {shape}")

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.draws:
            raise KeyError(f"there is no variable {name!r}; there are {', '.join(map(repr, self.draws))}")
        return self.draws[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.draws)

    def __len__(self) -> int:
        return len(self.draws)

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return next((len(values) for values in self.draws.values()), 0)

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""
        return next((values.shape[1] for values in self.draws.values()), 0)

    def flat(self, name: str) -> NDArray[Any]:
        """Draws of one variable, chains one after another: (n_chains * n_draws, ...)."""
        values = self[name]
        return values.reshape(-1, *values.shape[2:])

    def detached(self) -> Trace:
        """The same draws without kernels and states: what a fitted model keeps, and what can be put in its file."""
        nothing: dict[str, Any] = dict.fromkeys(("kernel", "state", "record", "memory"))
        return replace(self, ends=tuple(replace(end, **nothing) for end in self.ends))

    def summary(self, mass: float = 0.94) -> Summary:
        """Mean, standard deviation, interval, Monte Carlo error, R-hat and effective sizes of every number.

        Parameters
        ----------
        mass : float, default=0.94
            Share of the draws inside the highest-density interval.
        """
        return summarize(self.draws, mass)

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the draws, a sentence each; empty if all is well."""
        return find_problems(self)

    def verdict(
        self, *names: str, limit: float = R_HAT_LIMIT, negligible: Mapping[str, float] | None = None
    ) -> Verdict:
        """Whether the chains agree, on what least, and how to say it.

        Parameters
        ----------
        *names : str
            Draws or statistics to judge by; all draws by default.
        limit : float, default=1.01
            R-hat up to which chains agree. Models that draw latent states take 1.1 and judge by ``log_density``.
        negligible : dict of floats, optional
            By name, differences between means of chains that do not matter; see :func:`judge`.
        """
        chosen = {name: self.draws[name] if name in self.draws else self.stats[name] for name in names}
        return judge(chosen or self.draws, limit, negligible)

    def settled(self, *names: str, limit: float = R_HAT_LIMIT) -> bool:
        """Whether the chains agree; :meth:`verdict` says on what they agree least."""
        return self.verdict(*names, limit=limit).settled

    def to_arviz(self, log_likelihood: Any = None, posterior_predictive: Any = None, observed_data: Any = None) -> Any:
        """Draws and statistics for ArviZ: ``InferenceData`` up to version 0.23, a ``DataTree`` from 1.0 on.

        Parameters
        ----------
        log_likelihood, posterior_predictive : callable, str, or dict of arrays, optional
            What ArviZ compares models and checks predictions by. A function is called with a dict of the variables of
            each draw and gives an array with an entry for each observation, or a dict of such arrays; a string is the
            name of a variable of the trace (that `record` kept), which moves to that group; arrays have shape
            (n_chains, n_draws, ...). What has no name is called ``"y"``.
        observed_data : dict of arrays, optional

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.inference import mcmc
        >>> y = np.array([0.1, 0.7, -0.4])
        >>> kernel = mcmc.NUTS(lambda m: (-0.5 * ((y - m) ** 2).sum(), (y - m).sum(keepdims=True)))
        >>> trace = mcmc.sample(kernel, np.zeros(1), n_draws=200, n_warmup=200, random_state=0, warn=False)
        >>> data = trace.to_arviz(lambda draw: -0.5 * (y - draw["x"]) ** 2 - 0.5 * np.log(2 * np.pi))
        >>> data["log_likelihood"]["y"].shape
        (4, 200, 3)
        """
        from pluri.inference.mcmc.arviz_export import to_arviz

        return to_arviz(self, log_likelihood, posterior_predictive, observed_data)

    def save(self, path: str | Path) -> None:
        """Write to a file (NPZ, no pickle) that :meth:`load` and ``pluri diagnose`` read."""
        from pluri.inference.mcmc.export import save_trace

        save_trace(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a file that :meth:`save` wrote; no code of it is run."""
        from pluri.inference.mcmc.export import load_trace

        return load_trace(path)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {values.shape[2:]}" for name, values in self.draws.items())
        note = " (interrupted)" if self.interrupted else ""
        return f"<Trace of {self.n_chains} chains x {self.n_draws} draws: {shapes}>{note}"


def plain_random_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """State of a bit generator as plain numbers."""
    plain: dict[str, Any] = json.loads(json.dumps(state, default=_plain))
    return plain


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def restored_generator(state: dict[str, Any]) -> np.random.Generator:
    """Generator that goes on where `state` was taken."""
    kind = getattr(np.random, str(state["bit_generator"]))
    bits = kind()
    bits.state = {**bits.state, **state}
    return np.random.Generator(bits)


class Sampled:
    """Estimator whose draws are the attribute ``trace_``, a :class:`pluri.inference.mcmc.Trace`."""

    trace_: Trace

    def to_arviz(self, log_likelihood: Any = None, posterior_predictive: Any = None, observed_data: Any = None) -> Any:
        """Draws and statistics of the chains for ArviZ: ``InferenceData`` up to version 0.23, later a ``DataTree``.

        Parameters
        ----------
        log_likelihood, posterior_predictive : callable, str, or dict of arrays, optional
            Further groups; see :meth:`pluri.inference.mcmc.Trace.to_arviz`.
        observed_data : dict of arrays, optional
        """
        trace = getattr(self, "trace_", None)
        if trace is None:
            raise AttributeError(
                f"this {type(self).__name__} has no draws: it is not fitted yet, or was not learned by sampling"
            )
        return trace.to_arviz(log_likelihood, posterior_predictive, observed_data)
