"""A reader who follows a fit goes through few files.

Counted are the files whose functions run, without the foundations that every fit of every model goes through alike
(checks, progress, where the work runs, priors). `python tests/test_walks.py` lists them in the order of first call.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import pluri

ROOT = Path(pluri.__file__).parent
FOUNDATIONS = {"validation", "progress", "engine", "priors"}


def fit_hidden_markov_model():
    from pluri.sequences import GaussianHMM

    X = np.random.default_rng(0).normal(np.repeat([[0.0], [4.0], [8.0]], 40, axis=0), 1.0, (120, 2))
    GaussianHMM(3, random_state=0).fit(X)


def fit_topics_by_sampling():
    from pluri.topics import LatentDirichletAllocation

    counts = np.random.default_rng(0).poisson(1.0, (40, 20)) + np.eye(40, 20, dtype=int)
    LatentDirichletAllocation(3, inference="gibbs", n_warmup=20, random_state=0).fit(counts)


def sample_by_nuts():
    from pluri.inference import mcmc

    mcmc.sample(mcmc.NUTS(lambda x: (-0.5 * x @ x, -x)), np.zeros(2), n_draws=50, n_warmup=50, random_state=0)


#: What is done, and through how many files it may go.
WALKS = {fit_hidden_markov_model: 12, fit_topics_by_sampling: 14, sample_by_nuts: 13}


def files_of(walk):
    """Files of the package whose functions run, in the order of first call."""
    found = {}

    def look(frame, event, argument):
        # Some frames are named so that warnings do not count them.
        place = Path(frame.f_code.co_filename.partition(" (")[0])
        if event == "call" and frame.f_code.co_name != "<module>" and place.is_relative_to(ROOT):
            found.setdefault(place.relative_to(ROOT).as_posix())

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        walk()
    finally:
        sys.setprofile(before)
    return list(found)


def without_foundations(files):
    return [file for file in files if file.partition("/")[0] not in FOUNDATIONS]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__name__)
def test_a_fit_goes_through_few_files(walk):
    walk()  # what is imported or compiled at the first call is not part of it
    files = without_foundations(files_of(walk))
    assert len(files) <= WALKS[walk], files


def test_the_counter_sees_what_runs():
    from pluri.components.k_means import filled

    assert files_of(lambda: filled(np.array([[1.0, np.nan]]))) == ["components/k_means.py"]
    assert without_foundations(["engine/batches.py", "inference/em.py"]) == ["inference/em.py"]


if __name__ == "__main__":
    for walk in WALKS:
        walk()
        print(walk.__name__, *files_of(walk), sep="\n  ")
