"""Results that can be looked at, and compiled functions that stay inside their arrays."""

import numpy as np
import pytest

from pluri.dynamics import LinearGaussianModel, kalman_filter, make_maneuvering_target, rao_blackwell_filter
from pluri.inference import smc


def initial(rng, parameters, state):
    state[0] = rng.standard_normal()


def two_initial(rng, parameters, state):
    state[0] = rng.standard_normal()
    state[1] = 0.0


def transition(rng, t, parameters, old, new):
    new[0] = parameters[0] * old[0] + rng.standard_normal()


def log_density(t, parameters, observation, state):
    return -0.5 * (observation[0] - state[0]) ** 2


def test_a_compiled_model_does_not_write_beyond_its_state():
    with pytest.raises(ValueError, match=r"initial went beyond an array .*n_dims=1"):
        smc.CompiledModel(two_initial, transition, log_density, parameters=[0.9])


def test_a_compiled_model_does_not_read_beyond_its_parameters():
    with pytest.raises(ValueError, match=r"transition went beyond an array .*0 parameters"):
        smc.CompiledModel(initial, transition, log_density)


def test_what_only_python_refuses_is_left_to_the_compiled_functions():
    def divides(rng, t, parameters, old, new):
        new[0] = 1.0 / float(old[0] * 0.0)

    smc.CompiledModel(initial, divides, log_density)


def test_results_have_a_representation_of_one_line():
    model = LinearGaussianModel(0.9, 1.0, 1.0, 0.25, 0.0, 5.0)
    _, seen = model.sample(30, random_state=0)
    cloud, exact = smc.particle_filter(model, seen, n_particles=50, random_state=0), kalman_filter(model, seen)
    assert repr(cloud) == f"<ParticleFilterResult: 30 steps, 50 particles, log evidence {cloud.log_evidence:.4f}>"
    assert repr(exact) == f"<KalmanResult: 30 steps, 1 dimensions, log evidence {exact.log_evidence:.4f}>"
    target = make_maneuvering_target()
    tracked = rao_blackwell_filter(target, target.sample(5, random_state=0)[1], n_particles=20, random_state=0)
    assert repr(tracked).startswith("<RaoBlackwellResult: 5 steps, 20 particles, log evidence")
    assert np.isfinite(tracked.log_evidence)
