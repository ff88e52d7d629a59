"""What Ctrl-C is to do: raise, with the result so far, or keep it with a warning."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Literal, Self, get_args

Choice = Literal["raise", "keep"]


class on_interrupt:
    """Say what Ctrl-C does once the best so far is kept: go on as an exception, or end there with a warning.

    A call is for the whole program from then on; a ``with`` statement is for its block, in this thread or task.

    Parameters
    ----------
    choice : {"raise", "keep"}
        "raise", as it is without a call: ``KeyboardInterrupt`` is raised when the estimator has been given what was
        reached, so that a loop around the fit ends too. Its attribute ``result`` is what the call would have returned
        (the estimator, or the draws so far of a sampler); it has none if there was nothing to keep. "keep": the call
        returns what was reached, with a warning, and the program goes on; meant for interactive work.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pluri
    >>> from pluri.inference import mcmc
    >>> def tired(trace):
    ...     raise KeyboardInterrupt  # as Ctrl-C would
    >>> kernel = mcmc.RandomWalk(lambda x: -0.5 * x @ x)
    >>> options = {"n_warmup": 0, "callback": tired, "random_state": 0}
    >>> try:
    ...     trace = mcmc.sample(kernel, np.zeros(1), **options)
    ... except KeyboardInterrupt as stop:
    ...     trace = stop.result
    >>> trace.interrupted
    True

    In the block Ctrl-C ends only the call that it falls into:

    >>> with pluri.on_interrupt("keep"), warnings.catch_warnings(action="ignore"):
    ...     trace = mcmc.sample(kernel, np.zeros(1), **options)
    >>> trace.interrupted
    True
    """

    _everywhere: Choice = "raise"

    def __init__(self, choice: Choice) -> None:
        if choice not in get_args(Choice):
            raise ValueError(f"choice must be 'raise' or 'keep', got {choice!r}")
        self.choice: Choice = choice
        self._before = on_interrupt._everywhere
        self._tokens: list[Token[Choice | None]] = []
        on_interrupt._everywhere = choice

    def __enter__(self) -> Self:
        if not self._tokens:
            on_interrupt._everywhere = self._before
        self._tokens.append(_chosen.set(self.choice))
        return self

    def __exit__(self, *error: object) -> None:
        _chosen.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"on_interrupt({self.choice!r})"


_chosen: ContextVar[Choice | None] = ContextVar("pluri_on_interrupt", default=None)


def keeps() -> bool:
    """Whether what interrupted work has made is returned, with a warning, instead of a KeyboardInterrupt."""
    return (_chosen.get() or on_interrupt._everywhere) == "keep"
