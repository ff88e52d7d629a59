"""Motions as BVH files, which animation programs read."""

from __future__ import annotations

import os
import re

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.motion.record import Motion
from pluri.datasets.motion.skeleton import Skeleton
from pluri.validation import replacing


def write_bvh(motion: Motion, path: str | os.PathLike[str], *, decimals: int = 6) -> None:
    """Write a motion as a BVH file, whole or not at all.

    Parameters
    ----------
    motion : Motion
    path : path
    decimals : int, default=6
        Decimal places of all numbers.

    Examples
    --------
    >>> from pluri.datasets import Motion, Skeleton, read_bvh, write_bvh
    >>> neck = Skeleton(("Neck",), [-1], [[0, 0, 0]], (("Xrotation",),), [0], [[0, 2, 0]])
    >>> write_bvh(Motion(neck, [[0.0], [12.5]], 0.04), "nod.bvh")
    >>> read_bvh("nod.bvh").frames.ravel()
    array([ 0. , 12.5])
    """
    lines, order = _hierarchy(motion.skeleton, decimals)
    starts = np.cumsum([0, *map(len, motion.skeleton.channels)])
    columns = [column for joint in order for column in range(starts[joint], starts[joint + 1])]
    lines += ["MOTION", f"Frames: {len(motion)}", f"Frame Time: {motion.frame_time:.{max(decimals, 6)}f}"]
    lines += [_row(frame, decimals) for frame in motion.frames[:, columns]]
    with replacing(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _hierarchy(skeleton: Skeleton, decimals: int) -> tuple[list[str], list[int]]:
    """Lines of the skeleton, and joints in the order of the file: each with all that hangs on it before the next."""
    children: dict[int, list[int]] = {}
    for joint, parent in enumerate(skeleton.parents.tolist()):
        children.setdefault(parent, []).append(joint)
    lines, order = ["HIERARCHY"], []
    waiting = [(0, 0)]
    while waiting:
        joint, depth = waiting.pop()
        indent = "\t" * depth
        if joint < 0:  # the end of a joint that was begun
            lines.append(f"{indent}}}")
            continue
        order.append(joint)
        name = " ".join(re.sub(r"[{}]", "_", skeleton.joints[joint]).split())
        channels = skeleton.channels[joint]
        lines += [f"{indent}{'JOINT' if depth else 'ROOT'} {name}", f"{indent}{{"]
        lines.append(f"{indent}\tOFFSET {_row(skeleton.offsets[joint], decimals)}")
        lines.append(" ".join([f"{indent}\tCHANNELS {len(channels)}", *channels]))
        for end in np.flatnonzero(skeleton.end_parents == joint):
            offset = _row(skeleton.end_offsets[end], decimals)
            lines += [f"{indent}\tEnd Site", f"{indent}\t{{", f"{indent}\t\tOFFSET {offset}", f"{indent}\t}}"]
        waiting.append((-1, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(joint, []))]
    return lines, order


def _row(values: NDArray[np.float64], decimals: int) -> str:
    return " ".join(f"{value:.{decimals}f}" for value in values)
