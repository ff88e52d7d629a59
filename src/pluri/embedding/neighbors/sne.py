"""Stochastic neighbor embedding: a map whose points have the neighbours that the objects have.

Object i picks object j as its neighbour with probability ``p_ij ~ exp(-|x_i - x_j|^2 / (2 sigma_i^2))``, point i picks
point j with probability ``q_ij ~ exp(-|y_i - y_j|^2)``, and the points are those for which the divergences
``sum_i KL(P_i || Q_i)`` are least. Both are distributions of one row each (in t-SNE they are joint distributions), so
that dissimilarities need not be symmetric. With ``kernel="student_t"`` points pick each other with
``q_ij ~ 1 / (1 + |y_i - y_j|^2)``, as in t-SNE.

References
----------
Hinton, G. and Roweis, S. (2002). Stochastic neighbor embedding. NIPS 15.
van der Maaten, L. and Hinton, G. (2008). Visualizing data using t-SNE. JMLR 9 (heavy tails).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.embedding.neighbors.dense import CostFunction, DenseCost
from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.estimator import POSITIVE, NeighborEmbedding
from pluri.embedding.neighbors.fitting import OPTIMIZERS, Plan, fit_map, stages, start_of
from pluri.embedding.neighbors.heavy_tails import DenseHeavyCost, HeavyMeshCost
from pluri.embedding.neighbors.input_data import MOST_EXACT, MOST_EXACT_HEAVY, Objects
from pluri.embedding.neighbors.mesh import MeshCost
from pluri.embedding.neighbors.placing import place
from pluri.embedding.neighbors.placing_heavy import place_with_heavy_tails
from pluri.embedding.neighbors.threads import Threads
from pluri.validation import Allowed, Number, Only, RandomState, Stored, Whole, as_generator

Array = NDArray[np.float64]


class SNE(NeighborEmbedding):
    """Stochastic neighbor embedding.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float or None, default=15.0
        Effective number of neighbours of an object, above 1 and below ``n_samples - 1``. None: dissimilarities are
        taken as they are, ``p_ij ~ exp(-d_ij)``.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's, of which the squares are taken; or "precomputed": X holds dissimilarities, which
        need not be symmetric and are *not* squared (scikit-learn's TSNE squares them).
    kernel : {"gaussian", "student_t"}, default="gaussian"
        How fast the probability that a point picks another falls with their squared distance d: as exp(-d), or as
        1 / (1 + d), with which near points have room and more of the nearest neighbours are kept, as in t-SNE. What
        each keeps is in the guide.
    optimizer : {"auto", "lbfgs", "spectral", "momentum", "jitter", "wormholes"}, default="auto"
        How the cost is minimised: L-BFGS ("auto" with "gaussian"); gradient descent with momentum ("auto" with
        "student_t", where maps go on growing and `max_iter` usually ends the fit); steps along the spectral direction,
        which is the gradient divided by the curvature of the attraction; the published method, gradient descent with
        noise after each step for seven eighths of `max_iter` and none after; or two images of each object, between
        which probability can move without passing what lies between (`MixtureSNE`), until one is left, then L-BFGS.
        ``benchmarks/accuracy/sne_optimizers.py`` compares them.
    learning_rate : float or "auto", default="auto"
        Step per unit of gradient, for "jitter" and "momentum". "auto": 0.2, and less for objects that are neighbours
        of so many that this would diverge; 5 for momentum with the kernel "student_t".
    jitter : float, default=0.3
        Standard deviation of the noise of "jitter".
    max_iter : int, default=1000
        The published schedule is ``optimizer="jitter", init="random", max_iter=4000, tol=0``.
    tol : float, default=1e-4
        The fit ends when ten iterations without noise lower the cost by a smaller part.
    init : {"auto", "pca", "random"} or array of shape (n_samples, n_components), default="auto"
        Where points begin: the first principal components or noise, both very close to the origin; "auto" takes the
        former where X holds vectors.
    method : {"auto", "exact", "neighbors"}, default="auto"
        "exact": all pairs of objects, which takes memory for n_samples squared numbers. "neighbors": each object has
        the ``3 * perplexity`` nearest others as neighbours, and points repel each other over a mesh; time and memory
        grow with n_samples, for maps of at most three dimensions. "auto": exact up to 3000 objects, 1000 with
        the kernel "student_t".
    neglect : float or "auto", default="auto"
        Bound on the error of the kernel in the method "neighbors"; "auto": 1e-6 for "gaussian", 1e-3 for "student_t".
    perplexity_start : float, optional
        The fit begins with this perplexity, which falls to `perplexity` in ten stages that have half the iterations.
    extra_dimensions : int, default=0
        Dimensions that the map has in the first half of the fit, at a price that grows from 1e-4 to 100 for each
        squared coordinate.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The map, centred.
    kl_divergence_ : float
        The cost: divergences of all rows added up, in nats.
    kl_per_sample_ : array of shape (n_samples,)
        Divergence of each row: which objects fit badly. With the kernel "student_t" rows share one norm, and some may
        be below zero.
    sigmas_ : array of shape (n_samples,)
        Width of the neighbourhood of each object.
    history_ : pluri.inference.History
        Minus the cost, by iteration.
    n_iter_ : int
    converged_ : bool
    method_ : str
        "exact" or "neighbors".
    n_features_in_ : int

    See Also
    --------
    MixtureSNE : several images of each object.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import SNE
    >>> X = np.random.default_rng(0).normal(size=(60, 5)) + 8.0 * np.repeat(np.eye(3, 5), 20, axis=0)
    >>> model = SNE(perplexity=10, random_state=0).fit(X)
    >>> model.embedding_.shape
    (60, 2)
    >>> model.transform(X[:4] + 0.01).shape
    (4, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "perplexity": Number(above=1) | Only(None),
        "kernel": Only("gaussian", "student_t"),
        "optimizer": Only("auto", *OPTIMIZERS, "wormholes"),
        "learning_rate": Number(above=0) | Only("auto"),
        "jitter": Number(least=0),
        "method": Only("auto", "exact", "neighbors"),
        "neglect": Number(above=0, below=0.1) | Only("auto"),
        "perplexity_start": Number(above=1) | Only(None),
        "extra_dimensions": Whole(0),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "embedding_": Stored("n_objects", "n_dimensions"),
        "kl_per_sample_": Stored("n_objects"),
        "sigmas_": Stored("n_objects", least=0),
        "_training": Stored("n_objects", "n_features_in_"),
        "_shift": Stored("n_features_in_"),
        "_unit": POSITIVE,
        "_rate": POSITIVE,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float | None = 15.0,
        metric: Any = "euclidean",
        kernel: str = "gaussian",
        optimizer: str = "auto",
        learning_rate: Any = "auto",
        jitter: float = 0.3,
        max_iter: int = 1000,
        tol: float = 1e-4,
        init: Any = "auto",
        method: str = "auto",
        neglect: float | str = "auto",
        perplexity_start: float | None = None,
        extra_dimensions: int = 0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.metric = metric
        self.kernel = kernel
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.jitter = jitter
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.method = method
        self.neglect = neglect
        self.perplexity_start = perplexity_start
        self.extra_dimensions = extra_dimensions
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the map; after Ctrl-C it is the best so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or, with ``metric="precomputed"``, of shape (n_samples, n_samples), or a sparse matrix that holds the
            dissimilarities of neighbours.
        y : ignored

        Returns
        -------
        self : object
        """
        return self._fit(X)

    def _find(self, objects: Objects, threads: Threads) -> None:
        """Find the points, and store them."""
        rng = as_generator(self.random_state)
        exact = self._is_exact(objects)
        start = start_of(self.init, objects, int(self.n_components), rng)

        known: dict[float | None, Neighbors] = {}

        def cost_of(perplexity: float | None, attraction: float = 1.0) -> CostFunction:
            if perplexity not in known:
                known.clear()  # those of one perplexity may fill half of the memory
                known[perplexity] = objects.neighbors(perplexity, exact=exact, n_jobs=self.n_jobs)
            return self._cost(known[perplexity], threads, exact, attraction)

        if self.optimizer == "wormholes":
            from pluri.embedding.neighbors.wormholes import through_wormholes

            cost = cost_of(self.perplexity)
            found = through_wormholes(cost, threads, start, int(self.max_iter), float(self.tol), rng, self.verbose)
        else:
            heavy, extra = self.kernel == "student_t", int(self.extra_dimensions)
            optimizer = ("momentum" if heavy else "lbfgs") if self.optimizer == "auto" else self.optimizer
            plan = Plan(
                optimizer, self.learning_rate, float(self.jitter), int(self.max_iter), float(self.tol),
                int(self.verbose), heavy,
            )  # fmt: skip
            parts = stages(self.perplexity, self.perplexity_start, extra, heavy=heavy)
            found, cost = fit_map(cost_of, start, plan, parts, extra, rng)
        self.embedding_ = np.ascontiguousarray(found.points - found.points.mean(axis=0))
        self.kl_per_sample_ = cost(self.embedding_).per_row
        self._rate = cost.rate(self.embedding_) if isinstance(cost, DenseHeavyCost | HeavyMeshCost) else None
        self.method_ = "exact" if exact else "neighbors"
        endless = self.optimizer == "jitter" or (self.optimizer == "auto" and self.kernel == "student_t")
        self._store(found, cost.neighbors, objects, endless=endless)

    def _cost(self, neighbors: Neighbors, threads: Threads, exact: bool, attraction: float) -> CostFunction:
        """The cost function of these neighbours, by all pairs or by a mesh."""
        heavy = self.kernel == "student_t"
        if exact:
            return DenseHeavyCost(neighbors, threads, attraction) if heavy else DenseCost(neighbors, threads)
        neglect = (1e-3 if heavy else 1e-6) if self.neglect == "auto" else float(self.neglect)
        if heavy:
            return HeavyMeshCost(neighbors, threads, neglect, attraction)
        return MeshCost(neighbors, threads, neglect)

    def _placed(self, P: Array) -> Array:
        """Places (m, L) of new objects with neighbours P (m, n)."""
        if self._rate is None:
            return place(P, self.embedding_)
        return place_with_heavy_tails(P, self.embedding_, self._rate)

    def _is_exact(self, objects: Objects) -> bool:
        """Whether all pairs are computed; refuse what does not go together."""
        dimensions = int(self.n_components) + int(self.extra_dimensions)
        wormholes = self.optimizer == "wormholes"
        if wormholes and self.kernel != "gaussian":
            raise ValueError(f'kernel must be "gaussian" with optimizer="wormholes", got {self.kernel!r}')
        given = sparse.issparse(objects.rows)
        if wormholes and (given or self.method == "neighbors"):
            raise ValueError('optimizer must not be "wormholes" where method is "neighbors" or X is sparse')
        if given and self.method == "exact":
            raise ValueError('method must be "auto" or "neighbors" for a sparse X, got "exact"')
        if (given or self.method == "neighbors") and dimensions > 3:
            raise ValueError(
                f"n_components + extra_dimensions must be at most 3 with the method 'neighbors', got {dimensions}"
            )
        high = self.perplexity_start
        if high is not None and (self.perplexity is None or high < self.perplexity):
            raise ValueError(f"perplexity_start must be at least perplexity ({self.perplexity}), got {high}")
        if wormholes and (self.perplexity_start is not None or self.extra_dimensions):
            raise ValueError('perplexity_start and extra_dimensions must be left out with optimizer="wormholes"')
        if self.method == "auto":
            most = MOST_EXACT if self.kernel == "gaussian" else MOST_EXACT_HEAVY
            large = objects.n > most and objects.metric != "precomputed" and self.perplexity is not None
            return wormholes or not (given or (large and dimensions <= 3))
        return self.method == "exact"
