"""A skeleton for the BVH files of the CMU collection, whose bones have the lengths of an average body.

The files of the collection store angles of 31 joints; each subject has bones of its own, which arrays of channels alone
do not hold. Lengths here are shares of the stature, those of Drillis and Contini [1]_ where they measured one (hip and
shoulder widths, thigh, shank, ankle, foot, upper arm, forearm, hand, height of the shoulder), and round numbers
elsewhere (the parts of the spine, the neck and the head). Directions are those in which the angles of the files are
zero: arms to the sides, and legs 20 degrees away from the vertical. So a figure moves as the subject did, but it is
not the subject: feet may slide or sink by centimetres.

References
----------
.. [1] R. Drillis and R. Contini, "Body segment parameters", New York University, Report 1166-03, 1966; as in
   D. A. Winter, "Biomechanics and motor control of human movement", Wiley, figure 4.1.
"""

from __future__ import annotations

import numpy as np

from pluri.datasets.motion.skeleton import Skeleton

#: Metres of a unit of length in the files: inches, divided by 0.45.
UNIT = 0.0254 / 0.45
STATURE = 1.75 / UNIT
ROTATIONS = ("Zrotation", "Yrotation", "Xrotation")
LEG = (np.sin(np.radians(20.0)), -np.cos(np.radians(20.0)), 0.0)
#: Name, parent, direction and length as a share of the stature; names of the left side, from which the right follows.
TRUNK = (
    ("LowerBack", "Hips", (0.0, 1.0, 0.0), 0.0),
    ("Spine", "LowerBack", (0.0, 1.0, 0.0), 0.07),
    ("Spine1", "Spine", (0.0, 1.0, 0.0), 0.07),
    ("Neck", "Spine1", (0.0, 1.0, 0.0), 0.06),
    ("Neck1", "Neck", (0.0, 1.0, 0.0), 0.05),
    ("Head", "Neck1", (0.0, 1.0, 0.0), 0.05),
)
LEFT_LEG = (
    ("LHipJoint", "Hips", (0.0, 0.0, 0.0), 0.0),
    ("LeftUpLeg", "LHipJoint", (0.0955, -0.055, 0.0), 1.0),
    ("LeftLeg", "LeftUpLeg", LEG, 0.245),
    ("LeftFoot", "LeftLeg", LEG, 0.246),
    ("LeftToeBase", "LeftFoot", (0.0, -0.03, 0.1), 1.0),
)
LEFT_ARM = (
    ("LeftShoulder", "Spine1", (0.0, 1.0, 0.0), 0.04),
    ("LeftArm", "LeftShoulder", (0.129, 0.02, 0.0), 1.0),
    ("LeftForeArm", "LeftArm", (1.0, 0.0, 0.0), 0.186),
    ("LeftHand", "LeftForeArm", (1.0, 0.0, 0.0), 0.146),
    ("LeftFingerBase", "LeftHand", (1.0, 0.0, 0.0), 0.0),
    ("LeftHandIndex1", "LeftFingerBase", (1.0, 0.0, 0.0), 0.054),
    ("LThumb", "LeftHand", (1.0, 0.0, 0.0), 0.0),
)
ENDS = (
    ("LeftToeBase", (0.0, 0.0, 0.052), 1.0),
    ("Head", (0.0, 1.0, 0.0), 0.08),
    ("LeftHandIndex1", (1.0, 0.0, 0.0), 0.054),
    ("LThumb", (0.03, 0.0, 0.03), 1.0),
)


def cmu_skeleton(stature: float = STATURE) -> Skeleton:
    """The 31 joints of the BVH files made from the CMU collection, with the bones of an average body.

    Parameters
    ----------
    stature : float, default=31.0
        Height of the body in units of the files, 5.64 cm: 1.75 m by default.

    Returns
    -------
    Skeleton

    Examples
    --------
    >>> from pluri.datasets import cmu_skeleton
    >>> cmu_skeleton()
    Skeleton(31 joints, 96 channels, 7 ends)
    """
    if not (np.isfinite(stature) and stature > 0):
        raise ValueError(f"stature must be a positive number, got {stature}")
    rows = [*LEFT_LEG, *_right(LEFT_LEG), *TRUNK, *LEFT_ARM, *_right(LEFT_ARM)]
    joints = ("Hips", *(name for name, *_ in rows))
    offsets = [np.zeros(3), *(stature * length * np.array(direction) for _, _, direction, length in rows)]
    ends = [(name, stature * length * np.array(direction)) for name, direction, length in ENDS]
    ends += [(_other_side(name), offset * [-1, 1, 1]) for name, offset in ends if name != "Head"]
    ends.sort(key=lambda end: joints.index(end[0]))
    return Skeleton(
        joints,
        np.array([-1, *(joints.index(parent) for _, parent, _, _ in rows)]),
        np.array(offsets),
        (("Xposition", "Yposition", "Zposition", *ROTATIONS), *(ROTATIONS for _ in rows)),
        np.array([joints.index(name) for name, _ in ends]),
        np.array([offset for _, offset in ends]),
    )


def _right(
    rows: tuple[tuple[str, str, tuple[float, ...], float], ...],
) -> list[tuple[str, str, tuple[float, ...], float]]:
    return [(_other_side(name), _other_side(parent), (-x, y, z), length) for name, parent, (x, y, z), length in rows]


def _other_side(name: str) -> str:
    if name.startswith("Left"):
        return "Right" + name.removeprefix("Left")
    return "R" + name[1:] if name.startswith(("LHip", "LThumb")) else name
