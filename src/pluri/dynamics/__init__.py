"""Dynamical systems: hidden states that move on from step to step, seen through noise, counts or a learned map."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.counts.distribution import GeneralizedCount
    from pluri.dynamics.counts.forecasts import CountForecast
    from pluri.dynamics.counts.regression import GeneralizedCountRegression
    from pluri.dynamics.counts.systems import CountDynamicalSystem, PoissonDynamicalSystem
    from pluri.dynamics.linear import (
        Forecast,
        KalmanResult,
        LinearDynamicalSystem,
        LinearGaussianModel,
        OnlineKalmanFilter,
        kalman_filter,
        kalman_smoother,
    )
    from pluri.dynamics.regions import LatentDynamics, MultiTaskDynamics, RegionGibbs
    from pluri.dynamics.stochastic_volatility import StochasticVolatility
    from pluri.dynamics.switching import (
        DeadRegimeWarning,
        LogLikelihood,
        OnlineSwitchingFilter,
        RaoBlackwellResult,
        SwitchingDynamicalSystem,
        SwitchingForecast,
        SwitchingLinearModel,
        make_maneuvering_target,
        make_slds_random,
        rao_blackwell_filter,
        regime_probabilities,
    )

__all__ = [
    "CountDynamicalSystem",
    "CountForecast",
    "DeadRegimeWarning",
    "Forecast",
    "GeneralizedCount",
    "GeneralizedCountRegression",
    "KalmanResult",
    "LatentDynamics",
    "LinearDynamicalSystem",
    "LinearGaussianModel",
    "LogLikelihood",
    "MultiTaskDynamics",
    "OnlineKalmanFilter",
    "OnlineSwitchingFilter",
    "PoissonDynamicalSystem",
    "RaoBlackwellResult",
    "RegionGibbs",
    "StochasticVolatility",
    "SwitchingDynamicalSystem",
    "SwitchingForecast",
    "SwitchingLinearModel",
    "kalman_filter",
    "kalman_smoother",
    "make_maneuvering_target",
    "make_slds_random",
    "rao_blackwell_filter",
    "regime_probabilities",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "counts.distribution": ["GeneralizedCount"],
        "counts.forecasts": ["CountForecast"],
        "counts.regression": ["GeneralizedCountRegression"],
        "counts.systems": ["CountDynamicalSystem", "PoissonDynamicalSystem"],
        "linear": [
            "Forecast",
            "KalmanResult",
            "LinearDynamicalSystem",
            "LinearGaussianModel",
            "OnlineKalmanFilter",
            "kalman_filter",
            "kalman_smoother",
        ],
        "regions": ["LatentDynamics", "MultiTaskDynamics", "RegionGibbs"],
        "stochastic_volatility": ["StochasticVolatility"],
        "switching": [
            "DeadRegimeWarning",
            "LogLikelihood",
            "OnlineSwitchingFilter",
            "RaoBlackwellResult",
            "SwitchingDynamicalSystem",
            "SwitchingForecast",
            "SwitchingLinearModel",
            "make_maneuvering_target",
            "make_slds_random",
            "rao_blackwell_filter",
            "regime_probabilities",
        ],
    },
)
