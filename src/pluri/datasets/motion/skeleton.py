"""The skeleton of a motion: joints, which of them hangs on which, and the channels that move them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Channels of a BVH file, and the axis of each.
POSITIONS = {"Xposition": 0, "Yposition": 1, "Zposition": 2}
ROTATIONS = {"Xrotation": 0, "Yrotation": 1, "Zrotation": 2}


@dataclass(frozen=True, eq=False, repr=False)
class Skeleton:
    """Joints in an order in which each comes after the one that it hangs on.

    Attributes
    ----------
    joints : tuple of str
        Names; the first is the root.
    parents : ndarray of shape (n_joints,), dtype int64
        Number of the joint that each hangs on, -1 for the root.
    offsets : ndarray of shape (n_joints, 3)
        Place of each joint as its parent sees it, when nothing is turned.
    channels : tuple of tuples of str
        Channels of each joint in their order: ``Xposition``, ``Zrotation`` and so on, each at most once.
    end_parents : ndarray of shape (n_ends,), dtype int64
        Joints that limbs end at ("End Site" in BVH files): hands, toes, the top of the head.
    end_offsets : ndarray of shape (n_ends, 3)
        Ends as their joints see them.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import Skeleton
    >>> arm = Skeleton(("shoulder", "elbow"), np.array([-1, 0]), np.array([[0, 0, 0], [3, 0, 0]]),
    ...                (("Zrotation",), ("Zrotation",)), np.array([1]), np.array([[2, 0, 0]]))
    >>> arm
    Skeleton(2 joints, 2 channels, 1 end)
    >>> arm.channel_names
    ('shoulder:Zrotation', 'elbow:Zrotation')
    """

    joints: tuple[str, ...]
    parents: NDArray[np.int64]
    offsets: Array
    channels: tuple[tuple[str, ...], ...]
    end_parents: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    end_offsets: Array = field(default_factory=lambda: np.empty((0, 3)))

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        n_joints = len(self.joints)
        if n_joints == 0:
            raise ValueError("joints must name at least one joint, got none")
        for name in ("parents", "end_parents"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        for name in ("offsets", "end_offsets"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        parents_fit = self.parents.shape == (n_joints,) and self.parents[0] == -1
        if not parents_fit or (self.parents[1:] < 0).any() or (self.parents >= np.arange(n_joints)).any():
            raise ValueError(
                f"parents must be -1 and then {n_joints - 1} numbers of joints before each, got {self.parents.tolist()}"
            )
        n_ends = self.end_parents.size
        if self.end_parents.shape != (n_ends,) or not np.isin(self.end_parents, np.arange(n_joints)).all():
            raise ValueError(f"end_parents must be numbers from 0 to {n_joints - 1}, got {self.end_parents.tolist()}")
        for name, size in (("offsets", n_joints), ("end_offsets", n_ends)):
            given: Array = getattr(self, name)
            if given.shape != (size, 3) or not np.isfinite(given).all():
                raise ValueError(f"{name} must be {size} rows of three finite numbers, got shape {given.shape}")
        if len(self.channels) != n_joints:
            raise ValueError(f"channels must be given for each of {n_joints} joints, got {len(self.channels)}")
        for joint, channels in zip(self.joints, self.channels):
            if len(set(channels)) != len(channels) or not set(channels) <= {*POSITIONS, *ROTATIONS}:
                raise ValueError(
                    f"channels of {joint!r} must be different ones of {', '.join([*POSITIONS, *ROTATIONS])}, "
                    f"got {', '.join(channels)}"
                )

    @property
    def n_channels(self) -> int:
        """Number of channels of all joints."""
        return sum(map(len, self.channels))

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Joint and channel of each column of the frames."""
        return tuple(
            f"{joint}:{channel}" for joint, channels in zip(self.joints, self.channels) for channel in channels
        )

    @property
    def bones(self) -> NDArray[np.int64]:
        """Pairs of points (n_bones, 2) to draw lines between; ends are numbered after the joints."""
        n_joints = len(self.joints)
        inner = np.column_stack([self.parents[1:], np.arange(1, n_joints)])
        ends = np.column_stack([self.end_parents, n_joints + np.arange(self.end_parents.size)])
        return np.concatenate([inner, ends]).astype(np.int64)

    def columns(self, joint: int, kind: dict[str, int]) -> tuple[list[int], tuple[int, ...]]:
        """Columns of the position or rotation channels of a joint, and their axes."""
        first = sum(map(len, self.channels[:joint]))
        found = [(first + place, kind[name]) for place, name in enumerate(self.channels[joint]) if name in kind]
        return [column for column, _ in found], tuple(axis for _, axis in found)

    def rotation_columns(self) -> dict[int, NDArray[np.int64]]:
        """Columns (n_joints, n) of the rotation channels of all joints that have n of them, for each n > 0."""
        found: dict[int, list[list[int]]] = {}
        for joint in range(len(self.joints)):
            columns, _ = self.columns(joint, ROTATIONS)
            if columns:
                found.setdefault(len(columns), []).append(columns)
        return {size: np.array(columns) for size, columns in found.items()}

    def equals(self, other: Any) -> bool:
        """Whether another skeleton has the same joints, bones and channels."""
        return isinstance(other, Skeleton) and (
            (self.joints, self.channels) == (other.joints, other.channels)
            and np.array_equal(self.parents, other.parents)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.end_parents, other.end_parents)
            and np.array_equal(self.end_offsets, other.end_offsets)
        )

    def __repr__(self) -> str:
        """Numbers of joints, channels and ends."""
        n_ends = self.end_parents.size
        return f"Skeleton({len(self.joints)} joints, {self.n_channels} channels, {n_ends} end{'s' * (n_ends != 1)})"
