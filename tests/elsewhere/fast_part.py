"""The fast part of the tests: where pluri and its dependencies meet, and the foundations.

For daily work (``make test-fast``) and for other versions of the dependencies (`versions.py`). Called as a program it
prints the list.
"""

FAST = (
    "tests/test_layering.py",
    "tests/cli/test_commands.py",  # typer, rich
    "tests/cli/test_observations.py",  # pandas, pyarrow
    "tests/datasets/test_topic_corpora.py",  # snowballstemmer
    "tests/engine/test_dask.py",
    "tests/engine/test_parquet.py",
    "tests/inference/ais/test_importance.py",  # ArviZ
    "tests/inference/mcmc/test_blackjax.py",
    "tests/inference/mcmc/test_diagnostics.py",  # ArviZ
    "tests/inference/mcmc/test_driver.py",  # joblib, ArviZ
    "tests/inference/variational/test_black_box.py",  # jax, optax
    "tests/inference/variational/test_flow_fit.py",  # jax, flowjax, ArviZ
    "tests/io/test_round_trip.py",  # skops
    "tests/mixtures/test_gaussian_mixture.py",  # scikit-learn, numba
    "tests/networks/test_core.py",  # equinox
    "tests/plotting",  # matplotlib
    "tests/processes/test_flow_density.py",  # flowjax, equinox
    "tests/sequences/test_against_hmmlearn.py",
    "tests/sequences/test_estimator_contract.py",  # scikit-learn's checks
    "tests/topics/test_topic_model.py",  # networkx
    "tests/components",
    "tests/optimize",
    "tests/priors",
    "tests/validation/test_fitted_state.py",
)

if __name__ == "__main__":
    print(*FAST)
