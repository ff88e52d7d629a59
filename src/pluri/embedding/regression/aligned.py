"""Aligned factor analysers: clusters, loadings and coordinates of the rows learned at once.

Unlike `SpectralRegression` the coordinates are not data: spectral coordinates are only where they begin. A random walk
between the rows keeps neighbours together, so that the factors of all clusters are coordinates of one space, which
those of a mixture of factor analysers are not. The walk is needed for learning only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import validate_data

from pluri.embedding.regression.aligned_gibbs import AlignedGibbs
from pluri.embedding.regression.conditionals import cluster_moments, place_squares
from pluri.embedding.regression.fitted import check_size, judge, priors_of, store_mixture, store_support, store_trace
from pluri.embedding.regression.parameters import LAYOUT, PARAMETERS
from pluri.embedding.regression.prediction import mixture_of
from pluri.embedding.regression.providers import spectral_coordinates
from pluri.embedding.regression.queries import ReversibleQueries
from pluri.embedding.regression.records import Position
from pluri.embedding.regression.standard import Standard, StandardCoordinates
from pluri.embedding.regression.starts import ROWS_EACH, starting_position
from pluri.embedding.spectral.random_walk import walk_matrix
from pluri.inference import mcmc
from pluri.priors import BetaProcess, Gamma
from pluri.validation import Allowed, Stored, as_generator, check_parameters, restored_on_failure
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class AlignedFactorAnalyzers(ReversibleQueries, mcmc.Sampled, DensityMixin, Estimator):
    """Reversible embedding whose coordinates are learned with the clusters, by Gibbs sampling.

    Coordinates of different draws are not comparable, so that predictions are those of the draw of highest density.
    For new rows the coordinates of a cluster are taken to be Gaussian about those of its training rows.

    Parameters
    ----------
    n_coordinates : int, default=2
        Dimension of the space of coordinates; less if there are too few rows.
    n_components : int, default=20
        Largest number of clusters; sampling begins with so many (of fifty rows each at least).
    spectral : {"isomap", "diffusion", "lle", "kernel_pca"}, estimator or array, default="isomap"
        Where the coordinates begin; see `SpectralRegression`.
    n_neighbors : int, default=12
        The width of the steps of the random walk at a row is the distance to this neighbour; also for the spectral
        embedding.
    support : {"cluster", "shared"}, default="cluster"
        Whether each cluster decides which coordinates it uses, or all together.
    scale : {"spectral", "learned"}, default="spectral"
        Scales of the coordinates: those of the spectral embedding, or learned under N(0, 1).
    support_prior : `pluri.priors.BetaProcess` prior or None, default=None
        Of which coordinates are in use: about a / b of them are expected; None is BetaProcess(0.02, 1.0).
    concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the Dirichlet process of the clusters; "learn" is Gamma(1, 1).
    noise_prior, coordinate_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precisions of the noise and of the coordinates, of each cluster; None is Gamma(1.0, 1e-3).
    loading_prior, mean_precision_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precisions of loadings and means; None is Gamma(1.0, 1.0).
    reduce : {"auto"} or bool, default="auto"
        Whether rows are turned into the space that they span first, which loses nothing; "auto" does so if there are
        more features than rows.
    n_draws, n_warmup : int, default=100 and 200
        Draws of each chain, and sweeps before them.
    thin : int, default=1
        Sweeps from one draw to the next.
    n_chains : int, default=1
        Chains. The first begins with clusters of k-means of the coordinates, those after it about random rows.
    n_jobs : int or None, default=None
        Chains run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_coordinates)
        Coordinates of the training rows in the draw of highest density, in the units of the spectral embedding.
    dimension_, effective_rank_, dimension_posterior_, local_dimension_, local_effective_rank_ : float and arrays
        As in `SpectralRegression`.
    n_active_clusters_ : int
        Most frequent number of clusters that have rows.
    labels_ : int array of shape (n_samples,)
        Cluster of each training row in the draw of highest density, the heaviest being 0.
    weights_, centers_, variances_, means_, loadings_, noise_variances_, draw_index_ : arrays
        Clusters of that draw, as in `SpectralRegression`.
    basis_ : array of shape (n_features, n_directions) or None
        Directions that rows were turned into.
    trace_ : `pluri.inference.mcmc.Trace`
        Dimensions, number of clusters, variance of the noise and hyper-parameters by chain and draw.
    log_joint_ : float
        Highest log density of data and parameters of a draw.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import AlignedFactorAnalyzers
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 3, size=(200, 1))
    >>> X = np.hstack([np.cos(t + k) for k in range(5)]) + 0.02 * rng.normal(size=(200, 5))
    >>> model = AlignedFactorAnalyzers(1, 6, n_warmup=50, n_draws=7, thin=5, random_state=0).fit(X)
    >>> bool(abs(np.corrcoef(model.transform(X)[:, 0], t[:, 0])[0, 1]) > 0.98)
    True
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = LAYOUT
    _parameters: ClassVar[Mapping[str, Allowed]] = PARAMETERS

    def __init__(
        self,
        n_coordinates: int = 2,
        n_components: int = 20,
        *,
        spectral: Any = "isomap",
        n_neighbors: int = 12,
        support: str = "cluster",
        scale: str = "spectral",
        support_prior: BetaProcess | None = None,
        concentration: float | Gamma | str = "learn",
        noise_prior: Gamma | None = None,
        coordinate_prior: Gamma | None = None,
        loading_prior: Gamma | None = None,
        mean_precision_prior: Gamma | None = None,
        reduce: str | bool = "auto",
        n_draws: int = 100,
        n_warmup: int = 200,
        thin: int = 1,
        n_chains: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_coordinates = n_coordinates
        self.n_components = n_components
        self.spectral = spectral
        self.n_neighbors = n_neighbors
        self.support = support
        self.scale = scale
        self.support_prior = support_prior
        self.concentration = concentration
        self.noise_prior = noise_prior
        self.coordinate_prior = coordinate_prior
        self.loading_prior = loading_prior
        self.mean_precision_prior = mean_precision_prior
        self.reduce = reduce
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find clusters, loadings and coordinates.

        After Ctrl-C the model is that of the draws so far, with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            data = validate_data(self, X, dtype=np.float64, ensure_min_samples=3)
            check_size(data)
            rng = as_generator(self.random_state)
            found = spectral_coordinates(self.spectral, data, int(self.n_coordinates), int(self.n_neighbors))
            x = StandardCoordinates.of(found.values)
            rows = Standard.of(data, data.shape[1] > len(data) if self.reduce == "auto" else bool(self.reduce))
            kernel = AlignedGibbs(
                rows.rows, walk_matrix(data, scale_neighbor=int(self.n_neighbors)), x.values.shape[1],
                int(self.n_components), priors_of(self), self.support == "shared",
                found.scales if self.scale == "spectral" else None,
            )  # fmt: skip
            n_begun = 0

            def start(stream: np.random.Generator) -> Position:
                nonlocal n_begun
                n_begun += 1
                position = starting_position(
                    stream, kernel.model, x.values, rows.rows, ROWS_EACH, scattered=n_begun > 1
                )
                return {**position, "anchors": x.values}

            trace = mcmc.sample(
                kernel, start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
                n_chains=self.n_chains, thin=self.thin, random_state=rng, n_jobs=self.n_jobs, backend="threads",
                verbose=int(self.verbose), warn=False,
            )  # fmt: skip
            best = store_trace(self, trace)
            embedded = kernel.coordinates_of(best)
            store_mixture(self, mixture_of([about_coordinates(best, embedded, kernel)]), rows, x)
            self.embedding_ = embedded * x.scale + x.center
            store_support(self, self._mixture(), self.embedding_, rng)
            judge(self, trace, data.shape[1])
        return self


def about_coordinates(position: Position, x: Array, kernel: AlignedGibbs) -> Position:
    """The same regressions with clusters at the coordinates of their rows, instead of at the anchors.

    Coordinates are means of anchors, and so spread less.
    """
    moments = cluster_moments(x, kernel.rows, x, position["labels"], len(position["means"]))
    counts = moments.counts[:, None]
    centers = np.where(counts > 0, moments.first / np.maximum(counts, 1.0), position["centers"])
    used = position["loadings"] * position["scales"][:, None]
    prior = kernel.priors.coordinate
    return {
        **position,
        "centers": centers,
        "precisions": (prior.shape + counts / 2) / (prior.rate + place_squares(moments, centers) / 2),
        "means": position["means"] + np.einsum("jk,jkd->jd", centers - position["centers"], used),
    }
