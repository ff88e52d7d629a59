r"""Rotations as Euler angles, as vectors and as six numbers.

A joint with the channels i, j, k has the rotation :math:`R = R_i(a) R_j(b) R_k(c)`: the channel that is named first
turns last. Angles jump at 360 degrees, and where b passes 90 degrees; the first two columns of R (six numbers, [1]_)
never jump, and a rotation vector (axis times angle) only where the angle passes 180 degrees.

References
----------
.. [1] Y. Zhou, C. Barnes, J. Lu, J. Yang and H. Li, "On the continuity of rotation representations in neural networks",
   CVPR 2019.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Below this cosine of the second angle the first and third turn about the same axis, and only their sum is known.
LOCKED = 1e-9


def axis_rotation(axis: int, angle: Array) -> Array:
    """Matrices (..., 3, 3) that turn about the axis 0, 1 or 2 by angles in radians."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    found = np.zeros((*angle.shape, 3, 3))
    found[..., axis, axis] = 1.0
    found[..., first, first] = found[..., second, second] = np.cos(angle)
    found[..., second, first] = np.sin(angle)
    found[..., first, second] = -np.sin(angle)
    return found


def from_angles(angles: Array, axes: tuple[int, ...]) -> Array:
    """Matrices (..., 3, 3) of angles (..., n) in radians about n axes, the first of which turns last."""
    found = np.broadcast_to(np.eye(3), (*angles.shape[:-1], 3, 3))
    for place, axis in enumerate(axes):
        found = found @ axis_rotation(axis, angles[..., place])
    return found


def to_angles(matrices: Array, axes: tuple[int, ...]) -> Array:
    """Angles (..., n) in radians about n different axes; with n < 3, exact for rotations that these axes can make."""
    i, j, k = (*axes, *(axis for axis in range(3) if axis not in axes))
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    cosine = np.hypot(matrices[..., i, i], matrices[..., i, j])
    alone = np.arctan2(sign * matrices[..., k, j], matrices[..., j, j])  # the first angle if the third is zero
    if len(axes) < 3:
        second = np.arctan2(sign * matrices[..., i, k], matrices[..., i, i])
        return np.stack([alone, second], axis=-1)[..., : len(axes)]
    locked = cosine < LOCKED
    first = np.where(locked, alone, np.arctan2(-sign * matrices[..., j, k], matrices[..., k, k]))
    second = np.arctan2(sign * matrices[..., i, k], cosine)
    third = np.where(locked, 0.0, np.arctan2(-sign * matrices[..., i, j], matrices[..., i, i]))
    return np.stack([first, second, third], axis=-1)


def continuous_angles(angles: Array) -> Array:
    """The same rotations by angles (n_frames, n_joints, n) that change least from frame to frame.

    Whole turns are added, and if there are three angles, (a, b, c) may become (a + pi, pi - b, c + pi).
    """
    found = np.array(angles)
    for frame in range(1, len(found)):
        before = found[frame - 1]
        nearest = _whole_turns(found[frame], before)
        if found.shape[-1] == 3:
            other = _whole_turns(found[frame] * [1, -1, 1] + np.pi, before)
            is_nearer = np.abs(other - before).sum(axis=-1) < np.abs(nearest - before).sum(axis=-1) - 1e-9
            nearest = np.where(is_nearer[:, None], other, nearest)
        found[frame] = nearest
    return found


def _whole_turns(angles: Array, near: Array) -> Array:
    return angles + 2 * np.pi * np.round((near - angles) / (2 * np.pi))


def to_six(matrices: Array) -> Array:
    """The first two columns of each matrix, one after the other: (..., 6)."""
    return np.concatenate([matrices[..., 0], matrices[..., 1]], axis=-1)


def from_six(numbers: Array) -> Array:
    """The rotations nearest to any six numbers: the first column keeps its direction, the second is made orthogonal."""
    first, second = numbers[..., :3], numbers[..., 3:]
    first = _unit(first)
    second = _unit(second - (first * second).sum(axis=-1, keepdims=True) * first)
    return np.stack([first, second, np.cross(first, second)], axis=-1)


def _unit(vectors: Array) -> Array:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if (length < 1e-9).any():
        raise ValueError("features must have six numbers for a rotation that are two different directions, got others")
    found: Array = vectors / length
    return found


def to_vectors(matrices: Array) -> Array:
    """Rotation vectors (n_frames, n_joints, 3) that change least from frame to frame; the first ones are shortest."""
    from scipy.spatial.transform import Rotation

    flat = matrices.reshape(-1, 3, 3)
    found = Rotation.from_matrix(flat).as_rotvec().reshape(matrices.shape[:-1]) if len(flat) else matrices[..., 0]
    for frame in range(1, len(found)):
        angle = np.linalg.norm(found[frame], axis=-1, keepdims=True)
        along = np.where(angle > 1e-12, found[frame], found[frame - 1])
        along = along / np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-300)
        turns = np.round((((found[frame - 1] * along).sum(axis=-1, keepdims=True)) - angle) / (2 * np.pi))
        found[frame] = found[frame] + 2 * np.pi * turns * along
    return found


def from_vectors(vectors: Array) -> Array:
    """Matrices (..., 3, 3) of rotation vectors."""
    from scipy.spatial.transform import Rotation

    found: Array = Rotation.from_rotvec(vectors.reshape(-1, 3)).as_matrix().reshape(*vectors.shape, 3)
    return found
