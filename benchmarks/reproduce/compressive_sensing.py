"""Pictures from a quarter of the measurements: ten methods, two dictionaries, random and matched projections.

    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --quick    # two pictures, a few minutes
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py            # all of it
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --only table
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --only starts   # of how many clusters
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --only gaussians   # no dictionary
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --quick --only table --ours
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --training   # pictures to choose rules on
    PLURI_DATA=folder python benchmarks/reproduce/compressive_sensing.py --results errors.jsonl   # goes on later

Tiles of 8 x 8 pixels, of which n = 25 Gaussian projections are measured, other ones for each tile. The published table
(thesis on beta-process dictionaries, five classes of pictures that are not to be had) is in the columns "published":
means over its classes. Dictionaries: the cosine basis, and one learned by `BetaProcessDictionary` from 4,000 patches of
23 photographs of the Berkeley set, none of which is a test picture. Our methods are given the fitted dictionary, from
which they know how its atoms are used; for the others, and for "array" as the usage prior, atoms that no patch uses are
left out.

What is printed is the relative error ``|x' - x| / |x|`` of a whole picture. The brightness of a tile is treated the
same by all methods: a constant of the tile without any prior or penalty, as an intercept is (``center="sample"``); the
methods see the other 24 measurements. Settings of the other methods (tolerances, penalties) are those, of a grid, that
recover 60 patches of the training pictures best; ours have none.

Needs ``bsds68_gray_first24.npz``, ``bsds_color_castle_horses_mushroom.npz`` and ``test_images_gray.npz`` in PLURI_DATA.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from published import figure_path, kept, run_if_data
from scipy.fft import idctn

from pluri.datasets import data_home
from pluri.factors import (
    BasisPursuit,
    BetaProcessDictionary,
    CompressiveRecovery,
    FastBCS,
    LarsLasso,
    MatchingPursuit,
    PatchCompressor,
    StOMP,
    SVDProjection,
    VariationalBCS,
)
from pluri.factors.dictionaries.sensing import gram_coherence, random_projections, sparse_codes
from pluri.factors.dictionaries.sensing.measurements import prepare_measurements
from pluri.mixtures import FactorAnalyzerMixture

Array = np.ndarray
SIDE, N_MEASUREMENTS, N_TRAINING, N_VALIDATION = 8, 25, 4000, 60
#: The castle, in grey; it must not be among the training pictures.
CASTLE_IN_TRAINING = "img10"
#: Means over the five classes of the published tables: cosine basis, learned dictionary.
PUBLISHED = {
    "DP": (0.0935, 0.0490), "PSBP": (0.0930, 0.0488), "BP": (0.1126, 0.0898), "OMP": (0.1199, 0.1003),
    "StOMP": (0.1467, 0.1225), "VB BCS": (0.1100, 0.0983), "fast BCS": (0.1267, 0.0888), "LARS": (0.1113, 0.1012),
    "basis pursuit": (0.1147, 0.0846), "online BP": (None, 0.1074),
}  # fmt: skip
GRIDS: dict[str, list[Any]] = {
    "basis pursuit": [BasisPursuit(penalty) for penalty in (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)],
    "LARS": [LarsLasso(max_residual=share) for share in (0.02, 0.05, 0.1, 0.2, 0.3)],
    "OMP": [MatchingPursuit(max_residual=share) for share in (0.05, 0.1, 0.2, 0.3, 0.4)],
    "StOMP": [StOMP(rate) for rate in (0.01, 0.05, 0.2)],
    "VB BCS": [VariationalBCS(max_iter=100, tol=1e-4)],
    "fast BCS": [FastBCS(noise_variance=share, tol=1e-4) for share in (0.0003, 0.001, 0.003, 0.01, 0.03)],
}
BASELINES = tuple(GRIDS)
OURS = {"BP": "beta_process", "DP": "dp", "PSBP": "psbp"}
#: Photographs to choose the number of clusters on that a chain begins with.
OF_STARTS = ("img01", "img03", "img05", "img08", "img11", "img14")


def cosine_basis() -> Array:
    """The cosine basis of a tile without its constant: (63, 64)."""
    return np.array([idctn(unit.reshape(SIDE, SIDE), norm="ortho").ravel() for unit in np.eye(SIDE**2)])[1:]


def training_patches(n: int, rng: np.random.Generator, without: tuple[str, ...] = ()) -> Array:
    """Random patches of photographs, none of which is a test picture, nor one of those without which it is to be."""
    left_out = {CASTLE_IN_TRAINING, *without}
    with np.load(data_home() / "bsds68_gray_first24.npz") as stored:
        pictures = [stored[name].astype(float) for name in stored.files if name not in left_out]
    patches = np.empty((n, SIDE**2))
    for patch in patches:
        picture = pictures[rng.integers(len(pictures))]
        row, column = (rng.integers(extent - SIDE + 1) for extent in picture.shape)
        patch[:] = picture[row : row + SIDE, column : column + SIDE].ravel()
    return patches


def learned_dictionary(patches: Array) -> BetaProcessDictionary:
    """A dictionary, with classes of patches that use its atoms alike."""
    model = BetaProcessDictionary(
        256, center="sample", usage_prior="dp", dtype="float32", n_warmup=150, n_draws=20, random_state=0
    ).fit(patches)  # fmt: skip
    print(
        f"learned dictionary: {len(atoms_of(model))} of 256 atoms in use, {len(model.code_shares_)} classes of codes; "
        f"noise {model.noise_variance_**0.5:.2f} grey levels"
    )
    return model


def atoms_of(dictionary: Array | BetaProcessDictionary) -> Array:
    """Atoms that at least one patch in a thousand uses."""
    if isinstance(dictionary, np.ndarray):
        return dictionary
    return dictionary.components_[dictionary.usage_ > 1e-3]


def pictures(size: int, names: tuple[str, ...]) -> dict[str, Array]:
    """The middle of each test picture, `size` pixels wide and high."""
    with np.load(data_home() / "bsds_color_castle_horses_mushroom.npz") as stored:
        whole = {"castle": stored["castle"].astype(float) @ [0.299, 0.587, 0.114]}
    with np.load(data_home() / "test_images_gray.npz") as stored:
        whole |= {name: stored[name].astype(float) for name in names if name in stored.files}
    cut = {}
    for name in names:
        top, left = ((extent - size) // 2 for extent in whole[name].shape)
        cut[name] = whole[name][top : top + size, left : left + size]
    return cut


def training_picture(name: str, size: int) -> Array:
    """The middle of a photograph of the Berkeley set."""
    with np.load(data_home() / "bsds68_gray_first24.npz") as stored:
        whole = stored[name].astype(float)
    top, left = ((extent - size) // 2 for extent in whole.shape)
    return whole[top : top + size, left : left + size]


def relative_error(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def by_baseline(method: Any, Y: Array, S: Array, atoms: Array) -> Array:
    """Rows that a method recovers, with a constant of each row that is not penalised."""
    data = prepare_measurements(Y, S, n_features=atoms.shape[1], noise_model="measurement", center="sample")
    codes = sparse_codes(method, data.values, np.swapaxes(data.measured(atoms), -1, -2))
    return data.whole(codes @ atoms) * data.scale


def by_ours(usage_prior: str, Y: Array, S: Array, atoms: Any, locations: Array) -> Array:
    model = CompressiveRecovery(atoms, usage_prior=usage_prior, center="sample", n_components=128, random_state=0)
    return model.fit(Y, S, locations=locations if usage_prior == "psbp" else None).recover()


def by_factor_analysers(model: FactorAnalyzerMixture, Y: Array, S: Array) -> Array:
    """Rows that a mixture of normal distributions of low rank recovers in closed form, with noise of one grey level."""
    data = prepare_measurements(Y, S, n_features=SIDE**2, noise_model="measurement", center="sample")
    return data.whole(model.recover(data.values * data.scale, data.projections, 1.0) / data.scale) * data.scale


def factor_analysers(cut: dict[str, Array], patches: Array) -> None:
    """Errors of mixtures of factor analysers of the training patches: of one normal distribution, and of several."""
    centred = patches - patches.mean(axis=1, keepdims=True)
    rows: dict[str, dict[str, float]] = {name: {} for name in cut}
    for n_components, n_factors in ((1, 40), (10, 30), (20, 20)):
        model = FactorAnalyzerMixture(
            n_components, n_factors, noise_type="isotropic", max_iter=200, tol=1e-3, random_state=0
        ).fit(centred)
        for name, picture in cut.items():
            compressor = PatchCompressor(SIDE, N_MEASUREMENTS, random_state=2).fit(picture)
            found = by_factor_analysers(model, compressor.transform(picture), compressor.projections_)
            error = relative_error(compressor.inverse_transform(found), picture)
            rows[name][f"{n_components} of rank {n_factors}"] = error
    show(f"Relative error, mixtures of factor analysers, n = {N_MEASUREMENTS} of 64", rows, lambda method: None)


def chosen_settings(atoms: Array, patches: Array, n: int) -> dict[str, Any]:
    """Of each grid the settings that recover training patches best."""
    S = random_projections(n, patches.shape[1], len(patches), random_state=1)
    Y = np.einsum("inp,ip->in", S, patches)
    found = {}
    for name, grid in GRIDS.items():
        errors = [relative_error(by_baseline(method, Y, S, atoms), patches) for method in grid]
        found[name] = grid[int(np.argmin(errors))]
    return found


def errors_of(
    picture: Array, atoms: Any, settings: dict[str, Any], projection: Any, n: int, blind: bool = False
) -> dict[str, float]:
    """Error of each method on one picture."""
    compressor = PatchCompressor(SIDE, n, projection=projection, random_state=2).fit(picture)
    Y, S = compressor.transform(picture), compressor.projections_

    def error(rows: Array) -> float:
        return relative_error(compressor.inverse_transform(rows), picture)

    found = {name: error(by_ours(prior, Y, S, atoms, compressor.locations_)) for name, prior in OURS.items()}
    found |= {name: error(by_baseline(method, Y, S, atoms_of(atoms))) for name, method in settings.items()}
    if blind:
        found["DP, array"] = error(by_ours("dp", Y, S, atoms_of(atoms), compressor.locations_))
        found["online BP"] = error(by_ours("beta_process", Y, S, None, compressor.locations_))
    return found


def starts(atoms: Array, path: Path | None) -> None:
    """Error of DP on photographs that are not in the table, by how many clusters a chain begins with at least."""
    from pluri.factors.dictionaries.usage import clusters

    rows: dict[str, dict[str, float]] = {}
    for name in OF_STARTS:
        picture = training_picture(name, 160)
        compressor = PatchCompressor(SIDE, N_MEASUREMENTS, random_state=2).fit(picture)
        Y, S = compressor.transform(picture), compressor.projections_

        def error(picture: Array = picture, compressor: Any = compressor, Y: Array = Y, S: Array = S) -> float:
            found = by_ours("dp", Y, S, atoms, compressor.locations_)
            return relative_error(compressor.inverse_transform(found), picture)

        rows[name] = {}
        for fewest in (1, 3, 5, 8, 20):
            clusters.FEWEST = fewest
            rows[name][f"{fewest} or more"] = kept(path, {"picture": name, "fewest": fewest}, error)
    show(
        "Relative error of DP, learned dictionary, by the clusters that a chain begins with", rows, lambda method: None
    )


def show(title: str, rows: dict[str, dict[str, float]], published: Callable[[str], float | None]) -> dict[str, float]:
    """Print a table, pictures as columns, and give the means."""
    names = list(rows)
    print(f"\n{title}\n{'-' * len(title)}")
    print(f"{'':<16s}" + "".join(f"{name[:12]:>14s}" for name in names) + f"{'mean':>10s}{'published':>11s}")
    means = {}
    for method in rows[names[0]]:
        values = [rows[name][method] for name in names]
        means[method] = float(np.mean(values))
        paper = published(method)
        told = "-" if paper is None else f"{paper:.4f}"
        print(
            f"{method:<16s}" + "".join(f"{v:14.4f}" for v in values) + f"{means[method]:10.4f}{told:>11s}", flush=True
        )
    return means


def verdict(what: str, ratio: float, limit: float) -> None:
    print(
        f"{what:<72s} {ratio:6.3f}   wanted at most {limit:.2f}: {'met' if ratio <= limit else 'NOT met'}", flush=True
    )


def table(
    atoms: dict[str, Any], settings: dict[str, dict[str, Any]], cut: dict[str, Array], path: Path | None
) -> dict[str, float]:
    means = {}
    for index, kind in enumerate(atoms):
        rows = {}
        for name, picture in cut.items():
            which = {"picture": name, "size": len(picture), "dictionary": kind, "projection": "gaussian"}
            blind = kind == "learned" and bool(settings[kind])
            given = (picture, atoms[kind], settings[kind], "gaussian", N_MEASUREMENTS, blind)
            rows[name] = kept(path, which, partial(errors_of, *given))
        title = f"Relative error, {kind} dictionary, n = {N_MEASUREMENTS} of 64, Gaussian projections of each tile"
        means[kind] = show(title, rows, lambda method, i=index: PUBLISHED.get(method, (None, None))[i])  # type: ignore[misc]
    print()
    best = min((means["learned"][name] for name in BASELINES if name in means["learned"]), default=float("nan"))
    for name in ("DP", "PSBP"):
        verdict(f"{name} beside the best baseline, learned dictionary", means["learned"][name] / best, 0.85)
    for name in ("DP", "PSBP"):
        verdict(
            f"{name}: learned dictionary beside the cosine basis", means["learned"][name] / means["cosine"][name], 0.8
        )
    return means["learned"]


def matched(
    atoms: Any, settings: dict[str, Any], cut: dict[str, Array], random: dict[str, float],
    selections: tuple[str, ...], path: Path | None,
) -> None:  # fmt: skip
    """Projections on directions of the dictionary, and the constant, the same for all tiles."""
    ones = np.full((1, SIDE**2), 1 / SIDE)
    all_means = {}
    for selection in selections:
        directions = (
            SVDProjection(N_MEASUREMENTS - 1, selection=selection, random_state=3).fit(atoms_of(atoms)).components_
        )
        S = np.vstack([ones, directions])
        rows = {}
        for name, picture in cut.items():
            which = {"picture": name, "size": len(picture), "dictionary": "learned", "projection": selection}
            rows[name] = kept(path, which, partial(errors_of, picture, atoms, settings, S, N_MEASUREMENTS))
        title = f"Relative error, learned dictionary, n = {N_MEASUREMENTS}: the constant and 24 {selection} directions"
        all_means[selection] = show(title, rows, lambda method: None)
        print(f"coherence of the measured atoms: {gram_coherence(directions @ atoms_of(atoms).T):.3f}")
    print()
    for selection, means in all_means.items():
        for name in means:
            verdict(f"{name}: {selection} directions beside Gaussian projections", means[name] / random[name], 1.0)


def curves(atoms: dict[str, Any], patches: Array, picture: Array, numbers: tuple[int, ...], path: Path | None) -> None:
    """Error against the number of measurements."""
    from pluri.plotting import MeasurementErrorDisplay

    for kind, dictionary in atoms.items():
        found = {}
        for n in numbers:
            which = {"picture": "castle", "size": len(picture), "dictionary": kind, "measurements": n}

            def errors(n: int = n, dictionary: Any = dictionary) -> dict[str, float]:
                return errors_of(picture, dictionary, chosen_settings(atoms_of(dictionary), patches, n), "gaussian", n)

            found[str(n)] = kept(path, which, errors)
        show(f"Castle, {kind} dictionary, by number of measurements", found, lambda method: None)
        errors = {method: [found[str(n)][method] for n in numbers] for method in found[str(numbers[0])]}
        display = MeasurementErrorDisplay(np.array(numbers), {name: np.array(e)[:, None] for name, e in errors.items()})
        drawn = figure_path(f"compressive_sensing_{kind}.png")
        display.plot().figure_.savefig(drawn, dpi=120)
        print(f"drawn: {drawn}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ours", action="store_true", help="no other methods")
    parser.add_argument("--training", action="store_true", help="six photographs to choose rules on, not the table's")
    parser.add_argument(
        "--only", nargs="*", choices=["table", "matched", "curves", "starts", "gaussians"], default=None
    )
    parser.add_argument("--results", type=Path, default=None, help="file that keeps errors, a line for each picture")
    options = parser.parse_args()
    parts = options.only or ["table", "matched", "curves"]
    names = ("castle", "house256") if options.quick else ("castle", "house256", "cameraman256", "barbara512")
    cut = pictures(160 if options.quick else 256, names)
    held_out = OF_STARTS if options.training or "starts" in parts else ()
    if options.training:
        cut = {name: training_picture(name, 160) for name in OF_STARTS}
    rng = np.random.default_rng(0)
    patches = training_patches(N_TRAINING, rng, held_out)
    if "gaussians" in parts:
        factor_analysers(cut, patches)
    if parts == ["gaussians"]:
        return
    atoms = {"cosine": cosine_basis(), "learned": learned_dictionary(patches)}
    if "starts" in parts:
        starts(atoms_of(atoms["learned"]), options.results)
    if parts == ["starts"]:
        return
    validation = training_patches(N_VALIDATION, rng, held_out)
    settings = {
        kind: chosen_settings(atoms_of(dictionary), validation, N_MEASUREMENTS) for kind, dictionary in atoms.items()
    }
    if options.ours:
        settings = {kind: {} for kind in atoms}
    print(f"{time.process_time():.0f} s until here")
    for kind, chosen in settings.items():
        print(f"settings, {kind}: " + "; ".join(map(str, chosen.values())), flush=True)
    if "table" in parts or "matched" in parts:
        random = table(atoms, settings, cut, options.results)
    if "matched" in parts:
        selections = ("random", "top") if options.quick else ("random", "weighted", "top")
        matched(atoms["learned"], settings["learned"], cut, random, selections, options.results)
    if "curves" in parts:
        curves(
            atoms,
            validation,
            cut["castle"],
            (10, 25, 40) if options.quick else (10, 15, 20, 25, 30, 40),
            options.results,
        )


if __name__ == "__main__":
    run_if_data(main)
