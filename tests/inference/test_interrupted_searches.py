"""Fits that go through several runs keep the best of them, wherever Ctrl-C comes after the first is under way."""

import numpy as np
import pytest

from pluri import on_interrupt
from pluri.inference import em
from pluri.mixtures import DirichletProcessMixture, GaussianMixture, NonparametricFactorAnalyzerMixture
from pluri.sequences import InfiniteHMM
from pluri.topics import HDPTopicModel


def clusters():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(center, 1.0, size=(30, 2)) for center in ((0, 0), (8, 0), (0, 8), (9, 9))])


def documents():
    rng = np.random.default_rng(0)
    return np.array(
        [rng.multinomial(40, words) for words in rng.dirichlet(np.full(12, 0.2), 3)[rng.integers(3, size=30)]]
    )


SEARCHES = {
    "starts of a Dirichlet process": (DirichletProcessMixture(inference="vb", random_state=0), clusters),
    "starts of an infinite HMM": (InfiniteHMM("diag", inference="vb", random_state=0), clusters),
    "split and merge": (GaussianMixture(4, split_merge=3, random_state=0), clusters),
    "merged topics": (HDPTopicModel(inference="vb", random_state=0), documents),
    "merged factor analysers": (NonparametricFactorAnalyzerMixture(inference="vb", random_state=0), clusters),
}


class Steps:
    """The steps of all runs, counted; Ctrl-C comes in step number `stop`, from 0."""

    def __init__(self, stop=None):
        self.stop, self.beginnings, self.n = stop, [], 0

    def __call__(self, problem, engine, state, *arguments, original=em.step):
        if state.iteration == 0:
            self.beginnings.append(self.n)
        self.n += 1
        if self.n - 1 == self.stop:
            raise KeyboardInterrupt
        return original(problem, engine, state, *arguments)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:interrupted|.*interrupted:UserWarning")
@pytest.mark.parametrize("name", SEARCHES)
def test_ctrl_c_in_the_first_step_of_a_later_run_keeps_the_runs_before(name, monkeypatch):
    model, data = SEARCHES[name]
    X, whole = data(), Steps()
    monkeypatch.setattr(em, "step", whole)
    model.fit(X)
    assert len(whole.beginnings) > 1, "there is one run only: this is no test"
    later = whole.beginnings[1:]
    for stop in sorted({later[0], later[len(later) // 2], later[-1]}):
        steps = Steps(stop)
        monkeypatch.setattr(em, "step", steps)
        with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
            model.fit(X)
        assert steps.n == stop + 1, "work went on after Ctrl-C"
        scores = model.score(X)
        assert np.isfinite(scores)
