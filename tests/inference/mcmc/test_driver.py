"""The chain driver: reproducible, parallel, thinned, interrupted, resumed, saved."""

import os
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.inference.mcmc import workers


def normal(x):
    return -0.5 * x @ x, -x


CHAINS_AND_JOBLIB = """
import numpy as np
from joblib import Parallel, delayed
from pluri.inference import mcmc
from pluri.inference.mcmc import workers

workers.can_fork = lambda: False
for _ in range(2):  # chains before joblib has workers, and after
    trace = mcmc.sample(
        mcmc.Slice(lambda x: -0.5 * float(x @ x)), np.zeros(2),
        n_draws=500, n_warmup=10, n_chains=2, n_jobs=2, random_state=0,
    )
    print(trace.n_chains, Parallel(n_jobs=2)(delayed(abs)(-number) for number in range(3)))
"""


def test_chains_in_processes_leave_the_workers_of_joblib_whole():
    """There is one pool of workers in a process, so it is tried in a process of its own."""
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", CHAINS_AND_JOBLIB], capture_output=True, text=True)
    assert told.stdout.splitlines() == ["2 [0, 1, 2]"] * 2, told.stderr


class Counted(NamedTuple):
    position: np.ndarray
    log_density: float = 0.0


@dataclass(frozen=True)
class Counter:
    """Not random: counts its steps, and can stop the program at one of them."""

    interrupt_at: int = -1
    dictionary: bool = False

    def init(self, rng, position):
        return Counted(np.asarray(position, dtype=float))

    def step(self, rng, state):
        if state.position[0] == self.interrupt_at:
            raise KeyboardInterrupt
        return Counted(state.position + 1), {"acceptance": 1.0, "count": state.position[0]}

    def adaptation(self, n_warmup):
        return None


def run(kernel=None, initial=None, **options):
    options = {"n_draws": 40, "n_warmup": 30, "random_state": 0, "warn": False} | options
    return mcmc.sample(
        kernel if kernel is not None else mcmc.NUTS(normal), np.zeros(2) if initial is None else initial, **options
    )


def test_draws_do_not_depend_on_where_chains_run(monkeypatch):
    here = run()
    assert_array_equal(run(n_jobs=2)["x"], here["x"])
    assert_array_equal(run(n_jobs=2, backend="threads")["x"], here["x"])
    monkeypatch.setattr(workers, "can_fork", lambda: False)
    sent = run(n_jobs=2)
    assert_array_equal(sent["x"], here["x"])
    assert_array_equal(mcmc.resume(sent, 10, warn=False)["x"], mcmc.resume(here, 10, warn=False)["x"])


def test_forked_chains_go_on_like_those_here():
    forked = run(n_jobs=2)
    assert_array_equal(mcmc.resume(forked, 20, warn=False)["x"], run(n_draws=60)["x"])


def test_chains_have_different_streams_and_a_seed_repeats_them():
    first, again, other = run(), run(), run(random_state=1)
    assert_array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])
    assert len(np.unique(first["x"][:, 0, 0])) == 4


def test_warm_up_is_left_out_and_thinning_counts_steps():
    trace = run(Counter(), np.zeros(1), n_draws=5, n_warmup=3, thin=4, n_chains=1)
    assert_array_equal(trace["x"][0, :, 0], [7, 11, 15, 19, 23])
    assert_allclose(trace.stats["count"][0], np.array([7, 11, 15, 19, 23]) - 2.5)  # mean over the steps between


def test_record_chooses_what_is_kept():
    trace = run(
        Counter(), np.zeros(2), n_warmup=0, record=lambda x: {"first": x[0], "both": x, "square": np.outer(x, x)}
    )
    assert trace["first"].shape == (4, 40)
    assert trace["both"].shape == (4, 40, 2)
    assert trace["square"].shape == (4, 40, 2, 2)


@pytest.mark.parametrize(
    "initial", [np.arange(4.0)[:, None], [np.array([i]) for i in range(4)], lambda rng: rng.normal(size=1)]
)
def test_each_chain_may_have_its_own_beginning(initial):
    trace = run(Counter(), initial, n_warmup=0, n_draws=1)
    assert len(np.unique(trace["x"])) == 4


def stopped_in_the_second_chain(times):
    """A kernel by which the second of two chains is stopped at its 25th step so many times: the first may be ahead."""
    left = iter([True] * times)

    class Stopped(Counter):
        def step(self, rng, state):
            if state.position[0] == 1025 and next(left, False):
                raise KeyboardInterrupt
            return super().step(rng, state)

    return Stopped(), [np.array([0.0]), np.array([1000.0])]


