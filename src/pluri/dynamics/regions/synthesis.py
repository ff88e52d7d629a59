"""Paths that a fitted flow by regions makes: simulations, gaps filled, steps of the field."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.dynamics.regions.flow import next_means
from pluri.dynamics.regions.queries import FlowQueries
from pluri.dynamics.regions.rollouts import drawn_paths, fill_gaps, mean_path
from pluri.dynamics.regions.spaces import carried_across, from_data, lines_across, to_space
from pluri.dynamics.regions.transitions import with_holes
from pluri.validation import Only, RandomState, as_generator, check_count, check_value
from pluri.validation.sequences import offsets_of, sequence_lengths

Array = NDArray[np.float64]


class FlowSynthesis(FlowQueries):
    """Methods of a fitted flow that make rows."""

    def impute(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        bridge: bool = True,
        space: str = "latent",
        seamless: bool = True,
    ) -> Array:
        """Sequences with their gaps filled by paths of the flow.

        A row with a missing value is a gap: the path passes it without looking at the values it has, which stay.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            NaN marks what is missing.
        lengths, groups, tasks : arrays, optional
            See `predict`.
        bridge : bool, default=True
            Cross a gap forward from the row before it and backward from the row after it, and blend the two linearly;
            otherwise forward alone. Before the first complete row there is only the way back.
        space : {"latent", "data"}, default="latent"
            What X and the answer are: coordinates, or rows of data, which `embedding` translates.
        seamless : bool, default=True
            For rows of data: carry what the embedding does not explain of the rows beside a gap across it, linearly
            from one side to the other. Without it there is a jump on each side.

        Returns
        -------
        array of shape (n_samples, n_features)
            Sequences end to end. A straight line where the ways across a gap do not meet or leave the flow, and NaN
            where the only way at an end of a sequence does, each with a warning.
        """
        check_is_fitted(self, "weights_")
        rows, X, lengths = from_data(self, X, sequence_lengths(X, lengths, groups), space)
        data, counts, numbers = self._opened(X, lengths, None, tasks)
        offsets, empty = offsets_of(counts), with_holes(data)
        for n in range(len(counts)):
            if counts[n] and empty[offsets[n] : offsets[n + 1]].all():
                raise ValueError(f"X must have a complete row in each sequence with a gap, sequence {n} has none")

        def across(task: int, part: Array, missing: NDArray[np.bool_]) -> Array:
            return fill_gaps(self._flow(task), self._flow(task, back=True), part, missing, bool(bridge), self._bounds())

        found = self._filled(data, counts, numbers, across)
        found = np.where(np.isnan(data), found, data)
        if rows is None or not empty.any():
            return lines_across(found, counts) if rows is None else rows
        made = to_space(self, found, space)
        if seamless:
            made += carried_across(rows - made, counts)
        return lines_across(np.where(np.isnan(rows), made, rows), counts)

    def simulate(
        self,
        n_steps: int,
        x0: ArrayLike | None = None,
        *,
        task: Any = None,
        mode: str = "mean",
        n_paths: int = 1,
        space: str = "latent",
        random_state: RandomState = None,
    ) -> Array:
        """Go on from a row.

        Parameters
        ----------
        n_steps : int
        x0 : array of shape (n_features,), optional
            The row to begin with, which is not part of the answer; by default the centre of a region, drawn by weight.
        task : optional
            Whose flow; needed if the model has several tasks.
        mode : {"mean", "draw"}, default="mean"
            Each row is expected given the one before it, averaged over draws; or a random path, with noise, of a draw.
        n_paths : int, default=1
            Number of random paths.
        space : {"latent", "data"}, default="latent"
            What `x0` and the answer are: coordinates, or rows of data, which `embedding` translates.
        random_state : optional
            The model's own if None.

        Returns
        -------
        array of shape (n_steps, n_features), or (n_paths, n_steps, n_features) for "draw"
            NaN once a path has left the flow, with a warning.
        """
        check_count(n_steps, "n_steps")
        check_count(n_paths, "n_paths")
        check_value(mode, "mode", Only("mean", "draw"))
        if mode == "mean" and n_paths != 1:
            raise ValueError(f"n_paths must be 1 for mode='mean', which has one path, got {n_paths}")
        flow = self._flow(self._task(task))
        rng = as_generator(self.random_state if random_state is None else random_state)
        if x0 is None:
            share = np.exp(flow.log_weights)
            begin = flow.centers[rng.choice(len(share), p=share / share.sum())]
            check_value(space, "space", Only("latent", "data"))
        else:
            begin = self._row(x0, space)
        if mode == "mean":
            return to_space(self, mean_path(flow, begin, n_steps, self._bounds()), space)
        paths = drawn_paths(rng, flow, np.tile(begin, (n_paths, 1)), n_steps, self._bounds())
        return to_space(self, paths.reshape(-1, paths.shape[2]), space).reshape(n_paths, n_steps, -1)

    def _row(self, x0: ArrayLike, space: str, name: str = "x0") -> Array:
        """One checked row of coordinates."""
        row = np.asarray(check_array(np.atleast_2d(np.asarray(x0)), dtype=np.float64, input_name=name))
        if len(row) != 1:
            raise ValueError(f"{name} must be one row, got shape {np.shape(x0)}")
        _, row, _ = from_data(self, row, None, space)
        if row.shape[1] != self.centers_.shape[1]:
            raise ValueError(f"{name} must have {self.centers_.shape[1]} entries, got {row.shape[1]}")
        return np.asarray(row[0], dtype=np.float64)

    def vector_field(self, points: ArrayLike, *, task: Any = None) -> Array:
        """Expected steps at places: where a path would go next, less where it is.

        Parameters
        ----------
        points : array of shape (n_points, n_features)
        task : optional
            Whose flow; needed if the model has several tasks.

        Returns
        -------
        array of shape (n_points, n_features)
        """
        flow = self._flow(self._task(task))
        rows = np.asarray(check_array(points, dtype=np.float64, input_name="points"))
        if rows.shape[1] != flow.centers.shape[1]:
            raise ValueError(f"points must have {flow.centers.shape[1]} columns, got {rows.shape[1]}")
        return next_means(flow, rows) - rows
