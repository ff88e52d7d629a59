"""From a history to suggestions: which files should change together with these."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.cochange.baselines import CoOccurrence, FrequentItemsets, Popularity
from pluri.cochange.completion import Completion, later_answers, learn
from pluri.cochange.history import CommitHistory
from pluri.cochange.nearest import nearest_paths
from pluri.cochange.registry import build_model
from pluri.cochange.scoring import AVERAGES, best_threshold, score_queries
from pluri.validation import RandomState, Stored, as_generator, check_layout
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
#: Commits named with a suggestion.
N_SHOWN = 3
#: The threshold where no later commits are there to choose it by.
FALLBACK = 0.5


@dataclass(frozen=True)
class Suggestion:
    """A file that should change too.

    Attributes
    ----------
    path : str
    probability : float
        That it changes together with the given files, by the model; a rank score for models that count.
    n_commits : int
        Number of past commits in which it changed with at least one of the given files.
    commits : tuple of str
        Some of these commits: those with most of the given files first, then the latest.
    """

    path: str
    probability: float
    n_commits: int
    commits: tuple[str, ...] = ()


class FileRecommender(Estimator):
    """Suggest files that change together with given ones, learnt from a commit history.

    Parameters
    ----------
    model : str or estimator, default="bayesian"
        "bayesian" (Bayesian Bernoulli mixture), "dp" (the same with as many components as needed), "mixture", "rbm",
        "logistic-pca", "cooccurrence" (commits with all given files), "pairwise" (co-occurrence with one given file
        after the other, averaged), "itemsets", "popular", or an estimator with ``fit`` and ``predict_missing``.
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
        Share of the last commits that choose the threshold.
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
    >>> recommender = FileRecommender("cooccurrence", random_state=0).fit(history)
    >>> [(item.path, item.probability, item.n_commits) for item in recommender.recommend(["a.h"])]
    [('a.c', 1.0, 40)]
    """

    def __init__(
        self,
        model: Any = "bayesian",
        *,
        model_params: Mapping[str, Any] | None = None,
        threshold: float | str = "auto",
        n_start: int = 1,
        average: str = "macro",
        validation_fraction: float = 0.2,
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
        threshold, validation = self._choose_threshold(history, rng, seed)
        model = build_model(self.model, self.model_params, n_commits, seed)
        completion = learn(model, history.X_, history.times_, self.half_life, self.drop_silent)
        # Nothing is stored before all is done: a fit that fails leaves the one before as it was.
        self.model_, self.columns_ = model, completion.columns
        self.counts_ = CoOccurrence().fit(history.X_)
        self.threshold_, self.validation_ = threshold, validation
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
        if self.average not in AVERAGES:
            raise ValueError(f"average must be 'macro' or 'micro', got {self.average!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {self.validation_fraction!r}")
        silent = self.drop_silent
        if silent is not None and not (isinstance(silent, Real) and 0 < silent < 1):
            raise ValueError(f"drop_silent must be None or lie between 0 and 1, got {silent!r}")
        if not isinstance(self.n_start, Integral) or isinstance(self.n_start, bool) or self.n_start < 1:
            raise ValueError(f"n_start must be a whole number of at least 1, got {self.n_start!r}")

    def _choose_threshold(
        self, history: CommitHistory, rng: np.random.Generator, seed: int
    ) -> tuple[float, dict[str, float]]:
        if self.threshold != "auto":
            return float(self.threshold), {}
        answers = later_answers(
            build_model(self.model, self.model_params, len(history), seed),
            history,
            fraction=self.validation_fraction,
            n_start=self.n_start,
            rng=rng,
            half_life=self.half_life,
            drop_silent=self.drop_silent,
        )
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
        return Completion(self.model_, self.columns_, self.counts_.frequencies_).scores(sparse.csr_array(starters))

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
        check_is_fitted(self)
        if top is not None and top < 1:
            raise ValueError(f"top must be at least 1 or None, got {top!r}")
        present = self.known_columns([files] if isinstance(files, str) else list(files))
        scores = self.score_files(_one_row(present, len(self.files_)))[0]
        wanted = scores > (self.threshold_ if threshold is None else threshold)
        wanted[present] = False
        if self.drop_deleted:
            wanted &= self.alive_
        candidates = np.flatnonzero(wanted)
        order = np.lexsort((-self.counts_.frequencies_[candidates], -scores[candidates]))
        shared = np.zeros(self.n_commits_, dtype=np.int64)
        for column in present:
            shared[self.counts_.rows_with(int(column))] += 1
        return [self._suggestion(int(column), scores, shared) for column in candidates[order[:top]]]

    def count_commits(self, files: Sequence[str]) -> int:
        """Number of past commits that changed at least one of some known files."""
        found = [self.counts_.rows_with(int(column)) for column in self.known_columns(files)]
        return len(np.unique(np.concatenate(found)))

    def known_columns(self, files: Sequence[str]) -> NDArray[np.int64]:
        """Columns of paths; unknown ones are dropped with a warning, or refused if no other is left."""
        check_is_fitted(self)
        place = {str(path): column for column, path in enumerate(self.files_)}
        known = sorted({place[path] for path in files if path in place})
        unknown = [path for path in dict.fromkeys(files) if path not in place]
        if not known:
            if not unknown:
                raise ValueError("files must hold at least one path, got none")
            raise ValueError(f"files must hold a path that the history knows, got {self._unknown(unknown[0])}")
        for path in unknown:
            warnings.warn(f"files should be known to the history, dropped {self._unknown(path)}", stacklevel=3)
        return np.array(known, dtype=np.int64)

    def _unknown(self, path: str) -> str:
        near = nearest_paths(path, self.files_.tolist())
        return f"{path!r}" + (f"; nearest known: {', '.join(map(repr, near))}" if near else "")

    def _suggestion(self, column: int, scores: Array, shared: NDArray[np.int64]) -> Suggestion:
        rows = self.counts_.rows_with(column)
        rows = rows[shared[rows] > 0]
        best = rows[np.lexsort((-rows, -shared[rows]))][:N_SHOWN]
        names = tuple(name.decode("utf-8") for name in self.commits_[best].tolist())
        return Suggestion(str(self.files_[column]), float(scores[column]), len(rows), names)

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


OWN = (FileRecommender, FrequentItemsets, CoOccurrence, Popularity)


def fim_fixed(min_support: int = 10, **parameters: Any) -> FileRecommender:
    """Frequent itemset mining as it is: every file that some frequent itemset has together with those given.

    Examples
    --------
    >>> from pluri.cochange import fim_fixed
    >>> fim_fixed(5)
    FileRecommender(model=FrequentItemsets(min_support=5), threshold=0.0)
    """
    return FileRecommender(FrequentItemsets(min_support), threshold=0.0, **parameters)


def cooccurrence_tuned(**parameters: Any) -> FileRecommender:
    """Counts of co-occurrence with a threshold chosen on the last commits: a stronger baseline than `fim_fixed`.

    Examples
    --------
    >>> from pluri.cochange import cooccurrence_tuned
    >>> cooccurrence_tuned()
    FileRecommender(model='cooccurrence')
    """
    return FileRecommender("cooccurrence", **parameters)


def _one_row(columns: NDArray[np.int64], n_files: int) -> Any:
    return sparse.csr_array((np.ones(len(columns)), columns, [0, len(columns)]), shape=(1, n_files))