def test_ctrl_c_keeps_the_draws_made_and_evens_out_the_chains():
    with on_interrupt("keep"), pytest.warns(match="interrupted"):
        trace = run(*stopped_in_the_second_chain(1), n_chains=2, n_warmup=0, n_draws=10**4)
    assert trace.interrupted
    assert trace.n_draws >= 25
    assert_array_equal(trace["x"][0, :, 0], np.arange(1, trace.n_draws + 1))


@pytest.mark.parametrize("choice", ["keep", "raise"])
def test_a_second_ctrl_c_is_not_held(choice):
    with on_interrupt(choice), pytest.raises(KeyboardInterrupt) as stop:
        run(*stopped_in_the_second_chain(2), n_chains=2, n_warmup=0, n_draws=10**4)
    assert not hasattr(stop.value, "result")


@pytest.mark.parametrize("thin", [1, 3])
def test_ctrl_c_while_a_draw_is_recorded_undoes_its_step(thin):
    pressed = iter([True])

    def record(x):
        if x[0] == 1000 + 24 * thin and next(pressed, False):
            raise KeyboardInterrupt
        return {"x": x}

    starts = [np.array([0.0]), np.array([1000.0])]
    with on_interrupt("keep"), pytest.warns(match="interrupted"):
        trace = run(Counter(), starts, n_chains=2, n_warmup=0, n_draws=10**4, thin=thin, record=record)
    assert trace.n_draws >= 24
    assert_array_equal(trace["x"][:, :, 0] - [[0.0], [1000.0]], [thin * np.arange(1, trace.n_draws + 1)] * 2)


def test_ctrl_c_before_the_first_draw_goes_through():
    with pytest.raises(KeyboardInterrupt):
        run(Counter(interrupt_at=5), np.zeros(1), n_warmup=100)


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"n_jobs": 2}, {"n_jobs": 2, "backend": "threads"}])
def test_a_real_signal_keeps_the_draws(options):
    def slow(x):
        return -0.5 * x @ x, -x

    def press_soon(trace):
        if not timer.ident:
            timer.start()

    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    kernel = mcmc.NUTS(slow)
    with on_interrupt("keep"), pytest.warns(match="interrupted"):
        trace = run(kernel, n_draws=10**6, n_warmup=20, callback=press_soon, **options)
    timer.join()
    assert trace.interrupted
    assert 0 < trace.n_draws < 10**6


def test_resume_is_as_if_it_had_never_stopped():
    whole = run(n_draws=60)
    parts = mcmc.resume(mcmc.resume(run(n_draws=20), 15, warn=False), 25, warn=False)
    assert_array_equal(parts["x"], whole["x"])
    for name in whole.stats:
        assert_array_equal(parts.stats[name], whole.stats[name])


def test_resume_from_a_file_is_exact_too(tmp_path):
    path = tmp_path / "trace.npz"
    run(n_draws=20).save(path)
    loaded = mcmc.Trace.load(path)
    with pytest.raises(ValueError, match="kernel must be given"):
        mcmc.resume(loaded, 5)
    assert_array_equal(mcmc.resume(loaded, 40, kernel=mcmc.NUTS(normal), warn=False)["x"], run(n_draws=60)["x"])


