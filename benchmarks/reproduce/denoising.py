"""Denoising of eight standard grey pictures with noise of sd 15, 25 and 50 of 255, which only the peers are told.

Peak signal-to-noise ratio in dB, beside K-SVD (our own, as Elad and Aharon 2006 describe it, with spams' OMP), and
scikit-image's total variation, wavelets and non-local means and BM3D.
Beside: the noise level that is inferred, how many pixels are within the intervals of 90 %, with the standard deviation
that is given and with the one that patches state, and seconds of a processor. What is not installed is left out.

    PLURI_DATA=... python benchmarks/reproduce/denoising.py           # some twenty minutes
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --ksvd    # no other peers
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --alone   # no peers at all
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --color   # three colour pictures, beside channel by channel
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --quick   # two pictures, noise of 25
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --alone --training   # pictures to choose rules on
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np

from pluri.datasets import load_bsds_color, load_bsds_gray, load_test_images
from pluri.factors import ImageDenoiser
from pluri.factors.dictionaries.images.learning import cosine_atoms
from pluri.factors.dictionaries.images.patches import PatchGrid
from pluri.factors.dictionaries.images.pixels import as_picture

SIZE = 8


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((image - truth) ** 2)))


def ksvd(noisy: np.ndarray, sd: float, n_atoms: int = 256, n_iter: int = 10, n_train: int = 40_000) -> np.ndarray:
    """K-SVD with the constant atom fixed, an error of 1.15 sd allowed, and 30 / sd (of 255) of the noisy picture."""
    import spams

    rng = np.random.default_rng(0)
    pixels = noisy[..., None] * 255
    sd = sd * 255
    grid = PatchGrid.of(pixels.shape, SIZE)
    patches = np.asfortranarray(grid.extract(pixels).T)
    some = np.asfortranarray(patches[:, rng.permutation(patches.shape[1])[:n_train]])
    atoms = np.concatenate([np.full((1, SIZE**2), 1 / SIZE), cosine_atoms(n_atoms - 1, SIZE, 1)])
    D = np.asfortranarray(atoms.T)
    options = {"L": SIZE**2 // 2, "eps": float(SIZE**2 * (1.15 * sd) ** 2), "numThreads": 1}
    for _ in range(n_iter):
        codes = spams.omp(some, D, **options).tocsr()
        left = some - D @ codes
        for k in rng.permutation(np.arange(1, n_atoms)):
            part = slice(codes.indptr[k], codes.indptr[k + 1])
            users, weights = codes.indices[part], codes.data[part]
            if not len(users):  # an atom that nobody uses becomes the patch that is coded worst
                worst = some[:, np.argmax((left**2).sum(axis=0))]
                D[:, k] = (worst - worst.mean()) / np.linalg.norm(worst - worst.mean())
                continue
            errors = left[:, users] + np.outer(D[:, k], weights)
            atom = errors @ weights
            D[:, k] = atom / np.linalg.norm(atom)
            codes.data[part] = D[:, k] @ errors
            left[:, users] = errors - np.outer(D[:, k], codes.data[part])
    total, count = np.zeros(pixels.shape), np.zeros(pixels.shape)
    restored = (D @ spams.omp(patches, D, **options)).T
    grid.add(total, restored)
    grid.add(count, np.ones_like(restored))
    own = 30 / sd
    return ((total + own * pixels) / (count + own))[..., 0] / 255


def peers() -> dict[str, Callable[[np.ndarray, float], np.ndarray]]:
    """Those that are installed; each is told the noise."""
    found: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {}
    try:
        import spams  # noqa: F401

        found["K-SVD"] = ksvd
    except ImportError:
        pass
    try:
        from skimage import restoration

        found["TV"] = lambda y, sd: restoration.denoise_tv_chambolle(y, weight=1.2 * sd)
        found["wavelet"] = lambda y, sd: restoration.denoise_wavelet(y, sigma=sd, rescale_sigma=False)
        found["non-local"] = lambda y, sd: restoration.denoise_nl_means(
            y, patch_size=5, patch_distance=6, h=0.8 * sd, sigma=sd
        )
    except ImportError:
        pass
    try:
        import bm3d

        found["BM3D"] = lambda y, sd: bm3d.bm3d(y, sd)
    except ImportError:
        pass
    return found


def ours(noisy: np.ndarray) -> tuple[ImageDenoiser, np.ndarray, dict[str, np.ndarray]]:
    model = ImageDenoiser(random_state=0).fit(noisy)
    restored, std = model.denoise(noisy, return_std=True)
    stated = model._restore(as_picture(noisy), with_std=False).std.reshape(noisy.shape)
    return model, restored, {"given": std, "stated": stated}


def in_color(side: int = 160) -> None:
    """The middle of three colour pictures, all channels together and one by one."""
    print(f"{'':18}{'together':>10}{'one by one':>12}   inferred   cover (stated) seconds")
    for sd in (25, 50):
        for name, image in load_bsds_color().items():
            top, left = ((extent - side) // 2 for extent in image.shape[:2])
            clean = image[top : top + side, left : left + side] / 255
            noisy = clean + np.random.default_rng(1).normal(0, sd / 255, clean.shape)
            started = process_time()
            model, restored, std = ours(noisy)
            seconds = process_time() - started
            alone = np.stack([ImageDenoiser(random_state=0).fit_transform(noisy[..., c]) for c in range(3)], axis=2)
            cover = [float((np.abs(restored - clean) < 1.645 * each).mean()) for each in std.values()]
            print(
                f"{name:12} sd {sd}{psnr(restored, clean):10.2f}{psnr(alone, clean):12.2f}"
                f"{255 * model.noise_sd_:11.2f}{cover[0]:8.3f}{cover[1]:8.3f}{seconds:9.1f}", flush=True,
            )  # fmt: skip


def main() -> None:
    if "--color" in sys.argv[1:]:
        return in_color()
    quick = "--quick" in sys.argv[1:]
    small = sorted(load_test_images().items(), key=lambda item: item[1].size)
    images = dict(small) | {"bsds img00": load_bsds_gray()["img00"]}
    if quick:
        images = {name: images[name] for name in ("house", "cameraman")}
    if "--training" in sys.argv[1:]:
        found = load_bsds_gray()
        images = {name: found[name][80:240, 160:320] for name in ("img01", "img03", "img05", "img08", "img11", "img14")}
    others = {name: peer for name, peer in peers().items() if name == "K-SVD" or "--ksvd" not in sys.argv[1:]}
    others = {} if "--alone" in sys.argv[1:] else others
    columns = ["pluri", *others]
    print(f"{'':18}" + "".join(f"{name:>10}" for name in columns) + "   inferred   cover (stated) seconds")
    for sd in (25,) if quick else (25, 50, 15):
        table = []
        for name, image in images.items():
            clean = image / 255
            noisy = clean + np.random.default_rng(1).normal(0, sd / 255, clean.shape)
            started = process_time()
            model, restored, std = ours(noisy)
            seconds = process_time() - started
            row = [psnr(restored, clean), *(psnr(other(noisy, sd / 255), clean) for other in others.values())]
            cover = [float((np.abs(restored - clean) < 1.645 * each).mean()) for each in std.values()]
            table.append(row + cover)
            print(
                f"{name:12} sd {sd}" + "".join(f"{value:10.2f}" for value in row)
                + f"{255 * model.noise_sd_:11.2f}{cover[0]:8.3f}{cover[1]:8.3f}{seconds:9.1f}", flush=True,
            )  # fmt: skip
        means = np.mean(table, axis=0)
        cells = "".join(f"{value:10.2f}" for value in means[:-2])
        print(f"{'mean':12} sd {sd}{cells}{'':11}{means[-2]:8.3f}{means[-1]:8.3f}", flush=True)


if __name__ == "__main__":
    main()
