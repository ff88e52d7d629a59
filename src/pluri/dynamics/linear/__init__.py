"""Linear dynamical systems: the Kalman filter and smoother, known models, and models that are learned."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.linear.estimator import LinearDynamicalSystem
    from pluri.dynamics.linear.forecasts import Forecast
    from pluri.dynamics.linear.kalman import KalmanResult, kalman_filter, kalman_smoother
    from pluri.dynamics.linear.known import LinearGaussianModel
    from pluri.dynamics.linear.online import OnlineKalmanFilter

__all__ = [
    "Forecast",
    "KalmanResult",
    "LinearDynamicalSystem",
    "LinearGaussianModel",
    "OnlineKalmanFilter",
    "kalman_filter",
    "kalman_smoother",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "estimator": ["LinearDynamicalSystem"],
        "forecasts": ["Forecast"],
        "kalman": ["KalmanResult", "kalman_filter", "kalman_smoother"],
        "known": ["LinearGaussianModel"],
        "online": ["OnlineKalmanFilter"],
    },
)
