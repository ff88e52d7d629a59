"""Ctrl-C anywhere, then `resume`: bit for bit as if nothing had happened."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.inference.mcmc.chain import memory_of, put_back

RHO = 0.7


class Press:
    """Presses Ctrl-C at one call of a density, wherever that is in a step."""

    def __init__(self, at=-1):
        self.at, self.calls = at, 0

    def __call__(self):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def nuts(press, **settings):
    def value_and_grad(x):
        press()
        return -0.5 * x @ x, -x

    return mcmc.NUTS(value_and_grad, **settings)


def vectorized(press):
    def rows(x):
        press()
        return -0.5 * (x * x).sum(axis=1), -x

    return mcmc.NUTS(rows, vectorized=True)


def without_gradient(kind, press, **settings):
    def log_density(x):
        press()
        return -0.5 * float(x @ x)

    return kind(log_density, **settings)


def gibbs(press):
    def x(rng, position):
        drawn = rng.normal(RHO * position["y"], 1.0)
        press()
        return drawn

    def y(rest):
        return without_gradient(mcmc.RandomWalk, press)

    return mcmc.Gibbs({"x": x, "y": mcmc.Conditional(y)})


def cycle(press):
    return mcmc.KernelCycle([nuts(press), without_gradient(mcmc.Slice, press)])


START = np.array([0.3, -0.2])
KERNELS = {
    "nuts": (nuts, START),
    "dense nuts": (lambda press: nuts(press, metric="dense"), START),
    "vectorized": (vectorized, START),
    "random walk": (lambda press: without_gradient(mcmc.RandomWalk, press), START),
    "component-wise": (lambda press: without_gradient(mcmc.ComponentWise, press), START),
    "slice": (lambda press: without_gradient(mcmc.Slice, press), START),
    "direction": (lambda press: without_gradient(mcmc.Slice, press, mode="direction"), START),
    "gibbs": (gibbs, {"x": 0.0, "y": 0.5}),
    "cycle": (cycle, START),
}


def run(make, start, press, **options):
    options = {"n_draws": 30, "n_warmup": 30, "n_chains": 2, "random_state": 5, "warn": False} | options
    return mcmc.sample(make(press), start, **options)


@pytest.mark.parametrize("thin", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_draws_after_ctrl_c_and_resume_are_those_of_an_uninterrupted_run(name, thin, tmp_path):
    """Twelve places, all over the warm-up and the draws, within steps and within adaptations."""
    make, start = KERNELS[name]
    count = Press()
    run(make, start, count, thin=thin)
    whole = run(make, start, Press(), thin=thin, n_draws=32)
    n_stopped = n_warming = 0
    for at in np.linspace(5, count.calls - 1, 12).astype(int):
        path = tmp_path / f"{at}.npz"
        try:
            with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
                stopped = run(make, start, Press(at), thin=thin, checkpoint=path)
        except KeyboardInterrupt:
            if not path.exists():  # before the first step: there is nothing yet
                continue
            stopped = mcmc.Trace.load(path)
            assert len(stopped) == 0
            n_warming += stopped.warmup_left > 0
        n_stopped += 1
        for trace in (stopped, mcmc.Trace.load(path)):
            resumed = mcmc.resume(trace, 32 - trace.n_draws, kernel=make(Press()), warn=False)
            for variable in whole:
                assert_array_equal(resumed[variable], whole[variable])
            for statistic in whole.stats:
                assert_array_equal(resumed.stats[statistic], whole.stats[statistic])
    assert n_stopped >= 8
    assert n_warming >= 1


def test_a_real_signal_leaves_a_trace_that_resumes_bit_for_bit():
    import os
    import signal
    import threading

    def callback(trace):
        if trace.n_draws > 50 and not timer.ident:
            timer.start()

    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        trace = run(nuts, START, Press(), n_draws=10**6, callback=callback)
    timer.join()
    assert_array_equal(
        mcmc.resume(trace, 20, warn=False)["x"], run(nuts, START, Press(), n_draws=trace.n_draws + 20)["x"]
    )


def test_ctrl_c_in_a_callback_leaves_a_trace_that_resumes_bit_for_bit():
    def callback(trace):
        if trace.n_draws > 10:
            raise KeyboardInterrupt

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        trace = run(nuts, START, Press(), n_draws=10**4, callback=callback)
    assert_array_equal(
        mcmc.resume(trace, 9, warn=False)["x"], run(nuts, START, Press(), n_draws=trace.n_draws + 9)["x"]
    )


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"n_jobs": 2, "backend": "threads"}], ids=["processes", "threads"])
def test_a_warm_up_that_was_interrupted_elsewhere_goes_on(options, tmp_path, monkeypatch):
    """Workers finish their round; what their adaptations know comes back with it."""
    from pluri.inference.mcmc import rounds

    asked = iter([False, False, True])

    def look(self, seconds):
        if next(asked, False):
            raise KeyboardInterrupt
        return False

    path = tmp_path / "trace.npz"
    start, options = {"x": 0.0, "y": 0.5}, {"n_warmup": 400} | options
    monkeypatch.setattr(rounds._Rounds, "look", look)
    with pytest.raises(KeyboardInterrupt):
        run(gibbs, start, Press(), checkpoint=path, **options)
    stopped = mcmc.Trace.load(path)
    assert 0 < stopped.warmup_left < 400
    resumed = mcmc.resume(stopped, 10, kernel=gibbs(Press()), warn=False)
    assert_array_equal(resumed["y"], run(gibbs, start, Press(), n_draws=10, **options)["y"])


def test_resume_of_a_blackjax_trace_says_why_not(tmp_path):
    trace = mcmc.Trace({"x": np.zeros((2, 5))}, origin="sample_blackjax")
    with pytest.raises(ValueError, match=r"a trace of sample_blackjax cannot be resumed: the states .* not kept"):
        mcmc.resume(trace)
    trace.save(tmp_path / "trace.npz")
    with pytest.raises(ValueError, match="sample_blackjax cannot be resumed"):
        mcmc.resume(mcmc.Trace.load(tmp_path / "trace.npz"))
    with pytest.raises(ValueError, match="put together by hand"):
        mcmc.resume(mcmc.Trace({"x": np.zeros((2, 5))}))


def test_a_memory_is_plain_and_can_be_put_back():
    import json

    from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianAdaptation

    kernel, rng = mcmc.NUTS(lambda x: (-0.5 * x @ x, -x)), np.random.default_rng(0)
    first, second = HamiltonianAdaptation(100, "dense", 0.8), HamiltonianAdaptation(100, "dense", 0.8)
    state = kernel.init(rng, START)
    moved = first.start(rng, kernel, state)
    second.start(rng, kernel, state)
    for _ in range(40):
        state, info = moved.step(rng, state)
        moved = first.update(rng, moved, state, info)
    put_back(second, json.loads(json.dumps(memory_of(first))))
    assert memory_of(second) == memory_of(first)
    assert second.finish(moved).step_size == first.finish(moved).step_size
