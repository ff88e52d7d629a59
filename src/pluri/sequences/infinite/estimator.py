"""Hidden Markov model whose number of states is learned: the scikit-learn estimator around the samplers.

``beta ~ GEM(gamma)``, ``pi_k ~ DP(c, (1 - rho) beta + rho delta_k)``: each state has a row of transition probabilities
around common weights, and a preference rho to stay (Fox and others' sticky hierarchical Dirichlet process). The number
of states is not chosen but has a posterior; so have the segmentation, the concentrations and the stickiness.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101.
Van Gael, Saatci, Teh and Ghahramani (2008), Beam sampling for the infinite hidden Markov model, ICML.
Fox, Sudderth, Jordan and Willsky (2011), A sticky HDP-HMM with application to speaker diarization, AOAS 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from pluri.engine import ArraySource
from pluri.priors.hyperpriors import Beta, Gamma
from pluri.progress.callbacks import CallbackSupport, with_callbacks
from pluri.sequences.infinite.families import family_name, learn_model
from pluri.sequences.infinite.fitting import FitsStates
from pluri.sequences.infinite.variational_fitting import fit_by_bound, model_of_source
from pluri.sequences.queries import ALGORITHMS
from pluri.validation import Allowed, Only, RandomState, Stored, Whole, check_parameters, is_source, restored_on_failure
from pluri.validation.sequences import BOUNDARIES, offsets_of

#: States at most, if nothing is said.
MOST_STATES = {"beam": 200, "direct": 200, "weak_limit": 25, "vb": 25}


class InfiniteHMM(CallbackSupport, FitsStates):
    """Hidden Markov model with a sticky hierarchical Dirichlet process prior: segmentation without a number of states.

    Parameters
    ----------
    family : {"gaussian", "diag", "categorical", "poisson", "bernoulli", "autoregressive"} or a likelihood, \
