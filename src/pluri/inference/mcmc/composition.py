"""Kernels made of kernels: a random choice of one at each step, or all of them in turn.

If each kernel leaves a target invariant, so does a mixture whose choice does not look at the position, and so does a
cycle. Short steps can follow long ones, moves between modes can follow moves within them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pluri.inference.mcmc.accept_reject.step_search import with_setting
from pluri.inference.mcmc.chain import settings_of, with_settings, without_checks
from pluri.inference.mcmc.kernel import Info
from pluri.inference.mcmc.step_health import ANY_ACCEPTANCE


class ComposedState(NamedTuple):
    """Where a chain is, the last state of each kernel, and what each told in the last step (None: was not used)."""

    position: Any
    log_density: float
    states: tuple[Any, ...]
    infos: tuple[Info | None, ...]


@dataclass(frozen=True)
class _Composition:
    kernels: Sequence[Any]
    learned: str = field(default="", kw_only=True)

    #: One text with what all the kernels have learned.
    tuned = ("learned",)

    def __post_init__(self) -> None:
        if len(self.kernels) == 0:
            raise ValueError("kernels must hold at least one kernel, got none")
        kernels = tuple(self.kernels)
        if self.learned:
            settings = settings_from(self.learned)
            kernels = tuple(with_settings(kernel, settings.get(str(index), {})) for index, kernel in enumerate(kernels))
        object.__setattr__(self, "kernels", kernels)

    def init(self, rng: np.random.Generator, position: Any) -> ComposedState:
        """State at a position, for all kernels."""
        states = tuple(kernel.init(rng, position) for kernel in self.kernels)
        return ComposedState(states[0].position, states[0].log_density, states, (None,) * len(states))

    def settings_so_far(self) -> dict[str, Any]:
        """What the kernels have learned, also while they learn."""
        return {"learned": settings_text({str(index): settings_of(inner) for index, inner in enumerate(self.kernels)})}

    def adaptation(self, n_warmup: int) -> ComposedAdaptation:
        """Each kernel learns from its own steps."""
        shares = self._shares()
        return ComposedAdaptation(
            [kernel.adaptation(max(1, round(n_warmup * share))) for kernel, share in zip(self.kernels, shares)]
        )

    def healthy_acceptances(self, position: Any) -> dict[str, tuple[float, float]]:
        """By kernel, the mean acceptance that is neither too low nor too high."""
        ranges = [getattr(kernel, "healthy_acceptance", ANY_ACCEPTANCE) for kernel in self.kernels]
        return dict(zip(self._labels, ranges))

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(f"{type(kernel).__name__} {index}" for index, kernel in enumerate(self.kernels))

    def _shares(self) -> Sequence[float]:
        return [1.0] * len(self.kernels)

    def _move(
        self, rng: np.random.Generator, index: int, current: Any, states: list[Any], owner: Any
    ) -> tuple[Any, Info]:
        """Let one kernel move; `current` is the state that `owner`, another kernel, reached."""
        kernel = self.kernels[index]
        state = states[index]
        if state.position is not current.position:
            shared = type(state) is type(current) and _target(kernel) is _target(owner)
            state = current if shared else without_checks(kernel).init(rng, current.position)
        new, info = kernel.step(rng, state)
        states[index] = new
        return new, info


@dataclass(frozen=True)
class KernelMixture(_Composition):
    """One of several kernels at each step, chosen at random.

    Parameters
    ----------
    kernels : sequence of kernels
        All with the same target.
    weights : array-like, optional
        Probability of each; equal by default.
    learned : str
        What the warm-up learned, as text; a trace that is resumed fills it in.

    Examples
    --------
    Small steps within a mode and large ones between modes:

    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.composition import KernelMixture
    >>> from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
    >>> def log_density(x):
    ...     return float(np.logaddexp(-0.5 * (x[0] - 6) ** 2, -0.5 * (x[0] + 6) ** 2))
    >>> steps = [RandomWalk(log_density, step_size=size, adapt=False) for size in (1.5, 12.0)]
    >>> trace = mcmc.sample(KernelMixture(steps), np.zeros(1), n_draws=5000, random_state=0, warn=False)
    >>> bool(abs(trace["x"].mean()) < 1)
    True
    """

    weights: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = np.ones(len(self.kernels)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(self.kernels),) or not (np.isfinite(weights).all() and (weights > 0).all()):
            raise ValueError(f"weights must be a positive number for each of {len(self.kernels)} kernels")
        object.__setattr__(self, "weights", weights / weights.sum())

    def _shares(self) -> Sequence[float]:
        return list(self.weights)

    def step(self, rng: np.random.Generator, state: ComposedState) -> tuple[ComposedState, Info]:
        """A step of one kernel."""
        index = min(int(np.searchsorted(np.cumsum(self.weights), rng.random())), len(self.kernels) - 1)
        states = list(state.states)
        last = next((i for i, info in enumerate(state.infos) if info is not None), 0)
        new, told = self._move(rng, index, states[last], states, self.kernels[last])
        infos = tuple(told if i == index else None for i in range(len(states)))
        moved = {label: [told] if i == index else [] for i, label in enumerate(self._labels)}
        info = {**joined_info([told]), "kernel": index} | acceptances(moved)
        return ComposedState(new.position, new.log_density, tuple(states), infos), info


@dataclass(frozen=True)
class KernelCycle(_Composition):
    """Several kernels one after another, all of them in each step.

    Parameters
    ----------
    kernels : sequence of kernels
        All with the same target.
    learned : str
        What the warm-up learned, as text; a trace that is resumed fills it in.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.composition import KernelCycle
    >>> from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
    >>> kernel = KernelCycle([RandomWalk(lambda x: -0.5 * float(x @ x)), mcmc.NUTS(lambda x: (-0.5 * x @ x, -x))])
    >>> mcmc.sample(kernel, np.zeros(2), n_draws=100, n_warmup=100, random_state=0, warn=False)["x"].shape
    (4, 100, 2)
    """

    def step(self, rng: np.random.Generator, state: ComposedState) -> tuple[ComposedState, Info]:
        """A step of every kernel."""
        states = list(state.states)
        infos: list[Info] = []
        owner = self.kernels[-1]
        current = states[-1]
        for index, kernel in enumerate(self.kernels):
            current, told = self._move(rng, index, current, states, owner)
            owner = kernel
            infos.append(told)
        told_by_each = acceptances({label: [told] for label, told in zip(self._labels, infos)})
        new = ComposedState(current.position, current.log_density, tuple(states), tuple(infos))
        return new, joined_info(infos) | told_by_each


class ComposedAdaptation:
    """Warm-up of a composition: each kernel's own, fed with that kernel's steps."""

    def __init__(self, adaptations: Sequence[Any]):
        self._adaptations = adaptations

    def start(self, rng: np.random.Generator, kernel: Any, state: ComposedState) -> Any:
        """Begin with every kernel."""
        return self._with(
            kernel,
            [
                without_checks(inner if adaptation is None else adaptation.start(rng, inner, inner_state))
                for adaptation, inner, inner_state in zip(self._adaptations, kernel.kernels, state.states)
            ],
        )

    def update(self, rng: np.random.Generator, kernel: Any, state: ComposedState, info: Info) -> Any:
        """Each kernel that was used sees its own step."""
        rows = zip(self._adaptations, kernel.kernels, state.states, state.infos)
        return self._with(
            kernel,
            [
                inner if adaptation is None or told is None else adaptation.update(rng, inner, inner_state, told)
                for adaptation, inner, inner_state, told in rows
            ],
        )

    def finish(self, kernel: Any) -> Any:
        """End with every kernel, and write down what they learned."""
        pairs = zip(self._adaptations, kernel.kernels)
        kernels = [inner if adaptation is None else adaptation.finish(inner) for adaptation, inner in pairs]
        learned = self._with(kernel, kernels)
        return with_setting(learned, "learned", learned.settings_so_far()["learned"])

    @staticmethod
    def _with(kernel: Any, kernels: list[Any]) -> Any:
        return with_setting(kernel, "kernels", tuple(kernels))


def _target(kernel: Any) -> Any:
    return getattr(kernel, "log_density", None) or getattr(kernel, "value_and_grad", kernel)


def joined_info(infos: Sequence[Info]) -> dict[str, float]:
    """What several kernels told, as one step: mean acceptance, and the sum of what is counted."""
    count = max(len(infos), 1)
    return {
        "acceptance": sum(info.get("acceptance", 1.0) for info in infos) / count if infos else 1.0,
        "n_evaluations": sum(info.get("n_evaluations", 0) for info in infos),
        "divergent": float(any(info.get("divergent", False) for info in infos)),
        "undefined": float(sum(info.get("undefined", 0.0) for info in infos)),
    }


def acceptances(infos: Mapping[str, Sequence[Info]]) -> dict[str, float]:
    """Mean acceptance of each part in a step, ``acceptance[part]``; NaN for a part that did not move."""
    told = {label: [info["acceptance"] for info in part if "acceptance" in info] for label, part in infos.items()}
    return {f"acceptance[{label}]": sum(part) / len(part) if part else math.nan for label, part in told.items()}


def settings_text(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Settings of several kernels as one text, which a trace file can keep."""
    return json.dumps(settings, default=lambda value: value.tolist())


def settings_from(text: str) -> dict[str, dict[str, Any]]:
    """Settings that :func:`settings_text` wrote."""
    return {
        label: {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}
        for label, settings in (json.loads(text) if text else {}).items()
    }
