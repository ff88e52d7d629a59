"""What only the command itself may do, being alone in its process."""

from __future__ import annotations

import sys

#: Set by ``pluri.cli.main``: nobody else's code runs in this process.
alone = False


def load_skops() -> None:
    """Import skops without the estimators of scikit-learn.

    To know all their names, skops imports every module of scikit-learn, which takes longer than the rest of a question
    to a saved model. They are only what it trusts by itself; files are held against the list of `pluri.io.trusted`.
    """
    if not alone or "skops" in sys.modules:
        return
    import sklearn.utils

    listing = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = lambda *args, **kwargs: []
    try:
        import skops.io  # noqa: F401
    finally:
        sklearn.utils.all_estimators = listing
