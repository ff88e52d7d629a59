"""Settings of an HDP topic model: what they may be, and what is learned under which prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pluri.inference.variational import RobbinsMonro
from pluri.priors.hyperpriors import Hyperparameter, as_hyperparameter
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.topics.editing.editable import EditableTopics
from pluri.topics.hdp.starts import INITS
from pluri.validation import Allowed, Only, Whole, check_parameters

#: What may be given or learned, and where chains begin.
FIRST = {"topic_concentration": 1.0, "doc_concentration": 1.0, "topic_word_prior": 0.1}


class HDPSettings(EditableTopics):
    """The settings of :class:`HDPTopicModel`, where they are explained."""

    inference: str
    max_topics: int
    max_doc_topics: int
    n_warmup: int
    n_draws: int
    thin: int
    n_chains: int
    n_jobs: int | None
    learning_decay: float
    learning_offset: float
    batch_size: int
    total_samples: int | None
    max_iter: int | None
    tol: float
    init: str
    n_init: int
    random_state: Any
    verbose: int
    callback: Callable[[Any], bool | None] | None
    n_topics_: int
    n_documents_seen_: int

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "inference": Only("gibbs", "vb", "svi"), "init": Only(*INITS), "max_topics": Whole(1),
        "max_doc_topics": Whole(1), "batch_size": Whole(1), "total_samples": Whole(1) | Only(None),
        "max_iter": Whole(1) | Only(None),
    }  # fmt: skip

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents."""
        check_parameters(self)
        if self.init == "sequential" and self.inference != "gibbs":
            raise ValueError(
                "init must be 'auto', 'documents' or 'random' unless inference is 'gibbs', got 'sequential'"
            )
        if self.hyperparameters()[2].learned and self.inference == "svi":
            given = self.topic_word_prior
            raise ValueError(f"topic_word_prior must be a positive number if inference is 'svi', got {given!r}")
        RobbinsMonro(self.learning_decay, self.learning_offset)

    def hyperparameters(self) -> tuple[Hyperparameter, Hyperparameter, Hyperparameter]:
        """Gamma, alpha and eta."""
        gamma, alpha, eta = (
            as_hyperparameter(getattr(self, name), name, CONCENTRATION_PRIOR, start=start)
            for name, start in FIRST.items()
        )
        return gamma, alpha, eta
