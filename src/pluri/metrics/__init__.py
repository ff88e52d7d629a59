"""How good, how distinct and how many: measures of a labelling and of a set of distributions.

What scikit-learn has already (``v_measure_score``, ``adjusted_rand_score``, ...) is not repeated here.
"""

from pluri.metrics.accuracy import many_to_one_accuracy, one_to_one_accuracy
from pluri.metrics.alignment import StateAlignment, align_rows, align_states, permute_states
from pluri.metrics.diversity import BhattacharyyaDiversity, bhattacharyya_distances, bhattacharyya_diversity
from pluri.metrics.information import variation_of_information
from pluri.metrics.occupancy import effective_states, state_histogram

__all__ = [
    "BhattacharyyaDiversity",
    "StateAlignment",
    "align_rows",
    "align_states",
    "bhattacharyya_distances",
    "bhattacharyya_diversity",
    "effective_states",
    "many_to_one_accuracy",
    "one_to_one_accuracy",
    "permute_states",
    "state_histogram",
    "variation_of_information",
]
