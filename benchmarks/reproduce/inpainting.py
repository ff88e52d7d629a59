"""Inpainting of standard grey pictures, half or four fifths of the pixels missing, beside scikit-image's biharmonic.

Peak signal-to-noise ratio in dB over the whole picture, how many missing pixels are within the intervals of 90 %, and
seconds of a processor. What is not installed is left out.

    PLURI_DATA=... python benchmarks/reproduce/inpainting.py           # ten minutes
    PLURI_DATA=... python benchmarks/reproduce/inpainting.py --quick   # the house alone
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from pluri.datasets import load_bsds_color, load_bsds_gray, load_test_images
from pluri.factors import inpaint_image


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((image - truth) ** 2)))


def biharmonic(image: np.ndarray, missing: np.ndarray) -> float | None:
    try:
        from skimage.restoration import inpaint_biharmonic
    except ImportError:
        return None
    in_color = {"channel_axis": -1} if image.ndim == 3 else {}
    hidden = np.where(missing[..., None] if image.ndim == 3 else missing, 0, image)
    return psnr(inpaint_biharmonic(hidden, missing, **in_color), image)


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    images = dict(sorted(load_test_images().items(), key=lambda item: item[1].size))
    images |= {"bsds img00": load_bsds_gray()["img00"], "castle": load_bsds_color()["castle"]}
    if quick:
        images = {"house": images["house"]}
    print(f"{'':20}{'missing':>8}{'pluri':>8}{'biharmonic':>12}{'cover':>8}{'seconds':>9}")
    for name, image in images.items():
        clean = image / 255
        for share in (0.5, 0.8):
            missing = np.random.default_rng(0).random(clean.shape[:2]) < share
            started = process_time()
            filled, std = inpaint_image(clean, missing, return_std=True, random_state=0)
            seconds = process_time() - started
            cover = float((np.abs(filled - clean) < 1.645 * std)[missing].mean())
            other = biharmonic(clean, missing)
            told = "-" if other is None else f"{other:.2f}"
            print(f"{name:20}{share:8.0%}{psnr(filled, clean):8.2f}{told:>12}{cover:8.3f}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
