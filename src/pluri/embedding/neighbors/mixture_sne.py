"""Stochastic neighbor embedding with several images of each object: an ambiguous one can be in two places.

See `pluri.embedding.neighbors.mixture` for the model.

References
----------
Hinton, G. and Roweis, S. (2002). Stochastic neighbor embedding. NIPS 15, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.embedding.neighbors.estimator import POSITIVE, NeighborEmbedding
from pluri.embedding.neighbors.fitting import JITTERED, Plan, descend_with, start_of
from pluri.embedding.neighbors.image_problem import ImageProblem
from pluri.embedding.neighbors.input_data import Objects
from pluri.embedding.neighbors.mixture import Attraction, image_cost, log_softmax
from pluri.embedding.neighbors.placing import place, place_among_images
from pluri.embedding.neighbors.threads import Threads
from pluri.validation import Allowed, Number, Only, RandomState, Stored, Whole, as_generator

Array = NDArray[np.float64]


class MixtureSNE(NeighborEmbedding):
    """Stochastic neighbor embedding with several images of each object.

    All pairs of images are computed: memory grows with the square of the number of objects.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    n_images : int, default=2
        Images of each object.
    proportions : {"equal", "learn"}, default="equal"
        Whether the images of an object have equal probabilities, or such that the cost is least.
    perplexity : float or None, default=10.0
        As in `SNE`.
    metric : str or callable, default="euclidean"
        As in `SNE`; "precomputed" dissimilarities need not be symmetric and are not squared.
    attraction : float, default=0.025
        Force between two images of an object, in nats per unit of length, once they are `attraction_threshold` apart;
        below that it is in proportion to their distance. Without a force most objects split.
    attraction_threshold : float, default=0.05
    split_distance : float, default=1.0
        Objects whose images are farther apart than this count as split.
    optimizer : {"jitter", "lbfgs", "momentum"}, default="jitter"
        The published method is gradient descent with noise after each step. Here the last eighth of the iterations
        has none.
    learning_rate : float or "auto", default="auto"
        Step per unit of gradient, for "jitter" and "momentum". "auto": 0.2, and less for objects that are neighbours
        of many. (The 0.7 of the paper diverges; its gradient must have been written without a factor of two.)
    jitter : float, default=0.05
        Standard deviation of the noise of "jitter".
    max_iter : int, default=1000
    tol : float, default=1e-4
        The fit ends when ten iterations without noise lower the cost by a smaller part.
    init : {"auto", "pca", "random"} or array of shape (n_samples, n_components), default="auto"
        Where images begin, all of an object together: as in `SNE`.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    images_ : array of shape (n_samples, n_images, n_components)
    proportions_ : array of shape (n_samples, n_images)
    responsibilities_ : array of shape (n_samples, n_images)
        What each image explains of its object's neighbours; rows sum to one.
    embedding_ : array of shape (n_samples, n_components)
        The image of each object that explains most.
    separation_ : array of shape (n_samples,)
        Largest distance between two images of the object.
    split_objects_ : array of bool of shape (n_samples,)
        Which objects are split.
    kl_divergence_, kl_per_sample_, sigmas_, history_, n_iter_, converged_, n_features_in_
        As in `SNE`; the history is that of the cost with the energy of the attraction.

    See Also
    --------
    SNE : one image of each object.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import MixtureSNE
    >>> X = np.random.default_rng(0).normal(size=(60, 5)) + 8.0 * np.repeat(np.eye(3, 5), 20, axis=0)
    >>> model = MixtureSNE(perplexity=10, max_iter=100, random_state=0).fit(X)
    >>> model.images_.shape, model.proportions_.shape
    ((60, 2, 2), (60, 2))
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "n_images": Whole(1),
        "proportions": Only("equal", "learn"),
        "perplexity": Number(above=1) | Only(None),
        "attraction": Number(least=0),
        "attraction_threshold": Number(above=0),
        "split_distance": Number(least=0),
        "optimizer": Only("jitter", "lbfgs", "momentum"),
        "learning_rate": Number(above=0) | Only("auto"),
        "jitter": Number(least=0),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "images_": Stored("n_objects", "n_places", "n_dimensions"),
        "proportions_": Stored("n_objects", "n_places", simplex=True),
        "responsibilities_": Stored("n_objects", "n_places", least=0),
        "embedding_": Stored("n_objects", "n_dimensions"),
        "separation_": Stored("n_objects", least=0),
        "split_objects_": Stored("n_objects", whole=True),
        "kl_per_sample_": Stored("n_objects"),
        "sigmas_": Stored("n_objects", least=0),
        "_training": Stored("n_objects", "n_features_in_"),
        "_shift": Stored("n_features_in_"),
        "_unit": POSITIVE,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_images: int = 2,
        proportions: str = "equal",
        perplexity: float | None = 10.0,
        metric: Any = "euclidean",
        attraction: float = 0.025,
        attraction_threshold: float = 0.05,
        split_distance: float = 1.0,
        optimizer: str = "jitter",
        learning_rate: Any = "auto",
        jitter: float = 0.05,
        max_iter: int = 1000,
        tol: float = 1e-4,
        init: Any = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_images = n_images
        self.proportions = proportions
        self.perplexity = perplexity
        self.metric = metric
        self.attraction = attraction
        self.attraction_threshold = attraction_threshold
        self.split_distance = split_distance
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.jitter = jitter
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the images; after Ctrl-C they are the best so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or, with ``metric="precomputed"``, of shape (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self : object
        """
        return self._fit(X)

    def _find(self, objects: Objects, threads: Threads) -> None:
        """Find the images, and store them."""
        if sparse.issparse(objects.rows):
            raise ValueError("X must be a dense array: all pairs of images are computed, got a sparse matrix")
        rng = as_generator(self.random_state)
        neighbors = objects.neighbors(self.perplexity, exact=True)
        force = Attraction(float(self.attraction), float(self.attraction_threshold))
        problem = ImageProblem(
            neighbors, threads, int(self.n_images), int(self.n_components), force, self.proportions == "learn"
        )
        plan = Plan(
            self.optimizer, self.learning_rate, float(self.jitter), int(self.max_iter), float(self.tol),
            int(self.verbose),
        )  # fmt: skip
        start = problem.start(start_of(self.init, objects, int(self.n_components), rng), rng)
        noisy = JITTERED * plan.max_iter
        found = descend_with(plan, problem, start, neighbors, plan.max_iter, rng, noisy, problem.n_coordinates)
        images, logits = problem.split(found.points)
        cost = image_cost(images, logits, neighbors, threads)
        self.images_ = images - images.mean(axis=(0, 1))
        self.proportions_ = np.exp(log_softmax(logits))
        self.responsibilities_ = cost.posterior
        self.embedding_ = self.images_[np.arange(objects.n), cost.posterior.argmax(axis=1)]
        apart = np.linalg.norm(images[:, :, None] - images[:, None], axis=3)
        self.separation_ = apart.max(axis=(1, 2))
        self.split_objects_ = self.separation_ > float(self.split_distance)
        self.kl_per_sample_ = cost.per_row
        self._store(found, neighbors, objects, endless=self.optimizer == "jitter")

    def _placed(self, P: Array) -> Array:
        log_shares = np.log(np.maximum(self.proportions_, 1e-300))
        return place_among_images(P, self.images_, log_shares, place(P, self.embedding_))

    def neighbor_probabilities(self) -> Array:
        """Probabilities q_ij (n_samples, n_samples) by which objects pick each other on the map; q_ii is zero."""
        check_is_fitted(self)
        n, n_images, width = self.images_.shape
        points = self.images_.reshape(-1, width)
        with np.errstate(divide="ignore"):
            log_joint = np.log(self.proportions_).ravel() - ((points[:, None] - points) ** 2).sum(axis=2)
        own = np.repeat(np.arange(n), n_images)
        log_joint[own[:, None] == own] = -np.inf
        r = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        r *= (self.proportions_.ravel() / r.sum(axis=1))[:, None]
        return np.asarray(r.reshape(n, n_images, n, n_images).sum(axis=(1, 3)))

    def summary(self) -> str:
        """The map in a few lines of plain text, with the number of split objects."""
        split = int(self.split_objects_.sum()) if hasattr(self, "split_objects_") else 0
        return f"{super().summary()}\nobjects whose images are more than {self.split_distance:g} apart: {split}"