def test_saved_traces_come_back_whole(tmp_path):
    trace = run()
    trace.save(tmp_path / "a.npz")
    back = mcmc.Trace.load(tmp_path / "a.npz")
    assert_array_equal(back["x"], trace["x"])
    assert set(back.stats) == set(trace.stats)
    assert (back.n_warmup, back.thin, back.interrupted) == (30, 1, False)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("content", [b"", b"no trace", b"PK\x03\x04broken"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a trace"):
        mcmc.Trace.load(path)


def test_a_file_with_pickled_objects_is_refused(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, **{"about.json": np.array([object()], dtype=object)}, allow_pickle=True)
    with pytest.raises(ValueError, match="not a trace"):
        mcmc.Trace.load(path)


def test_a_checkpoint_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("pluri.inference.mcmc.rounds.CHECKPOINT_SECONDS", 0.0)
    run(Counter(), np.zeros(1), n_warmup=0, n_draws=200, checkpoint=tmp_path / "c.npz")
    assert mcmc.Trace.load(tmp_path / "c.npz").n_draws == 200


def test_a_callback_ends_the_run():
    trace = run(Counter(), np.zeros(1), n_warmup=0, n_draws=10**6, callback=lambda trace: trace.n_draws > 10)
    assert 10 < trace.n_draws < 10**6
    assert not trace.interrupted


def test_progress_is_shown_on_stderr(capsys):
    run(verbose=2)
    assert "iteration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "n_draws"),
        ({"n_draws": 2.5}, "n_draws"),
        ({"n_warmup": -1}, "n_warmup"),
        ({"n_chains": 0}, "n_chains"),
        ({"thin": 0}, "thin"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"backend": "cloud"}, "backend"),
        ({"initial": np.zeros((3, 2))}, "each of 4 chains"),
        ({"initial": [np.zeros(2)] * 3}, "each of 4 chains"),
        ({"initial": "start"}, "initial"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(**options)


def test_an_error_in_another_process_reaches_the_caller():
    def failing(x):
        if x[0] > 0.5:
            raise ZeroDivisionError("at the wall")
        return -0.5 * x @ x, -x

    with pytest.raises(ZeroDivisionError, match="at the wall"):
        run(mcmc.NUTS(failing), n_jobs=2)


def test_an_error_in_the_target_brings_the_draws_along():
    @dataclass(frozen=True)
    class Failing(Counter):
        def step(self, rng, state):
            if state.position[0] == 50:
                raise ZeroDivisionError
            return super().step(rng, state)

    with pytest.raises(ZeroDivisionError) as caught:
        run(Failing(), np.zeros(1), n_warmup=0, n_draws=100)
    assert 0 < caught.value.trace.n_draws <= 50
    assert "attribute `trace`" in caught.value.__notes__[0]


def test_a_trace_can_go_on_with_another_copy_of_its_kernel():
    first = run(n_draws=20)
    assert_array_equal(mcmc.resume(first, 20, kernel=mcmc.NUTS(normal), warn=False)["x"], run(n_draws=40)["x"])


def test_problems_are_warned_of_in_words():
    rng = np.random.default_rng(0)
    apart = mcmc.Trace({"mu": rng.normal(size=(4, 500)) + np.arange(4)[:, None]})
    assert "chains disagree about 1 number: R-hat of mu" in " ".join(apart.diagnose())
    slow = mcmc.Trace({"mu": np.cumsum(rng.normal(size=(1, 500)), axis=1)})
    assert "effective draws" in " ".join(slow.diagnose())
    still = mcmc.Trace({"mu": np.zeros((4, 100))})
    assert "Nothing moved" in " ".join(still.diagnose())
    broken = mcmc.Trace({"mu": np.full((4, 100), np.nan)})
    assert "not finite" in " ".join(broken.diagnose())
    fine = mcmc.Trace({"mu": rng.normal(size=(4, 1000))})
    assert fine.diagnose() == []


def test_a_flat_target_is_warned_of_where_no_kernel_can_know():
    kernel = mcmc.MetropolisHastings(lambda x: 0.0, lambda rng, x: x + rng.normal(size=x.shape))
    assert "flat target" in " ".join(run(kernel).diagnose())


def test_a_good_run_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(n_draws=500, n_warmup=300, warn=True)


def test_summary_prints_a_table_and_gives_columns_and_rows():
    summary = run(n_draws=100).summary()
    assert "r_hat" in str(summary)
    assert summary.names == ("x[0]", "x[1]")
    assert summary["mean"].shape == (2,)
    assert summary["x[1]"][0] == summary["mean"][1]
    with pytest.raises(KeyError, match="neither"):
        summary["y"]
    assert list(summary.to_frame().columns) == list(summary)


def test_a_trace_whose_kernel_learned_nothing_can_be_saved_and_resumed(tmp_path):
    kernel = mcmc.NUTS(normal)  # step_size and inverse_mass stay None without a warm-up
    path = tmp_path / "trace.npz"
    first = mcmc.sample(kernel, np.zeros(2), n_draws=20, n_warmup=0, random_state=0, warn=False, checkpoint=path)
    whole = mcmc.sample(kernel, np.zeros(2), n_draws=30, n_warmup=0, random_state=0, warn=False)
    assert_array_equal(mcmc.resume(mcmc.Trace.load(path), 10, kernel=kernel, warn=False)["x"], whole["x"])
    assert_array_equal(mcmc.resume(first, 10, warn=False)["x"], whole["x"])


def test_a_trace_is_not_resumed_with_other_variables():
    trace = mcmc.sample(
        mcmc.NUTS(normal), np.zeros(2), n_draws=10, n_warmup=20, random_state=0, warn=False,
        record=lambda x: {"first": x[0]},
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"record must keep .*first \(\).* it would keep both \(2,\)"):
        mcmc.resume(trace, 5, record=lambda x: {"both": x}, warn=False)
    with pytest.raises(ValueError, match="n_draws must be an integer"):
        mcmc.resume(trace, -1, record=lambda x: {"first": x[0]})


def test_ctrl_c_between_rounds_keeps_the_draws():
    def callback(trace):
        if trace.n_draws > 10:
            raise KeyboardInterrupt

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after"):
        trace = mcmc.sample(
            mcmc.NUTS(normal), np.zeros(1), n_draws=5000, n_warmup=10, random_state=0, warn=False, callback=callback
        )
    assert trace.interrupted
    assert trace.n_draws > 10
    assert mcmc.resume(trace, 5, warn=False).n_draws == trace.n_draws + 5


def test_an_error_of_the_density_leaves_the_draws_so_far_in_the_checkpoint(tmp_path):
    calls = 0

    def fails_late(x):
        nonlocal calls
        calls += 1
        if calls > 5000:
            raise ArithmeticError("late")
        return normal(x)

    path = tmp_path / "trace.npz"
    with pytest.raises(ArithmeticError, match="late"):
        mcmc.sample(
            mcmc.NUTS(fails_late), np.zeros(1), n_draws=50_000, n_warmup=20, n_chains=2, random_state=0, warn=False,
            checkpoint=path,
        )  # fmt: skip
    assert mcmc.Trace.load(path).n_draws > 0


def test_a_damaged_file_is_called_so(tmp_path):
    path, damaged = tmp_path / "trace.npz", tmp_path / "damaged.npz"
    mcmc.sample(mcmc.NUTS(normal), np.zeros(2), n_draws=20, n_warmup=20, random_state=0, warn=False).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    messages = set()
    for place in rng.integers(len(content), size=100):
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :])
        try:
            mcmc.Trace.load(damaged)  # some bytes do not matter
        except ValueError as error:
            messages.add(str(error))
    assert messages == {f"{damaged} is not a trace that pluri saved"}


