"""A dictionary and a noise level learned from some patches of a picture.

The chain begins with cosines and with a robust guess of the noise, which is held until the dictionary has taken shape:
a chain that begins with too little noise learns atoms of noise first, and needs hundreds of sweeps to forget them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from pluri.factors.dictionaries.conditionals import component_posterior, expected_components
from pluri.factors.dictionaries.gibbs import DictionaryGibbs
from pluri.factors.dictionaries.records import DictionaryState, Rows
from pluri.factors.dictionaries.start import start_dictionary
from pluri.factors.dictionaries.usage.beta_process import BetaProcessUsage
from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma

Array = NDArray[np.float64]
#: Pixels of a side of a patch; those of large ones, and the share of noise in what varies within patches above which
#: they restore better. On six photographs they gain .19 dB for noise of 50 of 255; on three of them they lose up to
#: .13 dB for noise of 25 (benchmarks/reproduce/denoising.py --sizes).
SIZE, LARGE_SIZE, NOISY_SHARE = 8, 10, 2 / 3
#: Pseudo-observations of a noise level that is held.
FIRM = 1e12
#: Of the weights, for patches whose mean square is 1: weak, but proper where no atom is used.
WEIGHT_PRIOR = Gamma(1.0, 1.0)


class PatchModel(NamedTuple):
    """What patches are restored with, in units of `scale`: atoms (K, P), their log odds (K,), and precisions.

    `log_odds` are those of a patch using each atom.
    """

    components: Array
    log_odds: Array
    noise_precision: float
    weight_precision: float
    scale: float


class Learning(NamedTuple):
    """How a dictionary is learned: sizes, numbers of the beta process, and lengths of the chain."""

    n_components: int
    a: float
    b: float
    n_warmup: int
    n_draws: int
    n_chains: int
    verbose: int


def robust_noise(pixels: Array) -> float:
    """Standard deviation of the noise by the median of differences across 2 x 2 pixels; texture makes it too large.

    Parameters
    ----------
    pixels : array of shape (height, width, c)
        NaN where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.images.learning import robust_noise
    >>> noise = np.random.default_rng(0).normal(0, 0.1, (200, 200, 1))
    >>> bool(abs(robust_noise(noise) - 0.1) < 0.005)
    True
    """
    squares = (pixels[:-1, :-1] - pixels[1:, :-1] - pixels[:-1, 1:] + pixels[1:, 1:]) / 2
    if np.isnan(squares).mean() > 0.999:
        squares = np.append(pixels[1:] - pixels[:-1], pixels[:, 1:] - pixels[:, :-1]) / math.sqrt(2)
    there = np.abs(squares[~np.isnan(squares)])
    return float(np.median(there)) / 0.6745 if there.size else 0.0


def suitable_size(pixels: Array, noise: float) -> int:
    """Size of patches for a picture (height, width, c) without gaps whose noise has this standard deviation.

    What varies within patches of 8 is compared with the noise.
    """
    if min(pixels.shape[:2]) < LARGE_SIZE:
        return SIZE
    centred, window = pixels - pixels.mean(), (SIZE, SIZE, 1)
    varied = float((uniform_filter(centred**2, window) - uniform_filter(centred, window) ** 2).mean())
    expected = noise**2 * (1 - 1 / SIZE**2)
    return LARGE_SIZE if expected > NOISY_SHARE * varied else SIZE


def cosine_atoms(n_components: int, size: int, n_channels: int) -> Array:
    """Products of cosines of growing frequency, of length 1 and with mean 0, for one channel or three.

    Of colours, half of the atoms are grey and a quarter each vary along blue to yellow and green to purple.
    """
    if n_channels == 3:
        axes = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
        counts = [n_components - 2 * (n_components // 4), n_components // 4, n_components // 4]
        parts = [np.kron(cosine_atoms(n, size, 1), axis) for n, axis in zip(counts, axes)]
        return np.concatenate(parts)
    side = max(size, math.ceil(math.sqrt(n_components + 1)))
    waves = np.cos(np.pi * np.arange(side)[:, None] * (np.arange(size) + 0.5) / side)
    atoms = np.einsum("ap,bq->abpq", waves, waves).reshape(side * side, -1)
    order = np.argsort(np.add.outer(np.arange(side), np.arange(side)).ravel(), kind="stable")[1:]
    atoms = atoms[order]
    if size > 1:
        atoms = atoms - atoms.mean(axis=1, keepdims=True)
    kept = atoms[np.linalg.norm(atoms, axis=1) > 1e-6][:n_components]
    kept = np.resize(kept, (n_components, size * size)) if len(kept) else np.ones((n_components, size * size))
    return np.asarray(kept / np.linalg.norm(kept, axis=1, keepdims=True))


def learn_patches(
    rng: np.random.Generator, patches: NDArray[Any], start: Array, noise: float, settings: Learning
) -> tuple[PatchModel, mcmc.Trace]:
    """Learn a dictionary from patches whose means are taken away.

    Parameters
    ----------
    rng : Generator
    patches : array of shape (n_patches, P)
        NaN where a pixel is missing.
    start : array of shape (n_components, P)
        Atoms to begin with.
    noise : float
        Standard deviation of the noise to begin with.
    settings : Learning

    Returns
    -------
    model : PatchModel
    trace : Trace
        Draws after the warm-up: ``noise_sd``, ``atoms_per_patch`` and ``n_used``.
    """
    K = settings.n_components
    scale = math.sqrt(float(np.nanmean(patches**2))) or 1.0
    rows = Rows.of(patches / scale, np.float32)
    usage = BetaProcessUsage(len(patches), K, settings.a, settings.b)
    variance = max((noise / scale) ** 2, 1e-6)
    free = DictionaryGibbs(rows, usage, K, weight_prior=WEIGHT_PRIOR, counting=False)
    held = replace(free, noise_prior=Gamma(FIRM, FIRM * variance))

    def begin(rng: np.random.Generator) -> DictionaryState:
        state = start_dictionary(rng, rows, usage, K, start)
        few = np.full(K, math.log(settings.a / K))
        few = np.minimum(few, -0.7)
        return replace(
            state,
            noise_precision=np.array([1 / variance]),
            usage=state.usage._replace(log_on=few, log_off=np.log1p(-np.exp(few))),
        )

    def record(position: DictionaryState) -> dict[str, Any]:
        return {
            "noise_sd": np.asarray(scale / math.sqrt(float(position.noise_precision[0]))),
            "atoms_per_patch": np.asarray(position.used.sum() / len(position.used)),
            "n_used": np.asarray(position.used.any(axis=0).sum()),
        }

    options: dict[str, Any] = {
        "n_chains": settings.n_chains,
        "record": record,
        "warn": False,
        "verbose": settings.verbose,
    }
    half = settings.n_warmup // 2
    first = mcmc.sample(held, begin, n_draws=1, n_warmup=half, random_state=rng, **options)
    places = (end.state.position for end in first.ends)
    trace = mcmc.sample(
        free, lambda _: next(places), n_draws=settings.n_draws, n_warmup=settings.n_warmup - half,
        random_state=rng, **options,
    )  # fmt: skip
    best = max((end.state for end in trace.ends), key=lambda state: state.log_density)
    # The ends of chains have the codes of all patches, which nobody needs any more.
    return _model_at(best.position, rows, usage, scale), replace(trace, ends=())


def _model_at(position: DictionaryState, rows: Rows, usage: BetaProcessUsage, scale: float) -> PatchModel:
    """Where the chain is, with the expected dictionary given the codes instead of one draw of it."""
    noise = float(position.noise_precision[0])
    codes = position.weights * position.used
    precision, linear = component_posterior(rows, codes, np.full(len(codes), noise))
    atoms = expected_components(precision, linear)
    first, second = usage.shapes
    counts = position.used.sum(axis=0, dtype=np.float64)
    log_odds = np.log(first + counts) - np.log(second + len(codes) - counts)
    return PatchModel(atoms, log_odds, noise, float(position.weight_precision), scale)
