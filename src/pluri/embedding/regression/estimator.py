"""Spectral regression: a reversible embedding, which makes coordinates of new rows and rows of new coordinates.

A spectral embedding gives coordinates to the training rows only. Here rows are modelled given the coordinates, by a
mixture of linear regressions whose clusters live at places of the space of coordinates and decide themselves which
coordinates they use. Both directions are then conditional expectations in closed form, the training rows are not needed
any more, and the number of coordinates in use estimates the dimension of the data.

References
----------
Chen, Silva, Paisley, Wang, Dunson and Carin (2010), Compressive sensing on manifolds using a nonparametric mixture of
factor analyzers, IEEE Transactions on Signal Processing 58.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import validate_data

from pluri.embedding.regression.cluster_sizes import held_out_size
from pluri.embedding.regression.fitted import (
    check_size,
    judge,
    keep_every,
    kept_mixture,
    priors_of,
    store_mixture,
    store_support,
    store_trace,
)
from pluri.embedding.regression.gibbs import SpectralRegressionGibbs
from pluri.embedding.regression.parameters import LAYOUT, PARAMETERS
from pluri.embedding.regression.providers import spectral_coordinates
from pluri.embedding.regression.queries import ReversibleQueries
from pluri.embedding.regression.records import Position
from pluri.embedding.regression.standard import Standard, StandardCoordinates
from pluri.embedding.regression.starts import room, starting_position
from pluri.inference import mcmc
from pluri.priors import BetaProcess, Gamma
from pluri.validation import (
    Allowed,
    Number,
    Only,
    Stored,
    as_generator,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class SpectralRegression(ReversibleQueries, mcmc.Sampled, DensityMixin, Estimator):
    """Reversible embedding: a mixture of regressions of the rows on their spectral coordinates, by Gibbs sampling.

    Priors are for rows and coordinates that are centred and divided by one number each, so that a change of units
    changes nothing. The fitted model holds coordinates and labels of the training rows, but not the rows; if rows were
    turned (`reduce`), it holds directions that span them.

    Parameters
    ----------
    n_coordinates : int, default=10
        Coordinates taken from the spectral embedding; fewer if there are too few rows for so many.
    n_components : int, default=40
        Largest number of clusters. Sampling begins with so many, or fewer (`rows_per_cluster`; there is room for twice
        as many), and empties those that are not needed; a cluster that is empty is rarely filled again.
    rows_per_cluster : float or "auto", default="auto"
        Rows that a cluster has on average where sampling begins. "auto" takes that of 100, 50, 25, 12 and 6 with which
        short chains predict coordinates of held-out rows best. Dimensions are best estimated with about fifty.
    spectral : {"isomap", "diffusion", "lle", "kernel_pca"}, estimator or array, default="isomap"
        The spectral embedding: by name; an estimator with ``fit_transform``, which is not kept; or coordinates of the
        training rows themselves.
    n_neighbors : int, default=12
        Neighbours in the graph of a spectral embedding that has a name.
    support : {"cluster", "shared"}, default="cluster"
        Whether each cluster decides which coordinates it uses, or all together.
    scale : {"spectral", "learned"}, default="spectral"
        Scales of the coordinates: those of the spectral embedding (eigenvalues of "diffusion", ones otherwise), or
        learned under N(0, 1).
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
    point : {"average", "best"}, default="average"
        Predictions are averages over kept draws, or those of the draw of highest density.
    n_draws, n_warmup : int, default=30 and 50
        Draws of each chain, and sweeps before them.
    thin : int, default=1
        Sweeps from one draw to the next.
    n_chains : int, default=8
        Chains. The first begins with clusters of k-means of the coordinates, those after it about random rows. Each
        stays near its own partition of the rows; predictions are averages over all of them, which are more exact.
    n_predictive : int, default=8
        Draws, of all chains together, that predictions average over.
    n_jobs : int or None, default=None
        Chains run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_coordinates)
        Spectral coordinates of the training rows.
    dimension_ : float
        Posterior mean of the number of coordinates that the cluster of a row uses, averaged over rows.
    effective_rank_ : float
        The same for directions that matter: those with more than 5 % of the variance of the largest. It is usually the
        better estimate of the dimension; a warning says if the two differ by more than one.
    dimension_posterior_ : array of shape (n_coordinates + 1,)
        Share of rows and draws with 0, 1, ... coordinates in use.
    local_dimension_, local_effective_rank_ : array of shape (n_samples,)
        Posterior means for each training row.
    n_active_clusters_ : int
        Most frequent number of clusters that have rows.
    labels_ : int array of shape (n_samples,)
        Cluster of each training row in the draw of highest density, the heaviest being 0.
    weights_, centers_, variances_, means_, loadings_, noise_variances_, draw_index_ : arrays
        Clusters of the kept draws: weights, centres and variances of the coordinates, means, loadings and noise of the
        rows (turned ones if `basis_` is not None), and the draw that each cluster is of.
    basis_ : array of shape (n_features, n_directions) or None
        Directions that rows were turned into.
    trace_ : `pluri.inference.mcmc.Trace`
        Dimensions, number of clusters, variance of the noise and hyper-parameters by chain and draw.
    log_joint_ : float
        Highest log density of data and parameters of a draw.
    rows_per_cluster_ : float
        Rows that a cluster had on average where sampling began, unless `n_components` did not allow so many clusters.
    converged_ : bool
        Whether the log density has settled, on average over chains (``point="best"``: in all of them).
        ``trace_.verdict("n_clusters")`` tells how far chains of different partitions are apart.
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    A curve in ten dimensions:

    >>> import numpy as np
    >>> from pluri.embedding import SpectralRegression
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 3, size=(300, 1))
    >>> X = np.hstack([np.cos(t + k) for k in range(10)]) + 0.02 * rng.normal(size=(300, 10))
    >>> model = SpectralRegression(1, 8, n_warmup=50, n_draws=50, random_state=0).fit(X)
    >>> x = model.transform(X)
    >>> bool(np.abs(model.inverse_transform(x) - X).mean() < 0.03)
    True
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = LAYOUT
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **PARAMETERS,
        "point": Only("average", "best"),
        "rows_per_cluster": Only("auto") | Number(least=1),
    }

    def __init__(
        self,
        n_coordinates: int = 10,
        n_components: int = 40,
        *,
        rows_per_cluster: float | str = "auto",
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
        point: str = "average",
        n_draws: int = 30,
        n_warmup: int = 50,
        thin: int = 1,
        n_chains: int = 8,
        n_predictive: int = 8,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_coordinates = n_coordinates
        self.n_components = n_components
        self.rows_per_cluster = rows_per_cluster
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
        self.point = point
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the rows, and learn the regressions both ways.

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
            kernel = SpectralRegressionGibbs(
                x.values, rows.rows, int(self.n_components), priors_of(self), self.support == "shared",
                found.scales if self.scale == "spectral" else None, keep_every(self),
            )  # fmt: skip
            each = held_out_size(kernel, rng) if self.rows_per_cluster == "auto" else float(self.rows_per_cluster)
            kernel = replace(kernel, n_components=room(kernel.n_components, len(data), each))
            n_begun = 0

            def start(stream: np.random.Generator) -> Position:
                nonlocal n_begun
                n_begun += 1
                return starting_position(stream, kernel.model, x.values, rows.rows, each, scattered=n_begun > 1)

            trace = mcmc.sample(
                kernel, start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
                n_chains=self.n_chains, thin=self.thin, random_state=rng, n_jobs=self.n_jobs, backend="threads",
                verbose=int(self.verbose), warn=False,
            )  # fmt: skip
            best = store_trace(self, trace)
            store_mixture(self, kept_mixture(self, trace, best), rows, x)
            self.embedding_, self.rows_per_cluster_ = found.values, float(each)
            store_support(self, self._mixture(), found.values, rng)
            judge(self, trace, data.shape[1], averaged=self.point == "average")
        return self
