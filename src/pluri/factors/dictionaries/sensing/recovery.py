"""Signals from fewer linear measurements than they have values, with error bars.

    y_i = S_i x_i + noise,   x_i = sum_k z_ik s_ik d_k   for few of the atoms d_k

The dictionary is known (a cosine basis, or learned from other signals), or it is learned from the measurements alone.
All rows are recovered together: which atoms are likely is learned from all of them, or from those of a cluster.

References
----------
Zhou, Chen, Paisley, Ren, Li, Xing, Dunson, Sapiro and Carin (2012), Nonparametric Bayesian dictionary learning for
analysis of noisy and incomplete images, IEEE Transactions on Image Processing 21.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.factors.dictionaries.records import Array
from pluri.factors.dictionaries.sensing.measurements import Measurements, prepare_measurements
from pluri.factors.dictionaries.sensing.recovery_fit import Recovered, recover_by_gibbs, recover_by_vb
from pluri.factors.dictionaries.usage.code_classes import CodeClasses
from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma
from pluri.validation import (
    Allowed,
    Flag,
    Made,
    Number,
    Only,
    Stored,
    Whole,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

GAMMA = Made(Gamma, "a prior, Gamma(shape, rate)") | Only(None)


class CompressiveRecovery(mcmc.Sampled, Estimator):
    """Sparse Bayesian recovery of rows from linear measurements.

    Parameters
    ----------
    dictionary : array of shape (n_components, n_features), fitted BetaProcessDictionary or None, default=None
        Atoms as rows; or None, if they are to be learned from the measurements. That needs rows which are measured by
        different projections: of a single one nothing is learned in the directions that it does not see. What a
        fitted dictionary subtracted of each feature is added to the rows that are recovered, and Gibbs sampling takes
        what it knows of codes for known, up to the unit of the rows: how likely its classes of rows are to use each
        atom, and the variances of weights (`code_usage_`, `code_variances_`). Give `components_` for the atoms alone.
    n_components : int, default=64
        Largest number of atoms if they are learned.
    usage_prior : {"beta_process", "dp", "psbp"}, default="beta_process"
        How likely rows are to use each atom: all alike; alike within a cluster of rows; or in clusters that depend on
        where rows are, which needs `locations` and ``inference="gibbs"``.
    n_clusters : int, default=20
        Largest number of clusters of "dp" and "psbp". With a fitted dictionary it is the number of its classes.
    a : float or None, default=None
        A row uses about ``a / b`` atoms a priori; None is the number of measurements of a row. Neither is used where a
        fitted dictionary knows.
    b : float, default=1.0
    inference : {"gibbs", "vb"}, default="gibbs"
        Gibbs sampling, or variational Bayes, which needs a dictionary.
    noise_model : {"measurement", "signal"}, default="measurement"
        What is noisy: the measurements, with equal variances; or the values of the rows before they are measured.
    center : {None, "sample"}, default=None
        Whether each row has a constant besides, about which nothing is believed beforehand: for pictures, whose
        brightness says nothing of what is on them. One measurement of each row goes to it.
    noise_prior, weight_prior : Gamma prior or None, default=None
        Of one over the variance of the noise and of the weights, for rows whose mean square is about 1; None is
        ``Gamma(1e-6, 1e-6)``.
    strict : bool, default=False
        Whether learning a dictionary from rows that are all measured by the same projection is an error; otherwise it
        is a warning.
    n_draws, n_warmup : int, default=100
        Of Gibbs sampling: sweeps of a chain that are kept, and before.
    n_chains, thin : int, default=1
        Of Gibbs sampling: chains, and sweeps from one draw to the next.
    max_iter : int, default=200
        Largest number of iterations of variational Bayes.
    tol : float, default=1e-5
        Variational Bayes ends when the bound rises by less than this share of itself.
    n_jobs : int or None, default=None
        Chains of Gibbs sampling that run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    codes_ : array of shape (n_samples, n_components)
        Posterior means of the weights of the atoms. If the dictionary was learned, those of the draw of highest
        density, which belong to `components_`.
    components_ : array of shape (n_components, n_features_)
        The dictionary, given or learned.
    usage_ : array of shape (n_components,)
        Share of the rows that use each atom.
    noise_variance_, weight_variance_ : float
    cluster_labels_ : array of shape (n_samples,)
        Cluster of each row; only for "dp" and "psbp".
    trace_ : `pluri.inference.mcmc.Trace`
        Variances and atoms per row by chain and draw; Gibbs sampling only.
    bound_ : list of float
        Lower bound by iteration; variational Bayes only.
    converged_ : bool
    n_iter_ : int
    n_features_ : int
        Number of values of a row.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import CompressiveRecovery, measure, random_projections
    >>> rng = np.random.default_rng(0)
    >>> atoms = np.linalg.qr(rng.normal(size=(32, 32)))[0]
    >>> codes = rng.normal(size=(60, 32)) * (rng.random((60, 32)) < 0.1)
    >>> S = random_projections(16, 32, 60, random_state=0)  # 16 measurements in place of 32 values
    >>> Y = measure(codes @ atoms, S) + 0.01 * rng.normal(size=(60, 16))
    >>> model = CompressiveRecovery(atoms, random_state=0).fit(Y, S)
    >>> X, std = model.recover(return_std=True)
    >>> bool(np.mean(np.linalg.norm(X - codes @ atoms, axis=1) < 0.1) > 0.9)  # the rest needs too many atoms
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "usage_prior": Only("beta_process", "dp", "psbp"),
        "n_clusters": Whole(1),
        "a": Number(above=0) | Only(None),
        "b": Number(above=0),
        "inference": Only("gibbs", "vb"),
        "noise_model": Only("measurement", "signal"),
        "center": Only(None, "sample"),
        "noise_prior": GAMMA,
        "weight_prior": GAMMA,
        "strict": Flag(),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_atoms", "n_features_"),
        "codes_": Stored("n_rows", "n_atoms"),
        "usage_": Stored("n_atoms", least=0),
        "recovered_": Stored("n_rows", "n_features_"),
        "recovered_std_": Stored("n_rows", "n_features_", least=0),
        "cluster_labels_": Stored("n_rows", whole=True, least=0),
    }

    def __init__(
        self,
        dictionary: Any = None,
        *,
        n_components: int = 64,
        usage_prior: str = "beta_process",
        n_clusters: int = 20,
        a: float | None = None,
        b: float = 1.0,
        inference: str = "gibbs",
        noise_model: str = "measurement",
        center: str | None = None,
        noise_prior: Gamma | None = None,
        weight_prior: Gamma | None = None,
        strict: bool = False,
        n_draws: int = 100,
        n_warmup: int = 100,
        n_chains: int = 1,
        thin: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.dictionary = dictionary
        self.n_components = n_components
        self.usage_prior = usage_prior
        self.n_clusters = n_clusters
        self.a = a
        self.b = b
        self.inference = inference
        self.noise_model = noise_model
        self.center = center
        self.noise_prior = noise_prior
        self.weight_prior = weight_prior
        self.strict = strict
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.thin = thin
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, Y: Any, projections: Any, *, locations: ArrayLike | None = None) -> Self:
        """Recover rows from their measurements.

        After Ctrl-C the model is that of the draws so far, with a warning.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_measurements)
        projections : array-like of shape (n_measurements, n_features) or (n_samples, n_measurements, n_features)
            What was measured of the rows: one projection for all, or one for each. A LinearOperator, a function of a
            row, or a list of these will do too.
        locations : array-like of shape (n_samples, n_dims), optional
            Where each row is, for ``usage_prior="psbp"`` only.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        if (locations is None) == (self.usage_prior == "psbp"):
            needed = "must be given" if locations is None else "must be None"
            raise ValueError(f"locations {needed} for usage_prior={self.usage_prior!r}")
        if self.inference == "vb" and self.usage_prior == "psbp":
            raise ValueError("usage_prior='psbp' needs inference='gibbs', got 'vb'")
        if self.inference == "vb" and self.dictionary is None:
            raise ValueError("inference='vb' needs a dictionary, got None; inference='gibbs' learns it")
        with restored_on_failure(self):
            atoms, mean = self._atoms(), self._mean()
            data = prepare_measurements(
                Y, projections, n_features=None if atoms is None else atoms.shape[1], noise_model=self.noise_model,
                center=self.center, mean=mean,
            )  # fmt: skip
            if atoms is None:
                self._warn_of_blindness(data)
            recover = recover_by_gibbs if self.inference == "gibbs" else recover_by_vb
            self._store(recover(self, data, atoms, locations, self._classes()), data, mean)
        return self

    def _atoms(self) -> Array | None:
        """The dictionary that is given, checked; None if it is to be learned."""
        if self.dictionary is None:
            return None
        given = self.dictionary
        if hasattr(given, "fit"):
            told = "dictionary must be fitted, got %(name)s that is not; for clones and searches give its components_"
            check_is_fitted(given, "components_", msg=told)
            given = given.components_
        atoms = check_array(given, dtype=np.float64, input_name="dictionary")
        if not atoms.any():
            raise ValueError("dictionary must have an atom that is not zero")
        return np.ascontiguousarray(atoms)

    def _classes(self) -> CodeClasses | None:
        """What a fitted dictionary knows of codes; None if nothing."""
        given = self.dictionary
        if not hasattr(given, "fit") or getattr(given, "code_usage_", None) is None:
            return None
        noise = float(np.mean(given.noise_variance_))
        return CodeClasses(given.code_shares_, given.code_usage_, given.code_variances_, noise)

    def _mean(self) -> Array | None:
        """What was subtracted from the rows that the dictionary was learned from; None if nothing."""
        given = self.dictionary
        if not hasattr(given, "fit"):
            return None
        if self.center is None and getattr(given, "center", None) == "sample":
            warnings.warn(
                "the dictionary was learned from rows less their means, which its atoms cannot make up for: "
                "give center='sample' here too",
                UserWarning,
                stacklevel=4,
            )
        mean = getattr(given, "mean_", None)
        return None if mean is None or not np.any(mean) else np.asarray(mean, dtype=np.float64)

    def _warn_of_blindness(self, data: Measurements) -> None:
        first = data.projections if data.shared else data.projections[0]
        alike = data.shared or bool((data.projections == first).all())
        if not alike or np.linalg.matrix_rank(first) == first.shape[1]:
            return
        told = (
            "all rows are measured by the same projection, so that nothing can be learned of atoms in the directions "
            "that it does not see: give each row a projection of its own, or give a dictionary"
        )
        if self.strict:
            raise ValueError(told)
        warnings.warn(told, UserWarning, stacklevel=4)

    def _store(self, found: Recovered, data: Measurements, mean: Array | None) -> None:
        for name in {"trace_", "bound_", "cluster_labels_"} & set(vars(self)):
            delattr(self, name)
        scale = data.scale
        self.components_, self.n_features_ = found.components, found.components.shape[1]
        self.codes_, self.usage_ = found.codes * scale, found.usage
        self.recovered_ = found.mean * scale if mean is None else found.mean * scale + mean
        self.recovered_std_ = np.sqrt(found.variance) * scale
        self.noise_variance_ = found.noise_variance * data.unit**2
        self.weight_variance_ = found.weight_variance * scale**2
        self.converged_, self.n_iter_ = found.converged, found.n_iter
        if found.labels is not None:
            self.cluster_labels_ = found.labels
        if found.trace is not None:
            self.trace_ = found.trace
        if found.bound is not None:
            self.bound_ = found.bound
        if self.inference == "vb" and not found.converged and not found.interrupted and self.tol > 0:
            warnings.warn(
                f"the bound still rises after max_iter={self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    @overload
    def recover(self, *, return_std: Literal[False] = False) -> Array: ...
    @overload
    def recover(self, *, return_std: Literal[True]) -> tuple[Array, Array]: ...
    def recover(self, *, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The rows, as their posterior means.

        Parameters
        ----------
        return_std : bool, default=False
            Whether posterior standard deviations come with them, those of the rows without noise.

        Returns
        -------
        array of shape (n_samples, n_features), or two of them
        """
        check_is_fitted(self, "recovered_")
        if return_std:
            return self.recovered_.copy(), self.recovered_std_.copy()
        return self.recovered_.copy()
