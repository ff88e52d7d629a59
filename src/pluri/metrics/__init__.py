"""How good, how distinct, how many, and how much information: measures of labellings, distributions and samples.

What scikit-learn has already (``v_measure_score``, ``adjusted_rand_score``, ...) is not repeated here.
"""

from pluri.metrics.accuracy import many_to_one_accuracy, one_to_one_accuracy
from pluri.metrics.alignment import StateAlignment, align_rows, align_states, permute_states
from pluri.metrics.coherence import TopicCoherence, topic_coherence
from pluri.metrics.distribution_information import (
    bernoulli_kl,
    beta_entropy,
    beta_kl,
    categorical_kl,
    dirichlet_entropy,
    dirichlet_kl,
    gamma_entropy,
    gamma_kl,
    wishart_entropy,
    wishart_kl,
)
from pluri.metrics.diversity import BhattacharyyaDiversity, bhattacharyya_distances, bhattacharyya_diversity
from pluri.metrics.entropies import (
    bregman_divergence,
    conditional_entropy,
    conditional_mutual_information,
    cross_entropy,
    entropy,
    joint_entropy,
    js_divergence,
    kl_divergence,
    mutual_information,
    pointwise_mutual_information,
    varentropy,
)
from pluri.metrics.entropy_estimators import entropy_from_samples
from pluri.metrics.gaussian_information import gaussian_entropy, gaussian_kl, gaussian_mutual_information
from pluri.metrics.information_estimators import (
    Interval,
    bootstrap_interval,
    kl_from_samples,
    mi_from_samples,
    variational_mutual_information,
)
from pluri.metrics.information_projection import Projection, i_projection, m_projection
from pluri.metrics.neighborhoods import antigeometric_mismatch, neighborhood_preservation, trustworthiness
from pluri.metrics.occupancy import effective_states, state_histogram
from pluri.metrics.partition_distance import variation_of_information
from pluri.metrics.partition_losses import co_clustering_matrix, expected_binder, expected_variation_of_information
from pluri.metrics.partition_posterior import (
    CredibleBall,
    PointPartition,
    credible_ball,
    minimize_expected_loss,
    minimize_expected_vi,
)
from pluri.metrics.sequence import (
    BracketScores,
    bleu_score,
    bracket_f1,
    bracket_scores,
    cider_score,
    exact_meteor_score,
    frame_error_rate,
    perplexity,
)
from pluri.metrics.topic_overlap import TopicMatch, TopicOverlap, match_topics, topic_overlap, topic_uniqueness

__all__ = [
    "BhattacharyyaDiversity",
    "BracketScores",
    "CredibleBall",
    "Interval",
    "PointPartition",
    "Projection",
    "StateAlignment",
    "TopicCoherence",
    "TopicMatch",
    "TopicOverlap",
    "align_rows",
    "align_states",
    "antigeometric_mismatch",
    "bernoulli_kl",
    "beta_entropy",
    "beta_kl",
    "bhattacharyya_distances",
    "bhattacharyya_diversity",
    "bleu_score",
    "bootstrap_interval",
    "bracket_f1",
    "bracket_scores",
    "bregman_divergence",
    "categorical_kl",
    "cider_score",
    "co_clustering_matrix",
    "conditional_entropy",
    "conditional_mutual_information",
    "credible_ball",
    "cross_entropy",
    "dirichlet_entropy",
    "dirichlet_kl",
    "effective_states",
    "entropy",
    "entropy_from_samples",
    "exact_meteor_score",
    "expected_binder",
    "expected_variation_of_information",
    "frame_error_rate",
    "gamma_entropy",
    "gamma_kl",
    "gaussian_entropy",
    "gaussian_kl",
    "gaussian_mutual_information",
    "i_projection",
    "joint_entropy",
    "js_divergence",
    "kl_divergence",
    "kl_from_samples",
    "m_projection",
    "many_to_one_accuracy",
    "match_topics",
    "mi_from_samples",
    "minimize_expected_loss",
    "minimize_expected_vi",
    "mutual_information",
    "neighborhood_preservation",
    "one_to_one_accuracy",
    "permute_states",
    "perplexity",
    "pointwise_mutual_information",
    "state_histogram",
    "topic_coherence",
    "topic_overlap",
    "topic_uniqueness",
    "trustworthiness",
    "varentropy",
    "variation_of_information",
    "variational_mutual_information",
    "wishart_entropy",
    "wishart_kl",
]
