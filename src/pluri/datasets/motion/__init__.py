"""Captured motion: skeletons, BVH files, recordings, and motions as rows that models can be fitted to."""

from pluri.datasets.motion.bvh import read_bvh
from pluri.datasets.motion.bvh_writing import write_bvh
from pluri.datasets.motion.captures import (
    ExerciseRoutines,
    MotionCaptures,
    load_cmu_exercises,
    load_cmu_walks,
    load_mocap6,
    load_osu_run,
)
from pluri.datasets.motion.cmu_skeleton import cmu_skeleton
from pluri.datasets.motion.features import moving_joints
from pluri.datasets.motion.record import Markers, Motion
from pluri.datasets.motion.skeleton import Skeleton

__all__ = [
    "ExerciseRoutines",
    "Markers",
    "Motion",
    "MotionCaptures",
    "Skeleton",
    "cmu_skeleton",
    "load_cmu_exercises",
    "load_cmu_walks",
    "load_mocap6",
    "load_osu_run",
    "moving_joints",
    "read_bvh",
    "write_bvh",
]
