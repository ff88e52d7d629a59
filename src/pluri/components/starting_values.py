"""Starting values of a model fitted by EM: given by constructor arguments, set by hand as attributes, or neither."""

from __future__ import annotations

import copy
import warnings
from typing import Any


class StartingValues:
    """For an estimator with `params` and `init_params`, letters that stand for fitted attributes.

    The argument ``means_init`` is the starting value of the attribute ``means_``; an attribute that was set by hand is
    one if its letter is not in `init_params`.
    """

    init_params: str
    warm_start: bool

    def _parameter_names(self) -> dict[str, str]:
        """Letters of `params`, and the attributes they stand for."""
        raise NotImplementedError  # abstract

    def _hand_set(self) -> dict[str, Any]:
        """Attributes that were set and that `init_params` does not ask to initialise."""
        names, initialized = self._parameter_names(), getattr(self, "init_params", "".join(self._parameter_names()))
        return {
            name: getattr(self, name)
            for letter, name in names.items()
            if letter not in initialized and hasattr(self, name)
        }

    def _given(self) -> dict[str, Any]:
        """Starting values: constructor arguments, which are set as attributes, and attributes set by hand."""
        names = self._parameter_names()
        arguments = {name: getattr(self, f"{name}init", None) for name in names.values()}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        lost = [
            name
            for letter, name in names.items()
            if hasattr(self, name) and letter in self.init_params and name not in arguments
        ]
        if hasattr(self, "history_"):
            if self.warm_start:
                return self._hand_set()  # the fit goes on from what it found
        elif lost:
            warnings.warn(
                f"{', '.join(lost)} were set but will be overwritten during initialization: take their letters out of "
                f"init_params ({self.init_params!r}) to start from them",
                UserWarning,
                stacklevel=6,
            )
        for name, value in arguments.items():
            setattr(self, name, copy.deepcopy(value))
        return self._hand_set() | {name: getattr(self, name) for name in arguments}
