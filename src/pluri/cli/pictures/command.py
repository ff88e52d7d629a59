"""``pluri denoise`` and ``pluri inpaint``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import note, reporting
from pluri.cli.outputs import check_output
from pluri.cli.pictures.files import SUFFIXES, PictureFile, pillow, read_picture, write_picture
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Picture = Annotated[
    Path, typer.Argument(metavar="IMAGE", exists=True, dir_okay=False, help="PNG or other file that Pillow can read.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="File for the picture, of type .png.")]
Page = Annotated[Path | None, typer.Option(metavar="FILE", help="File for a page too: before and after, .html.")]
Std = Annotated[
    Path | None,
    typer.Option("--std", metavar="FILE", help="File for the standard deviation of each pixel, of [0, 1], .npy."),
]
Atoms = Annotated[int | None, typer.Option("--atoms", "-k", min=1, help="Largest number of atoms.")]
Auto = Annotated[
    int | None, typer.Option("--patch-size", min=2, help="Pixels of a side of a patch; by the noise unless given.")
]
PatchSize = Annotated[int, typer.Option(min=2, help="Pixels of a side of a patch.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def denoise(
    image: Picture,
    output: Output,
    page: Page = None,
    std: Std = None,
    atoms: Atoms = None,
    patch_size: Auto = None,
    seed: Seed = 0,
    force: options.Force = False,
    quiet: Quiet = False,
) -> None:
    """Take the noise out of a picture; how much there is of it is inferred.

    Grey and colour, 8 or 16 bits; an alpha channel is kept as it is.

    [bold]pluri denoise scan.png -o clean.png --page clean.html[/]
    """
    with reporting():
        _check_places(output, page, std, force)
        from pluri.factors import ImageDenoiser

        file = read_picture(image)
        model = ImageDenoiser(**_settings(atoms, patch_size, seed, quiet)).fit(file.pixels)
        restored, spread = model.denoise(file.pixels, return_std=True)
        _write(model, image, file, file.pixels, restored, spread, (output, page, std))


def inpaint(
    image: Picture,
    mask: Annotated[
        Path,
        typer.Option(exists=True, dir_okay=False, help="Picture of the same size; what is not black is missing."),
    ],
    output: Output,
    page: Page = None,
    std: Std = None,
    atoms: Atoms = None,
    patch_size: PatchSize = 8,
    seed: Seed = 0,
    force: options.Force = False,
    quiet: Quiet = False,
) -> None:
    """Fill the missing pixels of a picture.

    Pixels that are there stay as they are, and so does an alpha channel.

    [bold]pluri inpaint photo.png --mask scratches.png -o whole.png[/]
    """
    with reporting():
        _check_places(output, page, std, force)
        import numpy as np

        from pluri.factors import ImageInpainter

        file, holes = read_picture(image), read_picture(mask, "--mask").pixels
        missing = np.asarray(holes.any(axis=2) if holes.ndim == 3 else holes != 0)
        if missing.shape != file.pixels.shape[:2]:
            height, width = file.pixels.shape[:2]
            raise UsageError(
                f"--mask must have the size of the picture, {width} x {height}, "
                f"got {missing.shape[1]} x {missing.shape[0]}"
            )
        model = ImageInpainter(**_settings(atoms, patch_size, seed, quiet)).fit(file.pixels, mask=missing)
        restored, spread = model.inpaint(file.pixels, missing, return_std=True)
        shown = np.where(missing[..., None] if file.pixels.ndim == 3 else missing, 0, file.pixels)
        _write(model, image, file, shown.astype(file.pixels.dtype), restored, spread, (output, page, std))


def _check_places(output: Path, page: Path | None, std: Path | None, force: bool) -> None:
    check_output(output, force, SUFFIXES)
    check_output(page, force, (".html", ".htm"), "--page")
    check_output(std, force, (".npy",), "--std")
    pillow()


def _settings(atoms: int | None, patch_size: int | None, seed: int, quiet: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"random_state": seed, "verbose": 0 if quiet else 1}
    if patch_size is not None:
        found["patch_size"] = patch_size
    return found if atoms is None else found | {"n_components": atoms}


def _write(
    model: Any,
    image: Path,
    file: PictureFile,
    before: NDArray[Any],
    restored: NDArray[Any],
    spread: NDArray[Any],
    places: tuple[Path, Path | None, Path | None],
) -> None:
    import numpy as np

    from pluri.validation import replacing

    output, page, std = places
    write_picture(output, restored, file)
    largest = np.iinfo(file.pixels.dtype).max
    low, high = largest * model.noise_interval_
    note(f"noise of sd {largest * model.noise_sd_:.2f} of {largest} ({low:.2f} to {high:.2f}); written to {output}")
    if std is not None:
        with replacing(std, "--std") as target:
            np.save(target, spread, allow_pickle=False)
    if page is not None:
        from pluri.report import picture_report

        picture_report(before, restored, page, std=spread, model=model, title=image.name)
        note(f"page written to {page}")
