"""What a newcomer gets wrong first has to be answered in a sentence."""

import numpy as np
import pytest

from pluri.inference import mcmc


def normal(x):
    return -0.5 * x @ x, -x


def scale_density(values):
    return -values["scale"], {"scale": np.array(-1.0)}


SPACE = mcmc.Space(scale=mcmc.Positive())


def test_resume_keeps_what_the_trace_kept():
    kernel = mcmc.NUTS(SPACE.value_and_grad(scale_density))
    settings = {"n_warmup": 100, "n_chains": 2, "record": SPACE.constrain, "random_state": 0, "warn": False}
    first = mcmc.sample(kernel, np.zeros(1), n_draws=20, **settings)
    both = mcmc.resume(first, 20, warn=False)
    whole = mcmc.sample(kernel, np.zeros(1), n_draws=40, **settings)
    np.testing.assert_array_equal(both["scale"], whole["scale"])


def test_a_space_says_that_it_takes_one_vector_at_a_time():
    kernel = mcmc.NUTS(SPACE.value_and_grad(scale_density), vectorized=True)
    with pytest.raises(ValueError, match=r"one vector of 1 entries at a time, got shape .*vectorized=True"):
        mcmc.sample(kernel, np.zeros(1))
    with pytest.raises(ValueError, match=r"got shape \(2,\)"):
        SPACE.density(lambda values: 0.0)(np.zeros(2))


@pytest.mark.parametrize("kernel", [mcmc.NUTS(normal), mcmc.RandomWalk(lambda x: -0.5 * float(x @ x))])
def test_a_dict_as_start_of_a_kernel_for_vectors_points_to_the_space(kernel):
    with pytest.raises(ValueError, match="unconstrain"):
        mcmc.sample(kernel, {"scale": 1.0})


@pytest.mark.parametrize("kernel", [mcmc.NUTS, normal])
def test_what_is_no_kernel_is_named(kernel):
    with pytest.raises(ValueError, match="kernel must be a kernel"):
        mcmc.sample(kernel, np.zeros(2))


@pytest.mark.parametrize(("answer", "match"), [((0.0, np.zeros(2)), "pair"), (None, "got None"), ("high", "got str")])
def test_a_density_that_is_no_number_is_named(answer, match):
    with pytest.raises(ValueError, match=match):
        mcmc.sample(mcmc.RandomWalk(lambda x: answer), np.zeros(2))


def test_a_block_that_forgets_to_return_is_named():
    with pytest.raises(ValueError, match="block 'mean' gave None"):
        mcmc.sample(mcmc.Gibbs({"mean": lambda rng, position: None}), {"mean": 0.0})


def test_elliptical_slice_asks_for_the_prior():
    with pytest.raises(ValueError, match="that of the prior"):
        mcmc.EllipticalSlice(lambda f: 0.0)


@pytest.mark.parametrize("error", [np.linalg.LinAlgError("Singular matrix"), OverflowError("math range error")])
def test_a_density_that_fails_far_out_is_zero_there_but_not_at_the_start(error):
    def value_and_grad(values):
        if values["scale"] > 5:
            raise error
        return -0.1 * values["scale"], {"scale": np.array(-0.1)}

    def log_density(values):
        return value_and_grad(values)[0]

    with pytest.raises(type(error)):
        mcmc.sample(mcmc.NUTS(SPACE.value_and_grad(value_and_grad)), np.array([2.0]))
    with pytest.raises(type(error)):
        mcmc.sample(mcmc.Slice(SPACE.density(log_density)), np.array([2.0]))
    for kernel in (mcmc.NUTS(SPACE.value_and_grad(value_and_grad)), mcmc.Slice(SPACE.density(log_density))):
        trace = mcmc.sample(
            kernel, np.zeros(1), n_draws=200, n_warmup=200, record=SPACE.constrain, random_state=0, warn=False
        )
        assert 4 < trace["scale"].max() <= 5


@pytest.mark.parametrize("answer", [-1.0, (-1.0, np.zeros(1)), (-1.0, -1.0)])
def test_a_space_asks_for_gradients_by_name(answer):
    with pytest.raises(ValueError, match="dict of gradients by name"):
        SPACE.value_and_grad(lambda values: answer)(np.zeros(1))
