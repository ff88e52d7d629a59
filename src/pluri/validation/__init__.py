"""Checks at the door: what comes in is turned into what the core expects, or refused in one sentence."""

from pluri.validation.files import check_target, check_writable, replacing
from pluri.validation.fitted_state import Stored, check_compressed, check_layout
from pluri.validation.inputs import (
    check_broadcast,
    check_covariances,
    check_distributions,
    check_positive_definite,
    check_width,
    is_source,
    plain_array,
    refuse_dates,
    unmasked,
)
from pluri.validation.interruption import restored_on_failure
from pluri.validation.parameters import (
    Allowed,
    Either,
    Flag,
    Made,
    Number,
    Only,
    Whole,
    check_count,
    check_parameters,
    check_positive,
    check_value,
)
from pluri.validation.random import RandomState, as_generator
from pluri.validation.weights import check_row_weight, weighted_mean, weighted_total

__all__ = [
    "Allowed",
    "Either",
    "Flag",
    "Made",
    "Number",
    "Only",
    "RandomState",
    "Stored",
    "Whole",
    "as_generator",
    "check_broadcast",
    "check_compressed",
    "check_count",
    "check_covariances",
    "check_distributions",
    "check_layout",
    "check_parameters",
    "check_positive",
    "check_positive_definite",
    "check_row_weight",
    "check_target",
    "check_value",
    "check_width",
    "check_writable",
    "is_source",
    "plain_array",
    "refuse_dates",
    "replacing",
    "restored_on_failure",
    "unmasked",
    "weighted_mean",
    "weighted_total",
]
