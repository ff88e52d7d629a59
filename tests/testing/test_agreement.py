import numpy as np
import pytest
from scipy import stats

from pluri.testing import Comparison, compare_samples
from pluri.testing.agreement import compare_counts, compare_exchangeable, compare_paired, homogeneity
from pluri.testing.comparison import Outcome, SamplerError, overall_p_value
from pluri.testing.quantities import named_scalars, stack, summarising


def by_test(comparisons):
    return {comparison.test: comparison for comparison in comparisons}


def test_location_and_spread_are_those_of_wilcoxon_and_mood():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), rng.normal(0.1, 1.2, size=400)
    found = by_test(compare_samples({"x": x}, {"x": y}))
    wilcoxon = stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=False)
    assert found["location"].p_value == pytest.approx(wilcoxon.pvalue, rel=1e-9)
    assert found["spread"].p_value == pytest.approx(stats.mood(x, y).pvalue, rel=1e-2)
    assert found["ks"].p_value == stats.ks_2samp(x, y).pvalue


def test_ties_share_their_ranks():
    rng = np.random.default_rng(1)
    x, y = rng.poisson(3.0, size=500), rng.poisson(3.2, size=500)
    found = by_test(compare_samples({"x": x}, {"x": y}))
    wilcoxon = stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=False)
    assert found["location"].p_value == pytest.approx(wilcoxon.pvalue, rel=1e-9)


def test_counts_agree_with_scipy():
    rng = np.random.default_rng(2)
    first, second = rng.integers(4, size=300), rng.integers(4, size=500)
    table = np.array([np.bincount(first), np.bincount(second)])
    expected = stats.chi2_contingency(table, correction=False)
    assert homogeneity(first, second, 4) == pytest.approx((expected.statistic, expected.pvalue))
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    counts = rng.multinomial(1000, shares).astype(float)
    expected = stats.chisquare(counts, 1000 * shares)
    assert compare_counts(counts, shares) == pytest.approx((expected.statistic, expected.pvalue))


def test_rare_values_are_pooled():
    shares = np.append(np.full(2, 0.4925), np.full(10, 0.0015))
    counts = np.append([497.0, 493.0], np.ones(10))
    statistic, p_value = compare_counts(counts, shares)
    expected = stats.chisquare([497, 493, 10], [492.5, 492.5, 15])
    assert (statistic, p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert compare_counts(np.array([5.0, 1.0]), np.array([1.0, 0.0])) == (np.inf, 0.0)


@pytest.mark.parametrize("kind", ["normal", "cauchy", "counts", "coin"])
def test_p_values_are_uniform_or_larger(kind):
    """400 comparisons of equal distributions: more below 5 % than the limit have probability below 1e-7 each."""
    rng = np.random.default_rng(3)
    draw = {
        "normal": lambda: rng.normal(size=200),
        "cauchy": lambda: rng.standard_cauchy(200),
        "counts": lambda: rng.poisson(2.0, size=200).astype(float),
        "coin": lambda: (rng.random(200) < 0.1).astype(float),
    }[kind]
    p = np.array(
        [
            [c.p_value for c in compare_samples(*({"x": draw(), "y": rng.normal(size=200)} for _ in range(2)))]
            for _ in range(400)
        ]
    )
    assert ((p < 0.05).sum(axis=0) <= stats.binom.isf(1e-7, 400, 0.05)).all()


def test_paired_p_values_are_uniform_or_larger():
    """As above, for chains that stay where they are seven times in ten."""
    rng = np.random.default_rng(4)
    p = []
    for _ in range(400):
        start, other = rng.exponential(size=(2, 300))
        end = np.where(rng.random(300) < 0.7, start, rng.exponential(size=300))
        comparisons = compare_paired({"x": start}, {"x": end}, {"x": other})
        p.append([c.p_value for c in comparisons + compare_exchangeable({"x": start}, {"x": end})])
    assert ((np.array(p) < 0.05).sum(axis=0) <= stats.binom.isf(1e-7, 400, 0.05)).all()


@pytest.mark.parametrize(
    ("change", "seen_by"),
    [
        (lambda x, y: (x + 0.25, y), "x: location"),
        (lambda x, y: (1.25 * x, y), "x: spread"),
        (lambda x, y: (x, 0.3 * x + np.sqrt(0.91) * y), "x * y: pair"),
    ],
)
def test_each_kind_of_difference_is_seen(change, seen_by):
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(2, 2, 2000))
    comparisons = compare_samples(dict(zip("xy", first)), dict(zip("xy", change(*second))))
    worst = min(comparisons, key=lambda c: c.p_value)
    assert overall_p_value(comparisons) < 1e-6
    assert f"{worst.quantity}: {worst.test}" == seen_by


def test_a_constant_is_no_evidence():
    (only,) = compare_samples({"x": np.ones(50)}, {"x": np.ones(50)})
    assert only.p_value == 1.0


def test_numbers_are_found_in_all_kinds_of_positions():
    value = {"mean": 1.0, "matrix": np.eye(2), "pair": (2.0, np.array([3.0]))}
    assert dict(named_scalars("theta", value)) == {
        "mean": 1.0, "matrix[0,0]": 1.0, "matrix[0,1]": 0.0, "matrix[1,0]": 0.0, "matrix[1,1]": 1.0, "pair0": 2.0,
        "pair1[0]": 3.0,
    }  # fmt: skip
    long = dict(named_scalars("y", np.arange(20.0)))
    assert long == {"mean(y)": 9.5, "mean(y^2)": 123.5, "max(y)": 19.0, "first(y)": 0.0, "last(y)": 19.0}
    assert list(summarising()({"y": 1.0}, 2.0)) == ["y", "y.y"]


def test_bad_statistics_are_refused():
    with pytest.raises(ValueError, match="'b' is not in all"):
        stack([{"a": 1.0}, {"a": 1.0, "b": 2.0}])
    with pytest.raises(ValueError, match="'a' must not be NaN, got 1 of 2"):
        stack([{"a": 1.0}, {"a": np.nan}])
    with pytest.raises(ValueError, match="not made of numbers"):
        dict(named_scalars("theta", "text"))
    with pytest.raises(ValueError, match="nothing to compare"):
        stack([{}])


def test_an_outcome_prints_its_worst_comparisons():
    outcome = Outcome((Comparison("a", "ks", 0.1, 0.5), Comparison("b", "ks", 0.9, 1e-5)), False, 1e-3)
    assert outcome.p_value == 2e-5
    assert str(outcome).splitlines()[0] == "FAILED: corrected p = 2e-05 over 2 comparisons"
    assert str(outcome).splitlines()[3].split() == ["b", "ks", "0.9", "1e-05", "2e-05"]
    with pytest.raises(SamplerError, match="FAILED"):
        outcome.raise_if_failed()
