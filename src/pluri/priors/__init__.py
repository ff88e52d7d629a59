"""What we believe before the data: priors over numbers, rows of stochastic matrices and sets of components.

Each gives a log density, a gradient and the M-step it leads to; :func:`maximize_rows` combines them.
"""

from pluri.priors.determinant import DiversityWarning, log_determinant, log_determinant_gradient, relative_gain
from pluri.priors.determinantal import DeterminantalDiagnosis, DeterminantalPrior
from pluri.priors.dirichlet import Dirichlet, Sticky
from pluri.priors.diverse_rows import expected_determinant, sample_diverse_rows
from pluri.priors.diversity import Diversity, as_diversity
from pluri.priors.hyperpriors import Beta, BetaProcess, Gamma, HalfNormal, LogNormal, LogUniform, Uniform
from pluri.priors.protocol import PseudoCountPrior, RowPrior, RowPriorWarning
from pluri.priors.row_prior import as_row_prior
from pluri.priors.rows import log_density_rows, maximize_rows, rows_objective, warn_if_permutation

__all__ = [
    "Beta",
    "BetaProcess",
    "DeterminantalDiagnosis",
    "DeterminantalPrior",
    "Dirichlet",
    "Diversity",
    "DiversityWarning",
    "Gamma",
    "HalfNormal",
    "LogNormal",
    "LogUniform",
    "PseudoCountPrior",
    "RowPrior",
    "RowPriorWarning",
    "Sticky",
    "Uniform",
    "as_diversity",
    "as_row_prior",
    "expected_determinant",
    "log_density_rows",
    "log_determinant",
    "log_determinant_gradient",
    "maximize_rows",
    "relative_gain",
    "rows_objective",
    "sample_diverse_rows",
    "warn_if_permutation",
]
