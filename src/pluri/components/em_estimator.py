"""What estimators fitted by EM have in common, be they hidden Markov models or mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pluri.engine import Batch, Source
from pluri.engine.first_rows import digest
from pluri.validation.estimator import Estimator


class EMEstimator(Estimator):
    """Estimator whose `fit` runs EM: its sources of batches, its checkpoints, and what callbacks see of it."""

    #: Parameters in which a fit may differ from the one whose checkpoint it goes on from: how long it runs, and where.
    _free_of_checkpoint: ClassVar[frozenset[str]] = frozenset(
        {"max_iter", "tol", "verbose", "warm_start", "checkpoint", "engine", "n_jobs"}
    )

    _input_tags: ClassVar[Mapping[str, bool]] = {"allow_nan": True}
    checkpoint: Any

    def _store(self, parameters: Any) -> None:
        """Set the fitted attributes from the record that EM found."""
        raise NotImplementedError  # abstract

    def _check_batch(self, batch: Batch) -> None:
        """Refuse a batch that the model cannot learn from, and take note of its form."""
        raise NotImplementedError  # abstract

    def _checked_source(self, source: Source) -> Source:
        """Look at the first batch: the others have its form, or fail when they are read."""
        for lazy in source.batches():
            self._check_batch(lazy.load())
            return source
        raise ValueError("X must hold at least one batch, got an empty source")

    def _attributes(self, parameters: Any) -> Mapping[str, Any]:
        """Fitted attributes of an estimator that stopped at these parameters (for callbacks)."""
        scratch = type(self)(**self.get_params(deep=False))
        before = set(vars(scratch))
        for name in vars(self).keys() - before - {"_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown"}:
            setattr(scratch, name, getattr(self, name))
        scratch._store(parameters)
        return {name: value for name, value in vars(scratch).items() if name not in before}

    def _fingerprint(self, source: Source, *more: Any) -> str:
        """What must be the same for a checkpoint to be of this fit: the data, but not how long it runs, or where."""
        if not self.checkpoint:
            return ""
        given = self.get_params(deep=False).items()
        settings = {name: value for name, value in given if name not in self._free_of_checkpoint}
        return " ".join(map(str, [type(self).__name__, settings, *more, digest(source)]))
