"""Denoising of eight standard grey pictures with noise of sd 15, 25 and 50 of 255, which only the peers are told.

Peak signal-to-noise ratio in dB, beside K-SVD (our own, as Elad and Aharon 2006 describe it, with spams' OMP), and
scikit-image's total variation, wavelets and non-local means and BM3D.
Beside: the noise level that is inferred, how many pixels are within the intervals of 90 %, with the standard deviation
that is given and with the one that patches state, and seconds of a processor. What is not installed is left out. In the
column "published" are the figures of that paper, for the four of our pictures that it has, and the mean over these.

    PLURI_DATA=... python benchmarks/reproduce/denoising.py           # some twenty minutes
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --ksvd    # no other peers
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --alone   # no peers at all
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --color   # three colour pictures, beside channel by channel
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --quick   # two pictures, noise of 25
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --results table.jsonl   # goes on where it was stopped
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --alone --training   # pictures to choose rules on
    PLURI_DATA=... python benchmarks/reproduce/denoising.py --sizes   # of these, PSNR by the size of patches
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from published import kept

from pluri.datasets import load_bsds_color, load_bsds_gray, load_test_images
from pluri.factors import ImageDenoiser
from pluri.factors.dictionaries.images.learning import cosine_atoms
from pluri.factors.dictionaries.images.patches import PatchGrid
from pluri.factors.dictionaries.images.pixels import as_picture

SIZE = 8
#: Elad and Aharon (2006), table 1, dictionaries learned from the noisy picture: noise of 15, 25 and 50.
PUBLISHED_KSVD = {
    "barbara": {15: 32.37, 25: 29.60, 50: 25.47}, "boat": {15: 31.73, 25: 29.28, 50: 25.95},
    "house": {15: 34.32, 25: 32.15, 50: 27.95}, "peppers": {15: 32.22, 25: 29.73, 50: 26.13},
}  # fmt: skip


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


def measured(clean: np.ndarray, sd: int, others: dict[str, Callable[[np.ndarray, float], np.ndarray]]) -> dict:
    """PSNR of ours and the others on one picture, the noise inferred, coverage and seconds."""
    noisy = clean + np.random.default_rng(1).normal(0, sd / 255, clean.shape)
    started = process_time()
    model, restored, std = ours(noisy)
    seconds = process_time() - started
    found = {"pluri": psnr(restored, clean)}
    found |= {name: psnr(other(noisy, sd / 255), clean) for name, other in others.items()}
    cover = [float((np.abs(restored - clean) < 1.645 * each).mean()) for each in std.values()]
    return {"psnr": found, "inferred": 255 * model.noise_sd_, "cover": cover, "seconds": seconds}


def cell(value: float | None) -> str:
    return f"{'-':>10}" if value is None else f"{value:10.2f}"


def show(title: str, row: dict, columns: list[str], published: float | None) -> None:
    told = "".join(cell(row["psnr"].get(name)) for name in columns) + cell(published)
    print(
        f"{title:18}{told}{row['inferred']:11.2f}{row['cover'][0]:8.3f}{row['cover'][1]:8.3f}{row['seconds']:9.1f}",
        flush=True,
    )


def sizes(images: dict[str, np.ndarray]) -> None:
    """PSNR of each picture by the size of patches, and the size that is chosen."""
    tried: tuple[int | str, ...] = (8, 10, 12, "auto")
    for sd in (25, 50):
        found = {size: [] for size in tried}
        for image in images.values():
            clean = image / 255
            noisy = clean + np.random.default_rng(1).normal(0, sd / 255, clean.shape)
            for size in tried:
                found[size].append(psnr(ImageDenoiser(patch_size=size, random_state=0).fit_transform(noisy), clean))
        for size, values in found.items():
            print(f"sd {sd}, patches of {size!s:5}" + "".join(map(cell, [*values, np.mean(values)])), flush=True)


def table(images: dict[str, np.ndarray], sds: tuple[int, ...], others: dict, path: Path | None) -> None:
    """A row for each picture and noise, and means: of all pictures, and of those that were published."""
    columns = ["pluri", *others]
    print(
        f"{'':18}" + "".join(f"{name:>10}" for name in [*columns, "published"]) + "   inferred   cover (stated) seconds"
    )
    for sd in sds:
        rows = {}
        for name, image in images.items():
            which = {"picture": name, "shape": list(image.shape), "sd": sd, "columns": columns}
            row = kept(path, which, partial(measured, image / 255, sd, others))
            rows[name] = row
            show(f"{name:12} sd {sd}", row, columns, PUBLISHED_KSVD.get(name, {}).get(sd))
        some = {name: row for name, row in rows.items() if name in PUBLISHED_KSVD}
        for title, part in (("mean", rows), ("published ones", some)):
            if part:
                mean = {
                    "psnr": {key: np.mean([row["psnr"][key] for row in part.values()]) for key in columns},
                    "cover": np.mean([row["cover"] for row in part.values()], axis=0),
                    "inferred": np.mean([row["inferred"] for row in part.values()]),
                    "seconds": np.mean([row["seconds"] for row in part.values()]),
                }
                published = np.mean([PUBLISHED_KSVD[name][sd] for name in some]) if part is some else None
                show(f"{title:14} {sd}", mean, columns, published)


def main() -> None:
    given = sys.argv[1:]
    if "--color" in given:
        return in_color()
    small = sorted(load_test_images().items(), key=lambda item: item[1].size)
    images = dict(small) | {"bsds img00": load_bsds_gray()["img00"]}
    if "--quick" in given:
        images = {name: images[name] for name in ("house", "cameraman")}
    if {"--training", "--sizes"} & set(given):
        found = load_bsds_gray()
        images = {name: found[name][80:240, 160:320] for name in ("img01", "img03", "img05", "img08", "img11", "img14")}
    if "--sizes" in given:
        return sizes(images)
    others = {name: peer for name, peer in peers().items() if name == "K-SVD" or "--ksvd" not in given}
    others = {} if "--alone" in given else others
    path = Path(given[given.index("--results") + 1]) if "--results" in given else None
    table(
        images,
        (int(given[given.index("--sd") + 1]),) if "--sd" in given else (25,) if "--quick" in given else (25, 50, 15),
        others,
        path,
    )


if __name__ == "__main__":
    main()
