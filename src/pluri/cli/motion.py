"""``pluri motion``: BVH files as stick figures on a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, reporting
from pluri.cli.embedding import METHODS, estimator_of, fit_or_stop, places_of
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from pluri.datasets import Motion

POSES = "poses"
#: A frame has one place: mixtures, which give several, are left out.
MAPS = tuple(name for name in METHODS if name != "mixture-sne")


def motion(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.bvh", help="One or more BVH files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the page, such as walk.html.")],
    method: Annotated[
        str,
        typer.Option(
            help=f"How the map is made: {POSES} (two principal components of places of joints), or of the features of "
            f"motions by {', '.join(MAPS)}."
        ),
    ] = POSES,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be given many times."),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Keep every so many frames only; 4 makes 30 Hz of 120 Hz.")] = 1,
    title: Annotated[str | None, typer.Option(help="Heading of the page; names of the files by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the method.")] = 0,
    force: options.Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Play motion capture: BVH files as stick figures on a page, beside a map of their poses.

    Several files are played in step, side by side. The page is one HTML file that needs nothing else. Ctrl-C while the
    map is made keeps the map so far, and the exit code is 130.
    """
    with reporting():
        check_output(output, force, (".html", ".htm"))
        if method == POSES and settings:
            raise UsageError(f"--set must be given with another --method than {POSES}, which has no parameters")
        estimator = None if method == POSES else _estimator(method, settings or [], seed)
        from pluri.datasets import read_bvh
        from pluri.report import motion_report

        motions = [_thinned(read_bvh(file), every) for file in files]
        latent, interrupted = None, False
        if estimator is not None:
            latent, interrupted = _map(estimator, motions, quiet)
        facts = {} if estimator is None else {"method": type(estimator).__name__}
        motion_report(motions, output, latent=latent, title=title, facts=facts)
        n_frames = sum(map(len, motions))
        note(f"{n_frames} frames of {len(motions)} motion{'s' * (len(motions) > 1)} written to {output}")
        if interrupted:
            note("interrupted: this is the map so far")
            raise typer.Exit(INTERRUPTED)


def _estimator(method: str, settings: list[str], seed: int) -> Any:
    if method not in MAPS:
        raise UsageError(f"--method must be one of {', '.join([POSES, *MAPS])}, got {method!r}")
    return estimator_of(method, settings, seed)


def _thinned(motion: Motion, every: int) -> Motion:
    from dataclasses import replace

    return replace(motion, frames=motion.frames[::every], frame_time=motion.frame_time * every)


def _map(estimator: Any, motions: list[Motion], quiet: bool) -> tuple[Any, bool]:
    """Coordinates of each motion, by the method fitted to standardized features of all of them."""
    import numpy as np

    from pluri.datasets import moving_joints

    joints = moving_joints(motions)
    X = np.concatenate([motion.to_features(joints=joints) for motion in motions])
    scale = X.std(axis=0)
    X = (X - X.mean(axis=0))[:, scale > 1e-9] / scale[scale > 1e-9]
    interrupted = fit_or_stop(estimator, X, quiet)
    places = np.asarray(places_of(estimator, X))
    return np.split(places, np.cumsum([len(motion) for motion in motions])[:-1]), interrupted
