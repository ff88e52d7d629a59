r"""Captured motion: the angles of a skeleton, or the places of markers, frame by frame.

Places of joints follow from angles by forward kinematics: with the rotation :math:`R_j` and the offset :math:`o_j` of a
joint, and its parent p, :math:`W_j = W_p R_j` and :math:`x_j = x_p + W_p o_j`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.motion.rotations import continuous_angles, from_angles
from pluri.datasets.motion.skeleton import POSITIONS, ROTATIONS, Skeleton

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Motion:
    """A skeleton in motion.

    Attributes
    ----------
    skeleton : Skeleton
    frames : ndarray of shape (n_frames, n_channels)
        Angles in degrees and places, in the order of ``skeleton.channel_names``.
    frame_time : float
        Seconds from one frame to the next.
    name : str

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import Motion, Skeleton
    >>> arm = Skeleton(("shoulder", "elbow"), np.array([-1, 0]), np.array([[0, 0, 0], [3, 0, 0]]),
    ...                (("Zrotation",), ("Zrotation",)), np.array([1]), np.array([[2, 0, 0]]))
    >>> motion = Motion(arm, np.array([[0.0, 0.0], [0.0, 90.0]]), frame_time=0.5)
    >>> motion
    Motion(2 frames of 0.5 s, 2 joints, 2 channels)
    >>> motion.positions(ends=True)[1].round(6).tolist()  # shoulder, elbow, hand
    [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [3.0, 2.0, 0.0]]
    """

    skeleton: Skeleton
    frames: Array
    frame_time: float
    name: str = ""

    def __post_init__(self) -> None:
        """Check that frames fit the skeleton."""
        frames = np.asarray(self.frames, dtype=np.float64)
        object.__setattr__(self, "frames", frames)
        n_channels = self.skeleton.n_channels
        if frames.ndim != 2 or frames.shape[1] != n_channels or len(frames) == 0:
            raise ValueError(f"frames must have shape (n_frames, {n_channels}) with n_frames > 0, got {frames.shape}")
        if not np.isfinite(frames).all():
            frame, column = (int(place) for place in np.argwhere(~np.isfinite(frames))[0])
            raise ValueError(
                f"frames must be finite, got {frames[frame, column]} in frame {frame}, "
                f"channel {self.skeleton.channel_names[column]}"
            )
        if not (np.isfinite(self.frame_time) and self.frame_time > 0):
            raise ValueError(f"frame_time must be a positive number of seconds, got {self.frame_time}")

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.frames)

    def __repr__(self) -> str:
        """Size and speed instead of the values."""
        name = f"{self.name!r}, " if self.name else ""
        size = f"{len(self.skeleton.joints)} joints, {self.skeleton.n_channels} channels"
        return f"Motion({name}{len(self)} frames of {self.frame_time:.4g} s, {size})"

    def with_frames(self, frames: ArrayLike, name: str | None = None) -> Motion:
        """Another motion of the same skeleton at the same speed."""
        return Motion(self.skeleton, np.asarray(frames), self.frame_time, self.name if name is None else name)

    def rotations(self) -> Array:
        """Rotation matrices (n_frames, n_joints, 3, 3) of the joints, as their parents see them."""
        found = np.empty((len(self), len(self.skeleton.joints), 3, 3))
        for joint in range(found.shape[1]):
            columns, axes = self.skeleton.columns(joint, ROTATIONS)
            found[:, joint] = from_angles(np.radians(self.frames[:, columns]), axes)
        return found

    def translations(self) -> Array:
        """Places (n_frames, n_joints, 3) of the joints, as their parents see them.

        Position channels of the root are added to its offset, as the description of the format says; those of other
        joints take the place of the offset, as programs write them.
        """
        skeleton = self.skeleton
        found = np.repeat(skeleton.offsets[None], len(self), axis=0)
        for joint in range(len(skeleton.joints)):
            for column, axis in zip(*skeleton.columns(joint, POSITIONS)):
                found[:, joint, axis] = self.frames[:, column] + (skeleton.offsets[0, axis] if joint == 0 else 0.0)
        return found

    def positions(self, *, ends: bool = False) -> Array:
        """Places of the joints in space.

        Parameters
        ----------
        ends : bool, default=False
            Whether the ends of limbs follow the joints.

        Returns
        -------
        ndarray of shape (n_frames, n_joints, 3) or (n_frames, n_joints + n_ends, 3)
        """
        skeleton, turned, moved = self.skeleton, self.rotations(), self.translations()
        n_joints = len(skeleton.joints)
        found = np.empty((len(self), n_joints + (skeleton.end_parents.size if ends else 0), 3))
        found[:, 0] = moved[:, 0]
        for joint in range(1, n_joints):
            parent = skeleton.parents[joint]
            found[:, joint] = found[:, parent] + np.einsum("tij,tj->ti", turned[:, parent], moved[:, joint])
            turned[:, joint] = turned[:, parent] @ turned[:, joint]
        if ends:
            at = skeleton.end_parents
            found[:, n_joints:] = found[:, at] + np.einsum("teij,ej->tei", turned[:, at], skeleton.end_offsets)
        return found

    def continuous(self) -> Motion:
        """The same motion by angles that change least from frame to frame: no jumps at 180 or 360 degrees.

        Angles then may exceed 360 degrees. Two sequences need not agree in their whole turns; features
        (:meth:`to_features`) do.
        """
        frames = self.frames.copy()
        for columns in self.skeleton.rotation_columns().values():
            frames[:, columns] = np.degrees(continuous_angles(np.radians(self.frames[:, columns])))
        return self.with_frames(frames)

    def to_features(self, representation: str = "6d", joints: Sequence[str] | None = None) -> Array:
        """Rows of numbers for models, without any wrap-around: how the root moves, and how joints are turned.

        A row has, in this order: by how many radians the body turned about the vertical axis (y) since the frame
        before; its steps to the left and forward since then, as the body saw them; its height; the rotation of the
        root without its turn about the vertical axis; the rotations of the other joints. The place on the ground and
        the heading are left out. The first row repeats the steps of the second.

        Parameters
        ----------
        representation : {"6d", "vector"}, default="6d"
            How rotations are written: by the first two columns of their matrices, which never jump and do not depend
            on the frames before; or by rotation vectors, half as many numbers, of which those are taken that change
            least from frame to frame.
        joints : list of str, optional
            Joints besides the root whose rotations are features; all that have rotation channels by default. Joints
            that never turn are best left out (:func:`pluri.datasets.moving_joints`).

        Returns
        -------
        ndarray of shape (n_frames, 4 + k (1 + n_joints)), with k = 6 or 3

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.datasets import Motion, Skeleton
        >>> body = Skeleton(("hips", "head"), [-1, 0], np.array([[0, 0, 0], [0, 1, 0]]), (
        ...     ("Xposition", "Yposition", "Zposition", "Yrotation"), ("Xrotation",)))
        >>> motion = Motion(body, np.array([[0, 9, 0, 350, 4.0], [0, 9, 2, 10, 4.0]]), frame_time=0.1)
        >>> motion.to_features("vector")[1, :4].round(3)  # turned 20 degrees, 2 forward and a bit to the left
        array([0.349, 0.347, 1.97 , 9.   ])
        """
        from pluri.datasets.motion.features import to_features

        return to_features(self, representation, joints)

    def from_features(
        self, features: ArrayLike, representation: str = "6d", joints: Sequence[str] | None = None
    ) -> Motion:
        """The motion of rows of numbers, which begins where this one does: of rows that a model made, for instance.

        Joints that are no features stay as they are in the first frame of this motion.

        Parameters
        ----------
        features : array-like of shape (n_frames, n_features)
            As `to_features` makes them. Any six numbers become the rotation nearest to them.
        representation, joints
            As they were given to `to_features`.

        Returns
        -------
        Motion
            Its angles change as little as can be from frame to frame.
        """
        from pluri.datasets.motion.features import from_features

        return from_features(self, features, representation, joints)


@dataclass(frozen=True, eq=False, repr=False)
class Markers:
    """Places of markers on a body.

    Attributes
    ----------
    places : ndarray of shape (n_frames, n_markers, 3)
        NaN where a marker was not seen.
    markers : tuple of str
        Names.
    frame_time : float
        Seconds from one frame to the next.
    up : {"x", "y", "z"}
        The axis that points upwards.
    name : str
    """

    places: Array
    markers: tuple[str, ...]
    frame_time: float
    up: str = "y"
    name: str = ""

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.places)

    def __repr__(self) -> str:
        """Size instead of the values."""
        return f"Markers({len(self)} frames of {self.frame_time:.4g} s, {len(self.markers)} markers)"

    def keys(self) -> list[str]:
        """Names of the fields."""
        return ["places", "markers", "frame_time", "up", "name"]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)
