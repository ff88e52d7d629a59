"""From a history to suggestions: which files should change together with these."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.cochange.calibration import calibrated
from pluri.cochange.held_back import HeldBack, hold_back
from pluri.cochange.history import CommitHistory
from pluri.cochange.models.baselines import CoOccurrence, FrequentItemsets, Popularity
from pluri.cochange.models.completion import Completion, learn
from pluri.cochange.models.counting import CommitRows
from pluri.cochange.models.neighbors import CommitNeighbors
from pluri.cochange.models.registry import build_model
from pluri.cochange.scoring import AVERAGES, best_threshold, score_queries
from pluri.cochange.suggester import Suggester, Suggestion
from pluri.validation import Number, Only, RandomState, Stored, as_generator, check_layout, check_value
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
#: The threshold where no later commits are there to choose it by.
FALLBACK = 0.5


class FileRecommender(Estimator):
    """Suggest files that change together with given ones, learnt from a commit history.

    Parameters
    ----------
    model : str or estimator, default="neighbors"
        "neighbors" (commits with some of the given files vote, the small and late ones more), "pairwise"
        (co-occurrence with one given file after the other, averaged), "cooccurrence" (commits with all given files),
        "counter" (numbers of commits with one given file after the other), "bayesian" (Bayesian Bernoulli mixture),
        "dp" (the same with as many components as needed), "mixture", "rbm", "logistic_pca", "itemsets", "popular",
        or an estimator with ``fit`` and ``predict_missing``.
    model_params : dict, optional
        Parameters of the model.
    threshold : float or "auto", default="auto"
        Files with a higher probability are suggested. "auto" chooses it by the f-measure on the last commits of the
        history, which a first fit does not see.
    n_start : int, default=1
        Number of known files in the questions by which the threshold is chosen.
    average : {"macro", "micro"}, default="macro"
        Whether the f-measure is averaged over questions or computed from the sums over all.
    validation_fraction : float, default=0.2
        Share of the last commits, which a first fit does not see: they choose the thresholds and calibrate.
    calibrate : bool, default=True
        Make scores probabilities that come true on these commits; rankings stay as they are. Scores that are numbers
        of commits stay as they are, and so do all if there are fewer than 30 commits of two files or more.
    false_alarm_rate : float, default=0.02
        Share of complete commits in which a check may name a file as missing; it chooses ``hook_threshold_``.
    half_life : float, optional
        Days after which a commit counts half; for models that take weights.
    drop_deleted : bool, default=True
        Do not suggest files that no longer exist.
    drop_silent : float or None, default=1e-6
        Do not suggest files that were changed so often, and then no more, that chance would do it with a smaller
        probability; None suggests them too.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    model_ : estimator
        Fitted to the files that occur at all.
    threshold_ : float
    calibration_ : ndarray of shape (3,) or None
        Numbers of the beta calibration; None if scores are left as they are.
    hook_threshold_ : float
        Probability above which a check names a file as missing.
    hook_ : dict
        How it was chosen: ``n_commits`` held back, the share of ``false_alarms`` among them, and whether these were
        ``enough`` to say with a confidence of 95 % that it is at most ``false_alarm_rate``.
    files_, alive_ : ndarray of shape (n_files,)
        Paths, and whether they exist.
    validation_ : dict
        ``f``, ``precision``, ``recall``, ``cpr``, ``n_queries`` of the first fit on the last commits; empty if the
        threshold was given.
    first_time_, last_time_ : int
        Seconds since 1970 of the first and the last commit.
    n_commits_ : int

    Examples
    --------
    >>> from pluri.cochange import CommitHistory, FileRecommender
    >>> commits = [{"time": t, "files": ["a.c", "a.h"] if t % 3 else ["b.c", "b.h"]} for t in range(60)]
    >>> history = CommitHistory.from_records(commits, support_on="all")
    >>> recommender = FileRecommender(random_state=0).fit(history)
    >>> [(item.path, round(item.probability, 2), item.n_commits) for item in recommender.recommend(["a.h"])]
    [('a.c', 0.93, 40)]
    """

    def __init__(
        self,
        model: Any = "neighbors",
        *,
        model_params: Mapping[str, Any] | None = None,
        threshold: float | str = "auto",
        n_start: int = 1,
        average: str = "macro",
        validation_fraction: float = 0.2,
        calibrate: bool = True,
        false_alarm_rate: float = 0.02,
        half_life: float | None = None,
        drop_deleted: bool = True,
        drop_silent: float | None = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.model = model
        self.model_params = model_params
        self.threshold = threshold
        self.n_start = n_start
        self.average = average
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.false_alarm_rate = false_alarm_rate
        self.half_life = half_life
        self.drop_deleted = drop_deleted
        self.drop_silent = drop_silent
        self.random_state = random_state

    def fit(self, history: CommitHistory, y: Any = None) -> Self:
        """Learn which files change together.

        Parameters
        ----------
        history : CommitHistory
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        if not isinstance(history, CommitHistory):
            raise TypeError(f"history must be a CommitHistory, got {type(history).__name__}")
        n_commits, n_files = history.X_.shape
        if n_commits < 2 or n_files < 2:
            raise ValueError(
                f"history must have at least 2 commits of at least 2 files after filtering, got {n_commits} commits "
                f"and {n_files} files: take a longer period or a smaller min_support"
            )
        rng = as_generator(self.random_state)
        # One seed for both fits: the threshold is then chosen for the model that is kept, as far as it can be.
        seed = int(rng.integers(2**31))
        held = hold_back(
            build_model(self.model, self.model_params, n_commits, seed),
            history,
            fraction=self.validation_fraction,
            n_start=self.n_start,
            rng=rng,
            half_life=self.half_life,
            drop_silent=self.drop_silent,
            calibrate=self.calibrate,
            false_alarm_rate=self.false_alarm_rate,
        )
        threshold, validation = self._choose_threshold(held)
        model = build_model(self.model, self.model_params, n_commits, seed)
        completion = learn(model, history.X_, history.times_, self.half_life, self.drop_silent)
        # Nothing is stored before all is done: a fit that fails leaves the one before as it was.
        self.model_, self.columns_ = model, completion.columns
        self.counts_ = CoOccurrence().fit(history.X_)
        self.threshold_, self.validation_ = threshold, validation
        self.calibration_, self.hook_ = held.calibration, asdict(held.alarms)
        self.hook_threshold_ = self.hook_.pop("threshold")
        self.files_, self.alive_ = history.files_, history.alive_
        self.commits_ = np.char.encode(history.ids_, "utf-8")
        self.n_commits_ = n_commits
        self.first_time_, self.last_time_ = int(history.times_[0]), int(history.times_[-1])
        return self

    def _check_fitted_state(self) -> None:
        if hasattr(self, "columns_"):
            n_files = len(self.files_)
            check_layout(self, {"columns_": Stored(None, whole=True, least=0, below=n_files)})
            if len(self.alive_) != n_files or self.counts_.n_features_in_ != n_files:
                raise ValueError(f"alive_ and counts_ must be of {n_files} files, got {len(self.alive_)}")

    def _check(self) -> None:
        number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if self.threshold != "auto" and not (number and np.isfinite(self.threshold)):
            raise ValueError(f"threshold must be a finite number or 'auto', got {self.threshold!r}")
        check_value(self.average, "average", Only(*AVERAGES))
        check_value(self.validation_fraction, "validation_fraction", Number(above=0, below=1))
        rate = self.false_alarm_rate
        if not (isinstance(rate, Real) and not isinstance(rate, bool) and 0 < rate < 1):
            raise ValueError(f"false_alarm_rate must lie between 0 and 1, got {rate!r}")
        silent = self.drop_silent
        if silent is not None and not (isinstance(silent, Real) and 0 < silent < 1):
            raise ValueError(f"drop_silent must be None or lie between 0 and 1, got {silent!r}")
        if not isinstance(self.n_start, Integral) or isinstance(self.n_start, bool) or self.n_start < 1:
            raise ValueError(f"n_start must be a whole number of at least 1, got {self.n_start!r}")

    def _choose_threshold(self, held: HeldBack) -> tuple[float, dict[str, float]]:
        if self.threshold != "auto":
            return float(self.threshold), {}
        answers = held.answers
        if len(answers) == 0:
            warnings.warn(
                f"no commit among the last {self.validation_fraction:.0%} has more than {self.n_start} known files to "
                f"choose the threshold by: it is set to {FALLBACK}",
                stacklevel=3,
            )
            return FALLBACK, {}
        chosen = best_threshold(answers, self.average)
        figures = score_queries(answers, chosen.value)
        means = {name: float(getattr(figures, name).mean()) for name in ("precision", "recall", "cpr")}
        return chosen.value, {"f": chosen.f, **means, "n_queries": len(answers)}

    def score_files(self, starters: Any) -> Array:
        """Probability of every file, given some.

        Parameters
        ----------
        starters : sparse matrix of shape (n, n_files)
            Rows that are not zero at the files known to change; nothing is known of the others.

        Returns
        -------
        ndarray of shape (n, n_files)
        """
        check_is_fitted(self)
        completion = Completion(self.model_, self.columns_, self.counts_.frequencies_)
        return calibrated(completion.scores(sparse.csr_array(starters)), self.calibration_)

    def recommend(
        self, files: str | Iterable[str], top: int | None = 10, *, threshold: float | None = None
    ) -> list[Suggestion]:
        """Files that should change too, the most probable first.

        Parameters
        ----------
        files : list of str
            Paths from the top of the repository. Those that the history does not know are dropped with a warning.
        top : int or None, default=10
            Largest number of suggestions.
        threshold : float, optional
            Instead of ``threshold_``; 0 ranks all files that have any chance.

        Returns
        -------
        list of Suggestion
        """
        return self.suggester().recommend(files, top, threshold=threshold)

    def count_commits(self, files: Sequence[str]) -> int:
        """Number of past commits that changed at least one of some known files."""
        return self.suggester().count_commits(files)

    def known_columns(self, files: Sequence[str]) -> NDArray[np.int64]:
        """Columns of paths; unknown ones are dropped with a warning, or refused if no other is left."""
        return self.suggester().known_columns(files)

    def suggester(self) -> Suggester:
        """What answers questions: this recommender without its estimators."""
        check_is_fitted(self)
        return Suggester(
            score=lambda present: self.score_files(_one_row(present, len(self.files_)))[0],
            rows=CommitRows.of(vars(self.counts_)),
            files=self.files_,
            alive=self.alive_,
            commits=self.commits_,
            threshold=self.threshold_,
            hook_threshold=self.hook_threshold_,
            drop_deleted=self.drop_deleted,
        )

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Save with :func:`pluri.io.save`."""
        from pluri.io import save

        save(self, path, notes=notes, trusted=OWN)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> FileRecommender:
        """Load what `save` has written; nothing in the file is run."""
        from pluri.io import load

        found = load(path, trusted=OWN)
        if not isinstance(found, FileRecommender):
            raise ValueError(f"path must name a saved FileRecommender, got {type(found).__name__} in {str(path)!r}")
        return found


OWN = (FileRecommender, CommitNeighbors, FrequentItemsets, CoOccurrence, Popularity)


def _one_row(columns: NDArray[np.int64], n_files: int) -> Any:
    return sparse.csr_array((np.ones(len(columns)), columns, [0, len(columns)]), shape=(1, n_files))
