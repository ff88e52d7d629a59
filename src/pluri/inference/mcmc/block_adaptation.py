"""The warm-up of a Gibbs sampler: the warm-ups of the kernels of its blocks, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.inference.mcmc.accept_reject.step_search import with_setting
from pluri.inference.mcmc.chain import settings_of
from pluri.inference.mcmc.composition import settings_text
from pluri.inference.mcmc.kernel import Info

if TYPE_CHECKING:
    from pluri.inference.mcmc.gibbs import Gibbs, GibbsState


class GibbsAdaptation:
    """Warm-up of :class:`Gibbs`: the warm-ups of its kernels, one for each block."""

    def __init__(self, n_warmup: int):
        self._n_warmup = n_warmup
        self._adaptations: dict[str, Any] = {}
        self._last: dict[str, Any] = {}

    def start(self, rng: np.random.Generator, kernel: Gibbs, state: GibbsState) -> Gibbs:
        """Begin with the kernel of every block."""
        for label, names, block in kernel.moved_blocks():
            inner, inner_state = kernel._enter(rng, state.position, names, block)
            adaptation = inner.adaptation(self._n_warmup)
            if adaptation is not None:
                self._adaptations[label] = adaptation
                self._last[label] = adaptation.start(rng, inner, inner_state)
        return self._with(kernel, watched=True)

    def update(self, rng: np.random.Generator, kernel: Gibbs, state: GibbsState, info: Info) -> Gibbs:
        """Each kernel that moved sees its own step."""
        for label, (inner, inner_state, told) in state.inner.items():
            adaptation = self._adaptations.get(label)
            if adaptation is not None:
                self._last[label] = adaptation.update(rng, inner, inner_state, told)
        return self._with(kernel, watched=True)

    def finish(self, kernel: Gibbs) -> Gibbs:
        """Keep what was learned, also as text."""
        for label, adaptation in self._adaptations.items():
            self._last[label] = adaptation.finish(self._last[label])
        kernel = self._with(kernel, watched=False)
        return replace(kernel, learned=settings_text(kernel._settings))  # type: ignore[attr-defined]

    def again(self, kernel: Gibbs) -> Gibbs:
        """A kernel of the same kind to go on with, once this adaptation has its memory back."""
        return self._with(kernel, watched=True)

    def _with(self, kernel: Gibbs, watched: bool) -> Gibbs:
        settings = {label: settings_of(inner) for label, inner in self._last.items()}
        other: Gibbs = with_setting(with_setting(kernel, "_settings", settings), "_watched", watched)
        return other
