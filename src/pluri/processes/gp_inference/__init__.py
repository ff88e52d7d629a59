"""How Gaussian processes are conditioned and learned: functions on arrays below the estimators."""
