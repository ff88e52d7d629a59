"""The three ways to fit an HDP topic model: chains, all documents at a time, and minibatches; and what they leave."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.inference.variational import RobbinsMonro, stochastic_variational_inference
from pluri.topics import checked_state
from pluri.topics.documents import check_documents, refuse_no_words
from pluri.topics.hdp.gibbs_fit import fit_chains
from pluri.topics.hdp.settings import HDPSettings
from pluri.topics.hdp.variational_fit import fit_batch
from pluri.topics.hdp.variational_report import variational_attributes, variational_model, warn_of_truncation
from pluri.topics.topic_model import warn_if_interrupted

if TYPE_CHECKING:
    from pluri.topics.lda import LatentDirichletAllocation

#: Sweeps, and passes over minibatches, if `max_iter` is None.
MAX_SWEEPS, MAX_PASSES = 100, 10
#: A pass over minibatches moves the bound by noise: it has settled within so many times `tol`.
NOISE = 100.0


class HDPFits(mcmc.Sampled, HDPSettings):
    """What :class:`HDPTopicModel` does with its settings."""

    # eta is one number for all topics.
    _seeds_in_prior = False

    def _word_prior(self) -> NDArray[np.float64]:
        # The topics are of one draw, and eta is the mean over all of them.
        return np.asarray(min(float(self.topic_word_prior_), float(self.components_.min())))

    def _check_corpus(self, X: Any, whom: str, *, reset: bool) -> Any:
        counts = check_documents(self, X, whole=self.inference == "gibbs", reset=reset, whom=whom)
        refuse_no_words(counts, f"{type(self).__name__}.{whom}")
        return counts

    def _fit_gibbs(self, counts: Any, rng: np.random.Generator) -> None:
        fitted = fit_chains(self, counts, rng)
        topics = {"components_": fitted.components, "topic_weight_": fitted.weight, "doc_topic_prior_": fitted.prior}
        self._store({**fitted.attributes(), **topics})
        warn_if_interrupted(fitted.trace.interrupted, type(self).__name__, self.n_iter_)
        if not fitted.trace.interrupted:
            fitted.verdict().warn(fitted.seen(), stacklevel=4)

    def _fit_batch(self, counts: Any, rng: np.random.Generator) -> None:
        max_iter = MAX_SWEEPS if self.max_iter is None else int(self.max_iter)
        fitted = fit_batch(
            variational_model(self, self.n_features_in_), counts, rng,
            eta_prior=self.hyperparameters()[2].prior,
            max_iter=max_iter, tol=float(self.tol), n_init=int(self.n_init), verbose=int(self.verbose),
            callback=self.callback,
        )  # fmt: skip
        self.elbo_, self.n_iter_, self.converged_ = fitted.elbo, fitted.n_iter, fitted.converged
        self.n_documents_seen_ = counts.shape[0]
        self._store(variational_attributes(fitted.model, fitted.params))
        self._warn_of(fitted.interrupted, f"{max_iter} sweeps", fitted.last_stick)

    def _fit_minibatches(self, counts: Any, rng: np.random.Generator) -> None:
        max_iter = MAX_PASSES if self.max_iter is None else int(self.max_iter)
        model = variational_model(self, self.n_features_in_)
        result = stochastic_variational_inference(
            model, counts, rng=rng, batch_size=int(self.batch_size), max_iter=max_iter, tol=NOISE * float(self.tol),
            schedule=RobbinsMonro(self.learning_decay, self.learning_offset), start=model.start(counts, rng),
            verbose=int(self.verbose), on_iteration=self.callback,
        )  # fmt: skip
        self.elbo_, self.n_iter_, self.converged_ = (
            list(result.trace) or [result.elbo],
            result.n_steps,
            result.converged,
        )
        self.n_documents_seen_ = counts.shape[0]
        self._store(variational_attributes(model, result.params))
        self._warn_of(result.interrupted or result.reason == "stopped", f"{max_iter} passes", 0.0)

    def _warn_of(self, interrupted: bool, what: str, last_stick: float) -> None:
        warn_of_truncation(self, last_stick)
        if not self.converged_ and not interrupted:
            warnings.warn(
                f"the bound still moves after {what}; raise max_iter or tol", ConvergenceWarning, stacklevel=4
            )

    def _store(self, found: dict[str, Any]) -> None:
        for name, value in found.items():
            setattr(self, name, value)
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        if hasattr(self, "elbo_"):
            self.bound_ = float(self.elbo_[-1])

    def _forget(self) -> None:
        """Leave nothing of an earlier fit by another way."""
        kept = ("n_features_in_", "feature_names_in_", "vocabulary_")
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            if name not in kept:
                delattr(self, name)

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        super()._check_learned(n_topics, n_words)
        if not hasattr(self, "variational_"):
            return
        params, n_all = self.variational_, int(self.max_topics)
        shapes: dict[str, tuple[int, ...]] = {
            "topic_word": (n_all, n_words), "usage": (n_all,), "doc_shape": (), "doc_rate": (),
        }  # fmt: skip
        if not isinstance(params, dict) or params.keys() != shapes.keys():
            raise ValueError(f"variational_ must have {', '.join(shapes)}, got {params!r:.60}")
        for name, shape in shapes.items():
            least = {"above": 0.0} if name == "topic_word" else {"least": 0.0}
            checked_state.numbers(f"variational_: {name}", np.asarray(params[name]), shape, **least)
        for name in ("n_documents_seen_", "n_iter_"):
            checked_state.whole_number(name, getattr(self, name, 0))

    def _facts(self) -> dict[str, str]:
        facts = {"topics": str(self.n_topics_), "topics of 1 % or more": str(self.n_large_topics_)}
        if hasattr(self, "n_topics_interval_"):
            facts["95 % interval"] = "{} to {}".format(*self.n_topics_interval_)
        return {**facts, "words": str(self.topic_word_.shape[1])}

    def to_lda(
        self, least_share: float = 0.01, *, small: Literal["merge", "drop"] = "merge"
    ) -> LatentDirichletAllocation:
        """The topics that are large enough to read, as a fitted model of so many topics, the largest first.

        Parameters
        ----------
        least_share : float, default=0.01
            Share of the tokens that a topic must have.
        small : {"merge", "drop"}, default="merge"
            What becomes of the others: each is put to the topic with which it is merged at least cost, the smallest
            first (several may make a large one together); or it is dropped, and its tokens go to other topics, word by
            word.

        Returns
        -------
        LatentDirichletAllocation
            Fitted; it knows the words, names and examples of this model, and can be edited and learn on.
        """
        from pluri.topics.agglomeration.large_topics import as_lda

        found: LatentDirichletAllocation = as_lda(self, least_share, small)
        return found

    def number_in_words(self) -> str:
        """How many topics there are, in a sentence: those of 1 % or more, how sure that is, and the small ones."""
        from pluri.topics.agglomeration.large_topics import number_in_words

        return number_in_words(self)

    def summary(self, n_topics: int = 20, n_words: int = 8) -> str:
        """The number of topics and the largest of them with their words, on one page of plain text."""
        check_is_fitted(self, "topic_word_")
        from pluri.topics.agglomeration.large_topics import number_in_words

        numbers = f"{self.n_topics_} topics, {self.n_large_topics_} with 1 % or more"
        lines = [f"{type(self).__name__} ({self.inference}): {numbers}", number_in_words(self)]
        lines.append(
            f"gamma {self.topic_concentration_:.3g}, alpha {self.doc_concentration_:.3g}, "
            f"eta {self.topic_word_prior_:.3g}"
        )
        for row in self.topic_table(n_words)[:n_topics]:
            name = f"{row['name']}: " if row.get("name") else ""
            lines.append(f"{row['topic']:>4d}  {row['share']:6.1%}  {name}{row['words']}")
        return "\n".join(lines)
