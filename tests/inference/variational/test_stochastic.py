"""Stochastic variational inference against batch coordinate ascent, on a Gaussian mixture with unit covariances."""

import numpy as np
import pytest
from scipy import sparse

from pluri import on_interrupt
from pluri.engine import ArraySource, Batch, IterableSource, resolve_engine
from pluri.inference.variational import (
    RobbinsMonro,
    conjugate_coordinate_ascent,
    natural_step,
    stochastic_variational_inference,
)
from pluri.inference.variational.minibatches import Minibatches, minibatches


@pytest.fixture
def X(mixture):
    return mixture.three_groups()


@pytest.fixture
def model(mixture):
    return mixture.UnitMixture(3, 2)


@pytest.fixture
def start(model, X):
    return model.initialize(ArraySource(X), np.random.default_rng(4))


def assert_same(one, other, **tolerance):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], **tolerance)


def test_whole_batches_with_step_one_are_batch_coordinate_ascent(model, X, start):
    rng = np.random.default_rng(0)
    batch = conjugate_coordinate_ascent(model, X, rng=rng, start=start, max_iter=7, tol=-np.inf)
    stochastic = stochastic_variational_inference(
        model, X, rng=rng, start=start, batch_size=None, schedule=RobbinsMonro(0.0), max_iter=7, tol=-1.0
    )
    assert_same(stochastic.params, batch.params, rtol=1e-12)
    np.testing.assert_allclose(stochastic.history.objective, batch.history.objective, rtol=1e-12)


def test_the_target_of_single_rows_is_unbiased(model, X, start):
    X = X[:50]
    whole, elbo = natural_step(model, start, Batch(X), rho=1.0, n_total=50)
    steps = [natural_step(model, start, Batch(X[i : i + 1]), rho=1.0, n_total=50) for i in range(50)]
    mean = {name: np.mean([params[name] for params, _ in steps], axis=0) for name in whole}
    assert_same(mean, whole, rtol=1e-10)
    assert np.isclose(np.mean([bound for _, bound in steps]), elbo, rtol=1e-12)


def test_it_comes_within_one_percent_of_the_batch_bound(model, X, start):
    batch = conjugate_coordinate_ascent(model, X, rng=np.random.default_rng(0), start=start, max_iter=200, tol=1e-9)
    stochastic = stochastic_variational_inference(
        model, X, rng=np.random.default_rng(0), start=start, batch_size=30, max_iter=15, tol=-1.0
    )
    assert abs(stochastic.elbo - batch.objective) < 0.01 * abs(batch.objective)
    assert stochastic.elbo <= batch.objective + 1e-6
    assert (stochastic.n_passes, stochastic.n_steps, len(stochastic.trace)) == (15, 15 * 20, 15)


def test_the_batch_fixed_point_stays_put(model, X, start):
    fixed = conjugate_coordinate_ascent(model, X, rng=np.random.default_rng(0), start=start, max_iter=500, tol=1e-12)
    moved, _ = natural_step(model, fixed.params, Batch(X), rho=0.3, n_total=len(X))
    assert_same(moved, fixed.params, rtol=1e-5)


def test_minibatches_are_a_permutation_of_the_rows():
    rows = np.arange(10.0)[:, None]
    seen = [batch.X.ravel() for batch in minibatches(rows, 3, np.random.default_rng(0))]
    assert [len(part) for part in seen] == [3, 3, 3, 1]
    assert sorted(np.concatenate(seen)) == rows.ravel().tolist()
    again = [batch.X.ravel() for batch in minibatches(rows, 3, np.random.default_rng(1))]
    assert not np.array_equal(np.concatenate(seen), np.concatenate(again))


def test_the_batches_of_a_source_each_come_once_in_random_order():
    source = ArraySource(np.arange(100.0)[:, None], batch_size=2)
    seen = np.concatenate([batch.X.ravel() for batch in minibatches(source, None, np.random.default_rng(0))])
    assert sorted(seen) == list(range(100))
    assert not np.array_equal(seen, np.arange(100))


def test_arrays_files_and_sparse_matrices_serve_alike(model, X, start):
    batch = conjugate_coordinate_ascent(model, X, rng=np.random.default_rng(0), start=start, max_iter=200, tol=1e-9)
    stream = IterableSource(lambda: (Batch(part) for part in np.array_split(X, 20)))
    for data in (ArraySource(X, batch_size=30), stream):
        result = stochastic_variational_inference(
            model,
            data,
            rng=np.random.default_rng(1),
            start=start,
            max_iter=10,
            tol=-1.0,
            engine=resolve_engine(n_jobs=2),
        )
        assert abs(result.elbo - batch.objective) < 0.01 * abs(batch.objective)


