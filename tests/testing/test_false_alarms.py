import numpy as np
import pytest
from scipy.stats import binom

from pluri.testing import decide, holm


def test_holm_equals_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.random(rng.integers(1, 8)) ** 3
        order = np.argsort(p)
        expected = np.empty_like(p)
        for rank, index in enumerate(order):
            expected[index] = min(1.0, max((len(p) - r) * p[order[r]] for r in range(rank + 1)))
        np.testing.assert_allclose(holm(p), expected)


@pytest.mark.parametrize("max_stages", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_uniform_p_values_fail_as_rarely_as_stated(alpha, max_stages):
    """Twenty thousand sequential tests: more failures than the limit have probability below 1e-6."""
    rng = np.random.default_rng(1)
    n = 20_000
    failures = sum(
        not decide(lambda n: (rng.random(), None), 1, alpha=alpha, max_stages=max_stages)[0].passed for _ in range(n)
    )
    assert failures <= binom.isf(1e-6, n, alpha)
    assert failures >= binom.ppf(1e-6, n, alpha / max_stages)  # and it does fail


def test_conservative_p_values_fail_no_more_often():
    """A p-value that is 0.069 or 1 sits where the second stage begins; the bound must hold there too."""
    rng = np.random.default_rng(2)
    alpha, stages = 0.1, 3
    middle = (alpha / stages) ** (1 / stages)

    def lumpy(n):
        u = rng.random()
        return (middle if u < middle else 1.0), None

    n = 20_000
    failures = sum(not decide(lumpy, 1, alpha=alpha, max_stages=stages)[0].passed for _ in range(n))
    assert failures <= binom.isf(1e-6, n, alpha)


def test_doubtful_results_are_looked_at_again_with_more_replications():
    seen = []

    def run(n):
        seen.append(n)
        return 0.01, "evidence"

    decision, evidence = decide(run, 100, alpha=1e-3, max_stages=3, growth=4)
    assert seen == [100, 400, 1600]
    assert not decision.passed  # 0.01 is below the limit of the last stage
    assert evidence == "evidence"
    assert [stage.fail_at for stage in decision.stages] == pytest.approx([3.33e-4, 4.81e-3, 0.0693], rel=1e-2)


def test_clear_results_end_at_once():
    assert len(decide(lambda n: (0.5, None), 1)[0].stages) == 1
    assert len(decide(lambda n: (1e-9, None), 1)[0].stages) == 1
    decision, _ = decide(lambda n: (0.01, None), 1, finished=lambda evidence: True)
    assert decision.passed
    assert len(decision.stages) == 1


@pytest.mark.parametrize("settings", [{"alpha": 0.0}, {"alpha": 2.0}, {"max_stages": 0}, {"growth": 1.5}])
def test_bad_settings_are_refused_by_name(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        decide(lambda n: (0.5, None), 10, **settings)


def test_values_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, 1.5])
