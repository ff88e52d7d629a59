r"""Motions as rows of numbers that models can be fitted to, and back.

A row has, in this order,

1. by how many radians the body turned about the vertical axis since the frame before,
2. its steps to the left and forward since then, as the body saw them in the frame before,
3. its height,
4. the rotation of the root without its turn about the vertical axis,
5. the rotations of the other joints.

The place on the ground and the heading are left out, so that a walk to the north and one to the east are the same; they
are summed up again on the way back. The first row repeats the steps of the second. The heading is the twist
:math:`2 \operatorname{atan2}(q_y, q_w)` of the root's quaternion about the vertical axis, which is y, as in almost all
BVH files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.motion.rotations import (
    axis_rotation,
    from_six,
    from_vectors,
    to_angles,
    to_six,
    to_vectors,
)
from pluri.datasets.motion.skeleton import POSITIONS, ROTATIONS, Skeleton
from pluri.validation import Only, check_value

if TYPE_CHECKING:
    from pluri.datasets.motion.record import Motion

Array = NDArray[np.float64]
SIZE = {"6d": 6, "vector": 3}
#: Turn, steps to the left and forward, height.
N_ROOT = 4


def moving_joints(motions: Sequence[Motion]) -> tuple[str, ...]:
    """Joints besides the root whose rotations change in any of the motions of one skeleton.

    Features of joints that never turn are constant columns, which some models do not take: five of the 31 joints of
    :func:`pluri.datasets.load_cmu_walks` are such.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import Motion, Skeleton, moving_joints
    >>> arm = Skeleton(("shoulder", "elbow", "wrist"), [-1, 0, 1], np.zeros((3, 3)),
    ...                (("Xposition", "Yposition", "Zposition", "Zrotation"), ("Zrotation",), ("Zrotation",)))
    >>> moving_joints([Motion(arm, [[0, 0, 0, 0, 10, 5], [0, 0, 0, 0, 10, 6]], 0.1)])
    ('wrist',)
    """
    if not len(motions):
        raise ValueError("motions must hold at least one, got none")
    skeleton = motions[0].skeleton
    if any(not motion.skeleton.equals(skeleton) for motion in motions):
        raise ValueError("motions must have one skeleton, got different ones")
    first = motions[0].frames[0]
    moves = np.any([(motion.frames != first).any(axis=0) for motion in motions], axis=0)
    return tuple(
        name
        for joint, name in enumerate(skeleton.joints)
        if joint > 0 and moves[skeleton.columns(joint, ROTATIONS)[0]].any()
    )


def to_features(motion: Motion, representation: str = "6d", joints: Sequence[str] | None = None) -> Array:
    """Rows of numbers, as :meth:`pluri.datasets.Motion.to_features` says."""
    rows = _rows(motion.skeleton, representation, joints)
    turned, place = motion.rotations(), motion.translations()[:, 0]
    heading = _heading(turned[:, 0])
    turned[:, 0] = axis_rotation(1, -heading) @ turned[:, 0]
    turns = (np.diff(heading) + np.pi) % (2 * np.pi) - np.pi
    steps = np.einsum("tij,tj->ti", axis_rotation(1, -heading[:-1]), np.diff(place, axis=0))
    root = np.zeros((len(motion), N_ROOT))
    root[1:, 0], root[1:, 1], root[1:, 2] = turns, steps[:, 0], steps[:, 2]
    if len(motion) > 1:
        root[0] = root[1]
    root[:, 3] = place[:, 1]
    written = to_six(turned[:, rows]) if representation == "6d" else to_vectors(turned[:, rows])
    return np.column_stack([root, written.reshape(len(motion), -1)])


def from_features(
    like: Motion, features: ArrayLike, representation: str = "6d", joints: Sequence[str] | None = None
) -> Motion:
    """The motion of rows, as :meth:`pluri.datasets.Motion.from_features` says."""
    skeleton = like.skeleton
    rows = _rows(skeleton, representation, joints)
    size = SIZE[representation]
    given = np.asarray(features, dtype=np.float64)
    width = N_ROOT + size * len(rows)
    if given.ndim != 2 or given.shape[1] != width or len(given) == 0:
        raise ValueError(f"features must have shape (n_frames, {width}) with n_frames > 0, got {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(
            f"features must be finite, got NaN or infinity in row {int(np.argwhere(~np.isfinite(given))[0, 0])}"
        )
    written = given[:, N_ROOT:].reshape(len(given), len(rows), size)
    turned = from_six(written) if representation == "6d" else from_vectors(written)
    heading = _heading(like.rotations()[:1, 0]) + np.append(0.0, np.cumsum(given[1:, 0]))
    steps = np.zeros((len(given), 3))
    steps[:, 0], steps[:, 2] = given[:, 1], given[:, 2]
    walked = np.einsum("tij,tj->ti", axis_rotation(1, heading[:-1]), steps[1:])
    place = np.zeros((len(given), 3))
    place[1:] = np.cumsum(walked, axis=0)
    place += like.translations()[0, 0]
    place[:, 1] = given[:, 3]
    turned[:, 0] = axis_rotation(1, heading) @ turned[:, 0]
    frames = np.repeat(like.frames[:1], len(given), axis=0)
    for column, axis in zip(*skeleton.columns(0, POSITIONS)):
        frames[:, column] = place[:, axis] - skeleton.offsets[0, axis]
    for number, joint in enumerate(rows):
        columns, axes = skeleton.columns(joint, ROTATIONS)
        frames[:, columns] = np.degrees(to_angles(turned[:, number], axes))
    return like.with_frames(frames).continuous()


def _rows(skeleton: Skeleton, representation: str, joints: Sequence[str] | None) -> list[int]:
    """Numbers of the root and of the joints whose rotations are features, in the order of the skeleton."""
    check_value(representation, "representation", Only(*SIZE))
    if len(skeleton.columns(0, POSITIONS)[0]) != 3:
        raise ValueError(f"the root must have three position channels, got {', '.join(skeleton.channels[0])}")
    can_turn = {name: bool(skeleton.columns(row, ROTATIONS)[0]) for row, name in enumerate(skeleton.joints)}
    chosen = {name for name, turns in can_turn.items() if turns} if joints is None else set(joints)
    if isinstance(joints, str) or not all(can_turn.get(name, False) for name in chosen):
        wrong = joints if isinstance(joints, str) else next(name for name in chosen if not can_turn.get(name, False))
        raise ValueError(f"joints must be a list of joints that have rotation channels, got {wrong!r}")
    return [0, *(row for row, name in enumerate(skeleton.joints) if row > 0 and name in chosen)]


def _heading(rotations: Array) -> Array:
    """Twist about the vertical axis, in radians."""
    found: Array = np.arctan2(rotations[:, 0, 2] - rotations[:, 2, 0], rotations[:, 0, 0] + rotations[:, 2, 2])
    return found