def test_few_draws_are_a_problem_of_their_own():
    trace = mcmc.sample(mcmc.NUTS(normal), np.zeros(1), n_draws=3, n_warmup=20, random_state=0, warn=False)
    assert any("only 3 draws" in problem for problem in trace.diagnose())


def test_an_error_that_cannot_be_sent_is_told_by_its_text():
    class Awkward(Exception):
        def __init__(self, code, text):
            super().__init__(f"{code}: {text}")

    def fails(x):
        if abs(x[0]) > 0.5:
            raise Awkward(7, "too far")
        return normal(x)

    with pytest.raises(RuntimeError, match=r"Awkward.*7: too far"):
        mcmc.sample(mcmc.NUTS(fails), np.zeros(1), n_draws=50, n_warmup=0, n_jobs=2, random_state=0, warn=False)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back here")
def test_ctrl_c_does_not_tear_an_answer_of_a_worker():
    class Pipe:
        def recv_bytes(self):
            signal.raise_signal(signal.SIGINT)
            return b"whole"

    answers = [None]
    with pytest.raises(KeyboardInterrupt):
        workers._receive(Pipe(), answers, 0)
    assert answers == [b"whole"]


def test_an_interrupted_warmup_can_leave_one_draw():
    with pytest.raises(KeyboardInterrupt):
        mcmc.sample(Counter(5), np.zeros(1), n_draws=3, n_warmup=10, n_chains=2, random_state=0, warn=False)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 1 draws"):
        trace = mcmc.sample(
            Counter(5), np.zeros(1), n_draws=3, n_warmup=10, n_chains=2, random_state=0, warn=False,
            draw_if_interrupted=True,
        )  # fmt: skip
    assert trace.interrupted
    assert trace["x"].shape == (2, 1, 1)
    assert trace.stats["log_density"].shape == (2, 1)
    assert trace["x"].max() == 5


@pytest.mark.parametrize("stop_at", [4, 33, 1000])
def test_on_step_sees_every_step_of_the_chains_and_may_end_them(stop_at):
    """Chains of 30 steps of warm-up and 40 draws: a stop in the warm-up leaves where the chains are then."""
    seen = []

    def on_step(state):
        seen.append((state.iteration, state.max_iter, state.reason))
        return state.iteration == stop_at

    trace = run(Counter(), np.zeros(1), n_chains=2, on_step=on_step)
    n_steps = min(stop_at, 70)
    assert seen[-1] == (n_steps, 70, "max_iter" if n_steps == 70 else None)
    assert [iteration for iteration, _, _ in seen] == list(range(1, n_steps + 1))
    assert_array_equal(trace["x"][:, -1, 0], [n_steps, n_steps])
    assert trace.n_draws == max(n_steps - 30, 1)
    assert not trace.interrupted