def test_sparse_rows_reach_the_model_as_they_are(model, X, start):
    kinds = []

    class Spy(type(model)):
        def local_step(self, batch, q):
            kinds.append(type(batch.X))
            return super().local_step(Batch(batch.X.toarray()), q)

    matrix = sparse.csr_array(X)
    result = stochastic_variational_inference(
        Spy(3, 2), matrix, rng=np.random.default_rng(1), start=start, batch_size=100, max_iter=2
    )
    dense = stochastic_variational_inference(
        model, X, rng=np.random.default_rng(1), start=start, batch_size=100, max_iter=2
    )
    assert set(kinds) == {type(matrix)}
    assert_same(result.params, dense.params, rtol=1e-10)


def test_it_stops_when_the_bound_settles_or_the_callback_says_so(model, X, start):
    options = {"start": start, "batch_size": 60, "max_iter": 50}
    settled = stochastic_variational_inference(model, X, rng=np.random.default_rng(0), tol=1e-3, **options)
    assert settled.converged
    assert abs(settled.trace[-1] - settled.trace[-2]) < 1e-3 * abs(settled.trace[-1])
    told = stochastic_variational_inference(
        model, X, rng=np.random.default_rng(0), on_iteration=lambda state: state.iteration == 2, **options
    )
    assert (told.reason, told.n_passes) == ("stopped", 2)


def test_without_evaluation_the_bound_is_the_last_estimate(model, X, start):
    result = stochastic_variational_inference(
        model, X, rng=np.random.default_rng(0), start=start, batch_size=60, max_iter=3, tol=None
    )
    assert (result.trace, result.reason) == ([], "max_iter")
    assert result.elbo == result.history.objective[-1]


def test_ctrl_c_keeps_the_steps_done(model, X, start):
    class Interrupted(type(model)):
        calls = 0

        def local_step(self, batch, q):
            self.calls += 1
            if self.calls == 5:
                raise KeyboardInterrupt
            return super().local_step(batch, q)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 4 steps"):
        result = stochastic_variational_inference(
            Interrupted(3, 2), X, rng=np.random.default_rng(0), start=start, batch_size=10
        )
    assert result.interrupted
    assert result.n_steps == 4
    params, rng = start, np.random.default_rng(0)
    for t, batch in zip(range(1, 5), minibatches(X, 10, rng)):
        params, _ = natural_step(model, params, batch, rho=RobbinsMonro()(t), n_total=len(X))
    assert_same(result.params, params, rtol=1e-14)


def test_step_sizes_satisfy_the_robbins_monro_conditions():
    for decay in (0.6, 0.7, 1.0):
        rho = np.array(list(map(RobbinsMonro(decay, 5.0), range(1, 200_000))))
        assert (np.diff(rho) < 0).all()
        assert rho[100_000:].sum() > 0.5
        assert (rho[100_000:] ** 2).sum() < 0.2
    assert RobbinsMonro(1.0, 0.0)(1) == 1.0


@pytest.mark.parametrize("decay", [0.5, 0.3, 1.1, -1.0, np.nan, "fast"])
def test_a_decay_that_breaks_them_is_refused(decay):
    with pytest.raises(ValueError, match=r"decay must lie in \(0.5, 1\]"):
        RobbinsMonro(decay)


def test_constant_steps_need_the_whole_data_set(model, X):
    with pytest.raises(ValueError, match="unless a minibatch has all 600 rows"):
        stochastic_variational_inference(model, X, rng=np.random.default_rng(0), schedule=RobbinsMonro(0.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": np.zeros(3)}, "data must be a Source or have 2 dimensions"),
        ({"data": np.zeros((0, 2))}, "at least one row"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1 or None, got 0"),
        ({"max_iter": 0}, "max_iter"),
        ({"data": Minibatches(np.zeros((3, 2)), n_total=-1.0)}, "n_total must be finite and positive"),
        ({"tol": "small"}, "tol must be a number or None"),
    ],
)
def test_bad_arguments_are_refused(model, X, options, message):
    data = options.pop("data", X)
    start = model.global_prior()
    with pytest.raises(ValueError, match=message):
        stochastic_variational_inference(model, data, rng=np.random.default_rng(0), start=start, **options)


def test_statistics_with_other_names_are_refused(model, X):
    class Misnamed(type(model)):
        def local_step(self, batch, q):
            return {"counts": np.zeros(3)}, 0.0

    with pytest.raises(ValueError, match="statistics named"):
        stochastic_variational_inference(Misnamed(3, 2), X, rng=np.random.default_rng(0))
