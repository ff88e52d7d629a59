"""What a page about motion knows: figures, paths in a map, gaps, hand-overs and regimes, as packed numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.motion import Markers, Motion
from pluri.plotting.embedding.places import LARGEST
from pluri.report.embedding_data import MOST_LABEL, packed

Array = NDArray[np.float64]
#: Whole numbers that places are rounded to, of 65535; the last one stands for a marker that was not seen.
STEPS, UNSEEN = 65_000, -32_768
#: Regimes with a number of their own on the page.
MOST_REGIMES = 250
#: Left and right in the names of joints: LeftArm, lArm, LThumb, arm_l, Bip01 L Thigh; but not LowerBack, Root or Tail.
SIDES = (
    re.compile(r"(?i:left)|(^|[_. :-])[lL](?=[A-Z_. :-]|$)"),
    re.compile(r"(?i:right)|(^|[_. :-])[rR](?=[A-Z_. :-]|$)"),
)


class Figure(NamedTuple):
    """Points that move, and the lines between them; y points upwards."""

    name: str
    places: Array  # (n_frames, n_points, 3)
    bones: NDArray[np.int64]  # (n_bones, 2)
    sides: list[int]  # of each bone: 0 in the middle, 1 left, 2 right
    head: list[int] | None  # the two points between which the head is
    frame_time: float


def named(motions: Any) -> dict[str, Motion | Markers]:
    """Motions by their names, which are made different."""
    if isinstance(motions, Motion | Markers):
        motions = [motions]
    if not isinstance(motions, Mapping | Sequence) or isinstance(motions, str) or not len(motions):
        got = "none" if isinstance(motions, Mapping | Sequence) and not len(motions) else type(motions).__name__
        raise TypeError(f"motions must be a Motion, a list of them or a mapping of names to them, got {got}")
    pairs = list(motions.items() if isinstance(motions, Mapping) else ((None, motion) for motion in motions))
    found: dict[str, Motion | Markers] = {}
    for number, (given, motion) in enumerate(pairs, start=1):
        if not isinstance(motion, Motion | Markers):
            raise TypeError(f"motions must hold Motion or Markers, got {type(motion).__name__}")
        base = " ".join(str(motion.name if given is None else given).split())[:MOST_LABEL] or f"motion {number}"
        name, again = base, 2
        while name in found:
            name, again = f"{base} ({again})", again + 1
        found[name] = motion
    return found


def of_each(value: Any, motions: Any, names: Sequence[str], argument: str) -> list[Any]:
    """What was said of each motion: as they were given, alone, in a list or by name."""
    if value is None:
        return [None] * len(names)
    if isinstance(motions, Motion | Markers):
        return [value]
    if isinstance(value, Mapping):
        strange = [key for key in value if key not in names]
        if strange:
            raise ValueError(f"{argument} must have names of motions ({', '.join(names)}), got {strange[0]!r}")
        return [value.get(name) for name in names]
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != len(names):
        got = f"{len(value)}" if hasattr(value, "__len__") else type(value).__name__
        raise ValueError(f"{argument} must be a list with one entry for each of {len(names)} motions, got {got}")
    return list(value)


def figure_of(name: str, motion: Motion | Markers) -> Figure:
    """Where the points of a motion are, frame by frame."""
    if isinstance(motion, Markers):
        places = np.asarray(motion.places, dtype=np.float64)
        if (
            places.ndim != 3
            or places.shape[1:] != (len(motion.markers), 3)
            or not len(places)
            or np.isinf(places).any()
        ):
            raise ValueError(f"places of {name!r} must be (n_frames, {len(motion.markers)}, 3), got {places.shape}")
        if np.isnan(places).any(axis=-1).all(axis=-1).any():
            raise ValueError(
                f"places of {name!r} must have a marker that was seen in each frame, got a frame with none"
            )
        if motion.up not in ("x", "y", "z"):
            raise ValueError(f"up of {name!r} must be x, y or z, got {motion.up!r}")
        # The axes in turn: what was upwards becomes the second.
        axes = {"x": [2, 0, 1], "y": [0, 1, 2], "z": [1, 2, 0]}[motion.up]
        return Figure(name, places[:, :, axes], np.empty((0, 2), dtype=np.int64), [], None, motion.frame_time)
    skeleton = motion.skeleton
    places = motion.positions(ends=True)
    _check_range(places, f"places of {name!r}")
    n_joints = len(skeleton.joints)
    length = np.linalg.norm(places[:, skeleton.bones[:, 0]] - places[:, skeleton.bones[:, 1]], axis=2).max(axis=0)
    bones = skeleton.bones[length > 0]
    owner = [*range(n_joints), *skeleton.end_parents.tolist()]
    sides = [_side(skeleton.joints, skeleton.parents, owner[point]) for point in bones[:, 1].tolist()]
    ends = zip(skeleton.end_parents.tolist(), range(n_joints, len(owner)))
    head = next(([joint, end] for joint, end in ends if "head" in skeleton.joints[joint].lower()), None)
    return Figure(name, places, bones, sides, head, motion.frame_time)


def _side(names: Sequence[str], parents: NDArray[np.int64], joint: int) -> int:
    """1 or 2 if a joint, or one that it hangs on, is named left or right."""
    while joint >= 0:
        for code, pattern in enumerate(SIDES, start=1):
            if pattern.search(names[joint]):
                return code
        joint = int(parents[joint])
    return 0


def figure_data(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """Places as whole numbers of a small unit; sizes are shared by figures of the same bones, so that they compare."""
    sizes: dict[tuple[Any, ...], float] = {}
    keys = []
    for figure in figures:
        first = figure.places[0]
        length = np.linalg.norm(first[figure.bones[:, 0]] - first[figure.bones[:, 1]], axis=1).sum()
        keys.append((figure.places.shape[1], f"{length:.3g}"))
        heights = np.nanmax(figure.places[..., 1], axis=1) - np.nanmin(figure.places[..., 1], axis=1)
        sizes[keys[-1]] = max(sizes.get(keys[-1], 0.0), float(np.quantile(heights, 0.95)))
    return [_figure(figure, sizes[key]) for figure, key in zip(figures, keys)]


def _figure(figure: Figure, size: float) -> dict[str, Any]:
    places = figure.places
    low = np.nanmin(places, axis=(0, 1))
    extent = float((np.nanmax(places, axis=(0, 1)) - low).max()) or 1.0
    unit = extent / STEPS
    whole = np.where(np.isnan(places), UNSEEN, np.round((places - low) / unit) - STEPS // 2)
    return {
        "name": figure.name,
        "frames": len(places),
        "points": places.shape[1],
        "time": figure.frame_time,
        "origin": (low + unit * (STEPS // 2)).tolist(),
        "unit": unit,
        "places": packed(whole.astype(np.int16)),
        "bones": figure.bones.ravel().tolist(),
        "sides": figure.sides,
        "head": figure.head,
        "size": size or extent,
        "ground": float(np.quantile(np.nanmin(places[..., 1], axis=1), 0.05)),
    }


def pose_map(figures: Sequence[Figure]) -> list[Array] | None:
    """Two principal components of poses: places of the points seen from their middle, turned to one heading.

    None if figures do not have the same points, or some were not seen.
    """
    shapes = {(figure.places.shape[1], figure.bones.tobytes()) for figure in figures}
    if len(shapes) > 1 or any(np.isnan(figure.places).any() for figure in figures):
        return None
    start = figures[0].places[0]
    rows = np.concatenate([_poses(figure.places, start - start.mean(axis=0)) for figure in figures])
    rows = rows - rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows, full_matrices=False)
    largest = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
    axes = (directions * np.where(largest < 0, -1.0, 1.0)[:, None])[:2]  # a sign that no library chooses
    found = np.zeros((len(rows), 2))
    found[:, : len(axes)] = rows @ axes.T
    return np.split(found, np.cumsum([len(figure.places) for figure in figures])[:-1])


def _poses(places: Array, first: Array) -> Array:
    """Points seen from their middle, and turned about the vertical axis so as to fit the first pose best."""
    centred = places - places.mean(axis=1, keepdims=True)
    cosine = centred[..., 0] @ first[:, 0] + centred[..., 2] @ first[:, 2]
    sine = centred[..., 0] @ first[:, 2] - centred[..., 2] @ first[:, 0]
    angle = np.arctan2(sine, cosine)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, z = centred[..., 0], centred[..., 2]
    return np.stack([c * x - s * z, centred[..., 1], s * x + c * z], axis=2).reshape(len(places), -1)


def path_data(latents: Sequence[Any], figures: Sequence[Figure]) -> dict[str, Any] | None:
    """Paths in the map: coordinates from its middle, in units of half its longer side."""
    paths = [_path(latent, figure) for latent, figure in zip(latents, figures)]
    known = [path for path in paths if path is not None]
    if not known:
        return None
    flat = np.concatenate(known)
    low, high = flat.min(axis=0), flat.max(axis=0)
    middle, unit = low / 2 + high / 2, float((high - low).max()) / 2 or 1.0
    packs = [None if path is None else packed(((path - middle) / unit).astype(np.float32)) for path in paths]
    return {"middle": middle.tolist(), "unit": unit, "paths": packs}


def _path(latent: ArrayLike | None, figure: Figure) -> Array | None:
    if latent is None:
        return None
    found = np.asarray(latent)
    if found.ndim != 2 or len(found) != len(figure.places) or found.shape[1] < 1 or found.dtype.kind not in "biuf":
        raise ValueError(
            f"latent of {figure.name!r} must have a row of numbers for each of {len(figure.places)} frames, "
            f"got {found.dtype} of shape {found.shape}"
        )
    found = found[:, :2].astype(np.float64)
    _check_range(found, f"latent of {figure.name!r}")
    return np.column_stack([found, np.zeros(len(found))]) if found.shape[1] == 1 else found


def gap_list(gaps: Any, figure: Figure) -> list[list[int]]:
    """Gaps as first frames and frames after the last, in order."""
    n_frames = len(figure.places)
    if gaps is None:
        return []
    found = np.asarray(gaps)
    if found.dtype == bool and found.shape == (n_frames,):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], found, [False]]).astype(np.int8)))
        return edges.reshape(-1, 2).tolist()
    if found.size == 0:
        return []
    fits = found.ndim == 2 and found.shape[1] == 2 and found.dtype.kind in "iu"
    if not fits or (found[:, 0] >= found[:, 1]).any() or found.min() < 0 or found.max() > n_frames:
        raise ValueError(
            f"gaps of {figure.name!r} must be pairs (start, stop) with 0 <= start < stop <= {n_frames}, or a Boolean "
            f"for each frame, got {' '.join(str(gaps).split())[:80]}"
        )
    return sorted(found.tolist())


def hand_over_list(hand_overs: Any, figure: Figure) -> list[list[Any]]:
    """Hand-overs as frames and texts, in order."""
    is_list = isinstance(hand_overs, list | tuple | np.ndarray) and not any(
        isinstance(part, str) for part in hand_overs
    )
    found = []
    for one in [] if hand_overs is None else hand_overs if is_list else [hand_overs]:
        frame, text = one if isinstance(one, Sequence) and len(one) == 2 else (one, "")
        whole = isinstance(frame, int | np.integer) and not isinstance(frame, bool)
        if not whole or not 0 <= frame < len(figure.places) or not isinstance(text, str):
            raise ValueError(
                f"hand_overs of {figure.name!r} must be frames from 0 to {len(figure.places) - 1}, or pairs of a frame "
                f"and a text, got {one!r}"
            )
        found.append([int(frame), " ".join(text.split())[:MOST_LABEL]])
    return sorted(found)


def regime_data(regimes: Sequence[Any], figures: Sequence[Figure]) -> dict[str, Any] | None:
    """Names of regimes, those of numbers by value, and the one of each frame (255 is none)."""
    if all(given is None for given in regimes):
        return None
    rows = []
    for given, figure in zip(regimes, figures):
        cells = [] if given is None else np.asarray(given).tolist()
        if given is not None and (np.ndim(given) != 1 or len(cells) != len(figure.places)):
            raise ValueError(
                f"regimes of {figure.name!r} must be one for each of {len(figure.places)} frames, got "
                f"shape {np.shape(given)}"
            )
        rows.append([None if cell is None or cell != cell else cell for cell in cells])
    labels = {cell for row in rows for cell in row if cell is not None}
    numbers = all(isinstance(label, int | float) for label in labels)
    in_order = sorted(labels) if numbers else sorted(labels, key=str)
    if len(in_order) > MOST_REGIMES:
        raise ValueError(f"regimes must be at most {MOST_REGIMES} different ones, got {len(in_order)}")
    code = {label: place for place, label in enumerate(in_order)}
    codes = [np.array([255 if cell is None else code[cell] for cell in row], dtype=np.uint8) for row in rows]
    names = [_regime_name(label) for label in in_order]
    return {"names": names, "codes": [packed(row) if len(row) else None for row in codes]}


def _regime_name(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return " ".join(str(label).split())[:MOST_LABEL]


def _check_range(values: Array, name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in frame {int(np.argwhere(~np.isfinite(values))[0, 0])}"
        )
    if np.abs(values).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must be numbers up to {LARGEST:g}, got {np.abs(values).max():g}")