default="gaussian"
        Distribution of the rows of a state: Gaussian with a full covariance or independent columns; independent
        columns of symbols (integers or strings), counts, zeros and ones; or a regression of each row on the `order`
        rows before it. Or a conjugate likelihood of `pluri.processes`.
    inference : {"beam", "direct", "weak_limit", "vb"}, default="beam"
        Beam sampling, in which slices make the number of states finite and all steps move at once; direct assignment,
        one step at a time with everything else integrated out; blocked sampling of a model with `max_components`
        states; or variational inference, which is faster and tells one segmentation instead of its uncertainty.
    order : int, default=1
        Of "autoregressive". The first rows of each sequence, so many, and those after a row in which something is
        missing are conditioned on.
    component_prior : dict, optional
        Parameters of the prior that are not to be chosen from the data: ``mean``, ``strength``, ``df``, ``scale`` of
        "gaussian" (as in `DirichletProcessMixture`) and "autoregressive" (around the regression of all rows together,
        with room for other coefficients of the size that the columns suggest); ``mean``, ``strength``, ``shape``,
        ``rate`` of "diag"; ``concentration`` of "categorical" (0.3); ``shape``, ``rate`` of "poisson"; ``a``, ``b`` of
        "bernoulli".
    concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the transition rows around their mean (alpha + kappa of Fox and others); "learn" is Gamma(4, 2).
    weight_concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the common weights (gamma): the larger, the more states; "learn" is Gamma(3, 6).
    stickiness : float, `pluri.priors.Beta` prior or "learn", default="learn"
        Share of the mean of a row that is the state itself (rho, kappa / (alpha + kappa)): 0 is the model without
        stickiness; "learn" is Beta(1, 1), or 0 if there are `durations`.
    durations : {"poisson", "negative_binomial"}, optional
        Distribution of how long a state lasts, less one step: an explicit-duration (semi-Markov) model, for
        "weak_limit". Then no state follows itself, and there is no stickiness. A sweep takes time that grows with the
        square of the length of a sequence. Without it durations are geometric.
    duration_prior : dict, optional
        ``shape`` and ``rate`` of the Gamma prior of the mean of "poisson" (1 and one over the square root of the mean
        length of the sequences) or of r of "negative_binomial" (2 and 1), whose p has the prior Beta(``a``, ``b``) (1
        and 1).
    n_features : int or None, default=None
        Number of symbols (of each column) of "categorical"; the largest one seen plus one if None. Strings are as many
        as there are.
    unseen : {"error", "missing"}, default="error"
        What a symbol is that is not among them: a mistake, or a missing value.
    n_draws, n_warmup : int, default=100, 200
        Of the samplers, as the next two, `init_components` and `point_estimate` are ("vb" has no chains): draws kept of
        each chain, and sweeps before them.
    thin : int, default=1
        Sweeps from one draw to the next.
    n_chains : int, default=4
        Results are those of the chain with the highest mean log density.
    max_components : int, optional
        States at most: 25 for "weak_limit", of which it is the model, and for "vb"; otherwise 200, a cap that is
        warned about when it is met.
    init_components : int, default=25
        Chains begin with so many states: the first, third, ... with blocks of steps, of which those that are alike are
        in one state, the others with every step in a state at random. In the second half of the warm-up states that
        are one and the same are merged; new ones are rare in many dimensions, so that it is better to begin with too
        many.
    n_init, max_iter, tol : int, int, float, default=5, 200, 1e-2
        Of "vb": starts for each of 1, 2, 4, ... states, sweeps of a run at most, and the gain of the bound (in nats)
        below which it ends.
    point_estimate : {"vi", "binder", "map"}, default="vi"
        `labels_` has the smallest expected variation of information or Binder loss, or is the draw of highest density.
    algorithm : {"viterbi", "map"}, default="viterbi"
        How `predict` decodes new sequences.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Chains at a time, in threads; batches at a time for "vb".
    verbose : int, default=0

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Consensus segmentation of the data, the largest state first.
    n_states_ : int
        Number of its states.
    startprob_, transmat_ : arrays of shape (n_states,) and (n_states, n_states)
        Posterior means given `labels_`, on its states alone.
    state_parameters_ : dict of arrays
        Posterior means given `labels_`, by name: "means" and "covariances"; "means" and "variances"; "probabilities"
        (a list, one for each column of symbols); "rates"; "coefficients" and "covariances".
    concentration_, weight_concentration_, stickiness_ : float
        Posterior means.
    duration_parameters_ : dict of arrays of shape (n_states,)
        With `durations`, posterior means given `labels_`: "rates", or "shapes" and "probabilities"; and "means", the
        mean durations. `transmat_` is then that of segments, with zeros on its diagonal.
    trace_ : Trace
        Of a sampled fit: draws of ``labels``, ``n_states`` and the hyper-parameters; labels of a draw are numbered as
        they appear.
    best_chain_ : int
    best_labels_ : array of shape (n_samples,)
        The sweep of the best chain with the highest log joint density, `objective_`.
    lower_bound_ : float
        Of "vb": the evidence lower bound (with the log prior of what was learned), `objective_`.
    state_occupancy_, common_weights_ : arrays of shape (n_states,) and (n_states + 1,)
        Of "vb": expected numbers of steps; means of the common weights, the rest of the infinitely many states last.
    posterior_draws_ : list of dicts
        What `forecast` averages over: of up to 100 draws of the best chain (fewer where they are large), the parameters
        of the Dirichlet distributions of their transition ``rows``, that of first steps last, and the statistics
        (``sums``) of their states; ``durations`` too if there are some. Of "vb" the one approximation.
    expected_loss_ : float
        Of `labels_`, in nats for "vi".
    model_ : observation model, with its priors
    state_sums_ : list of arrays
        Statistics of the states of `labels_`, from which new rows are predicted.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import InfiniteHMM
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat([0, 1, 2, 0, 2, 1], 30)
    >>> X = rng.normal(size=(180, 2)) + np.array([[-5.0, 0.0], [0.0, 5.0], [5.0, 0.0]])[states]
    >>> model = InfiniteHMM(n_draws=200, n_chains=2, random_state=0).fit(X)
    >>> model.n_states_
    3
    >>> len({(a, b) for a, b in zip(model.labels_, states)})
    3
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "inference": Only(*MOST_STATES),
        "order": Whole(0),
        "point_estimate": Only("vi", "binder", "map"),
        "algorithm": Only(*ALGORITHMS),
        "max_components": Whole(1) | Only(None),
        "init_components": Whole(1),
        "durations": Only(None, "poisson", "negative_binomial"),
        "n_features": Whole(1) | Only(None),
        "unseen": Only("error", "missing"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "startprob_": Stored("n_states_"),
        "transmat_": Stored("n_states_", "n_states_"),
        "data_mean_": Stored("n_features_in_"),
        "labels_": Stored("n_rows", whole=True, least=0, below="n_states_"),
    }
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    def __init__(
        self,
        family: Any = "gaussian",
        *,
        inference: str = "beam",
        order: int = 1,
        component_prior: Mapping[str, Any] | None = None,
        concentration: float | Gamma | str = "learn",
        weight_concentration: float | Gamma | str = "learn",
        stickiness: float | Beta | str = "learn",
        durations: str | None = None,
        duration_prior: Mapping[str, Any] | None = None,
        n_features: int | None = None,
        unseen: str = "error",
        n_draws: int = 100,
        n_warmup: int = 200,
        thin: int = 1,
        n_chains: int = 4,
        max_components: int | None = None,
        init_components: int = 25,
        n_init: int = 5,
        max_iter: int = 200,
        tol: float = 1e-2,
        point_estimate: str = "vi",
        algorithm: str = "viterbi",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.family = family
        self.inference = inference
        self.order = order
        self.component_prior = component_prior
        self.concentration = concentration
        self.weight_concentration = weight_concentration
        self.stickiness = stickiness
        self.durations = durations
        self.duration_prior = duration_prior
        self.n_features = n_features
        self.unseen = unseen
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_chains = n_chains
        self.max_components = max_components
        self.init_components = init_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.point_estimate = point_estimate
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Self:
        """Infer the states.

        After Ctrl-C the model is that of the draws so far, or of the last sweep if there are none.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or (for "vb") `pluri.engine.Source`
            NaN marks a missing value (None among strings). Where a part of a row of "gaussian" or "autoregressive" is
            missing, "beam" and "weak_limit" integrate it out; "direct" and "vb" take rows that are missing as a whole.
        y : ignored
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        family_name(self.family)
        hyper, priors = self._hyperparameters()
        most = MOST_STATES[self.inference] if self.max_components is None else int(self.max_components)
        if self.inference != "vb" and is_source(X):
            raise TypeError(
                f"X must be an array or a list of sequences for inference={self.inference!r}, got a source: use "
                "inference='vb', or for a file pass numpy.load(path, mmap_mode='r')"
            )
        with restored_on_failure(self):
            if self.inference == "vb" and is_source(X):
                if lengths is not None or groups is not None:
                    raise ValueError("lengths and groups must be None when X is a source: it holds the lengths")
                fit_by_bound(self, X, X, model_of_source(self, X), (hyper, priors), most)
                return self
            data, counts = self._sequences(X, self._boundaries(X, y, lengths, groups), fitting=True)
            offsets = offsets_of(counts)
            symbols = getattr(self, "n_symbols_", ())
            model = learn_model(
                self.family, self.component_prior, data, offsets, order=int(self.order), n_symbols=symbols
            )
            if self.inference == "vb":
                fit_by_bound(self, X, ArraySource(data, counts), model, (hyper, priors), most)
                return self
            trace = self._sample_chains(self._kernel(model, data, offsets, (hyper, priors), most), X)
            self._judge(trace, most)
        return self
