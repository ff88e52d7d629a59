"""Ctrl-C: what was reached is kept, then the interrupt goes on; an option ends it there; a second one ends at once."""

import ast
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import pluri
from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.mixtures import DynamicMeans, GaussianMixture
from pluri.sequences import GaussianHMM, HMMSearchCV
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted, held, hold, holding, interruptible, kept

ROOT = Path(pluri.__file__).parent
#: Handlers that only delay Ctrl-C until a step under way is done, and tell whoever called them.
DELAYS = {("inference/mcmc/chain.py", "advance")}
#: Commands that serve until Ctrl-C, or go on at their prompt: it is their usual end, and there is no caller to tell.
SERVES = {
    ("cli/labelling/command.py", "_serve"),
    ("cli/neurons/command.py", "_serve"),
    ("cli/neurons/prompt.py", "take_commands"),
}


def press():
    signal.raise_signal(signal.SIGINT)


class Steps(Estimator):
    """Counts steps; Ctrl-C comes at some of them, and at the storing if asked for."""

    def __init__(self, at=(3,), at_storing=False, steps=5):
        self.at = at
        self.at_storing = at_storing
        self.steps = steps

    def fit(self, X=None, y=None):
        done = 0
        try:
            for done in range(self.steps):
                if done in self.at:
                    press()
        except KeyboardInterrupt as stop:
            if not done:
                raise
            hold(stop, f"interrupted after {done} steps, which are kept")
        self.half_ = True
        if self.at_storing:
            press()
        self.n_steps_ = done
        return self


class Several(Estimator):
    """An estimator made of others, which knows nothing of Ctrl-C."""

    def __init__(self, parts=()):
        self.parts = parts

    def fit(self, X=None, y=None):
        self.fitted_ = []
        for part in self.parts:
            self.fitted_.append(clone(part).fit(X))
        return self


# One estimator


def test_what_was_reached_is_kept_and_the_interrupt_goes_on():
    model = Steps()
    with pytest.raises(KeyboardInterrupt, match="interrupted after 3 steps, which are kept") as stop:
        model.fit()
    assert type(stop.value) is KeyboardInterrupt  # what a shell sees depends on it
    assert stop.value.result is model
    assert model.n_steps_ == 3


def test_with_nothing_to_keep_the_estimator_is_as_it_was():
    model = Steps(at=()).fit()
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt) as stop:
        model.set_params(at=(0,)).fit()
    assert getattr(stop.value, "result", None) is None
    assert vars(model) == before | {"at": (0,)}


@pytest.mark.parametrize("choice", ["raise", "keep"])
def test_a_second_ctrl_c_ends_at_once_even_while_the_best_is_stored(choice):
    model = Steps(at_storing=True)
    with on_interrupt(choice), pytest.raises(KeyboardInterrupt) as stop:
        model.fit()
    assert not hasattr(stop.value, "result")
    assert not hasattr(model, "half_")


def test_a_first_ctrl_c_while_the_result_is_stored_leaves_nothing_half_fitted():
    model = Steps(at=(), at_storing=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit()
    assert not hasattr(model, "half_")


def test_storing_that_fails_on_what_was_reached_is_still_an_interrupt():
    class Picky(Steps):
        def fit(self, X=None, y=None):
            super().fit(X)
            if self.n_steps_ < 4:
                raise ValueError("too few steps")
            return self

    model = Picky()
    with on_interrupt("keep"), pytest.raises(KeyboardInterrupt, match=r"Picky\.fit was interrupted before there was"):
        model.fit()
    assert not hasattr(model, "n_steps_")


def test_a_fit_that_is_not_interrupted_fails_as_ever():
    class Failing(Estimator):
        def fit(self, X=None, y=None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Failing().fit()


# The option


def test_keep_returns_with_a_warning_that_names_the_line_of_the_caller():
    with on_interrupt("keep"), pytest.warns(UserWarning, match="after 3 steps") as told:
        model = Steps().fit()
    assert model.n_steps_ == 3
    assert told[0].filename == __file__


def test_other_warnings_of_a_fit_name_the_line_of_the_caller_too():
    with pytest.warns(ConvergenceWarning) as told:
        GaussianMixture(2, max_iter=1, tol=0.0, random_state=0).fit(np.random.default_rng(0).normal(size=(50, 1)))
    assert told[0].filename == __file__


def test_the_option_is_for_a_block_and_its_thread_or_for_the_program():
    def elsewhere():
        try:
            Steps_in_a_thread().fit()
        except KeyboardInterrupt:
            raised.append(1)

    class Steps_in_a_thread(Steps):
        def fit(self, X=None, y=None):
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as stop:
                hold(stop)
            return self

    raised = []
    with on_interrupt("keep"):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert raised
    with pytest.raises(KeyboardInterrupt):
        Steps().fit()
    try:
        on_interrupt("keep")
        with pytest.warns(UserWarning, match="interrupted"):
            Steps().fit()
        with on_interrupt("raise"), pytest.raises(KeyboardInterrupt):
            Steps().fit()
        with pytest.warns(UserWarning, match="interrupted"):
            Steps().fit()
    finally:
        on_interrupt("raise")


@pytest.mark.parametrize("choice", ["Keep", None, True])
def test_another_choice_is_refused(choice):
    with pytest.raises(ValueError, match=r"choice must be 'raise' or 'keep', got"):
        on_interrupt(choice)


# Work within work


@pytest.mark.parametrize("choice", ["raise", "keep"])
def test_an_estimator_made_of_others_stops_as_a_whole_and_is_not_left_half_fitted(choice):
    model = Several([Steps(at=()), Steps(), Steps(at=())])
    with on_interrupt(choice), pytest.raises(KeyboardInterrupt, match=r"Several\.fit was interrupted before") as stop:
        model.fit()
    assert stop.value.result is None
    assert not hasattr(model, "fitted_")


def test_a_plain_function_gives_what_it_has_with_the_exception():
    kernel = mcmc.RandomWalk(lambda x: -0.5 * x @ x)

    def tired(trace):
        if trace.n_draws >= 5:
            press()

    with pytest.raises(KeyboardInterrupt, match="draws of each chain; they are kept") as stop:
        mcmc.sample(kernel, np.zeros(1), n_warmup=0, callback=tired, random_state=0)
    assert stop.value.result.interrupted
    assert stop.value.result.n_draws >= 5


def test_nothing_further_begins_when_an_interrupt_is_held():
    begun = []

    @interruptible
    def inner(number):
        begun.append(number)
        try:
            press()
        except KeyboardInterrupt as stop:
            hold(stop)
        return number

    @interruptible
    def outer():
        found = []
        try:
            for number in range(3):
                found.append(inner(number))
        except KeyboardInterrupt as stop:
            hold(stop)
            kept(f"{len(found)} are kept")
        assert held()
        return found

    with pytest.raises(KeyboardInterrupt, match="1 are kept") as stop:
        outer()
    assert stop.value.result == begun == [0]
    assert not held()


def test_a_loop_outside_of_any_marked_function_does_not_swallow_ctrl_c():
    def plain():
        try:
            press()
        except KeyboardInterrupt as stop:
            hold(stop)

    with pytest.raises(KeyboardInterrupt):
        plain()


@pytest.mark.filterwarnings("ignore")
def test_a_search_whose_last_fit_is_interrupted_keeps_the_search(monkeypatch):
    X = [np.random.default_rng(n).normal(size=(20, 1)) for n in range(4)]
    fit = GaussianHMM.fit

    def pressed(self, X, *args, **kwargs):
        if len(X) == 4:  # the fit to all sequences
            try:
                press()
            except KeyboardInterrupt as stop:
                hold(stop, "pressed")
        return fit.__wrapped__(self, X, *args, **kwargs)

    monkeypatch.setattr(GaussianHMM, "fit", interruptible(method=True)(pressed))
    monkeypatch.setattr("pluri.sequences.fitting.expectation_maximization", unmarked_em())
    search = HMMSearchCV(GaussianHMM(n_iter=2, tol=-np.inf, random_state=0), n_components=[1, 2], cv=2)
    with pytest.raises(KeyboardInterrupt, match="the search is complete") as stop:
        search.fit(X)
    assert stop.value.result is search
    assert np.isfinite(search.score(X))


def unmarked_em():
    from pluri.inference import expectation_maximization

    return expectation_maximization.__wrapped__


def test_batches_after_an_interrupted_one_are_not_begun(monkeypatch):
    from pluri.mixtures.batches import dynamic_means

    cluster, calls = dynamic_means.cluster_batch, []

    def pressed(*arguments):
        calls.append(1)
        if len(calls) == 4:  # the second order of the second batch
            press()
        return cluster(*arguments)

    monkeypatch.setattr(dynamic_means, "cluster_batch", pressed)
    batches = [np.random.default_rng(n).normal(size=(20, 2)) for n in range(5)]
    model = DynamicMeans(penalty=4.0, survival=3.0, n_init=2, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 2 batches"):
        model.fit(batches)
    assert model.n_batches_seen_ == 2
    assert len(calls) == 4


# Programs


def test_cross_validation_ends_at_the_fold_that_was_interrupted():
    folds = []

    class Folds(Steps):
        def fit(self, X, y=None):
            folds.append(1)
            return super().fit(X)

        def score(self, X, y=None):
            return 0.0

    with pytest.raises(KeyboardInterrupt):
        cross_val_score(Folds(), np.zeros((9, 1)), cv=3)
    assert len(folds) == 1


def test_a_loop_of_fits_ends_with_the_first_that_was_interrupted():
    program = """
        import os, signal, sys, threading
        import numpy as np
        from pluri.mixtures import GaussianMixture

        X = np.random.default_rng(0).normal(size=(2000, 4))
        options = {"max_iter": 10**6, "tol": 0.0, "verbose": 2, "random_state": 0}
        print(GaussianMixture(2, max_iter=2, tol=0.0).fit(X).n_iter_, flush=True)
        for number in range(3):
            model = GaussianMixture(5, **options)
            print("begin", number, flush=True)
            try:
                model.fit(X)
            except KeyboardInterrupt as stop:
                print(stop, model.n_iter_, np.isfinite(model.score(X)), flush=True)
                raise
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if " 3/" in line:
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT, errors
    assert output.count("begin") == 1
    assert "the best parameters so far are kept" in output
    assert output.rstrip().endswith("True")


def test_the_exception_can_be_sent_from_one_process_to_another():
    sent = pickle.loads(pickle.dumps(Interrupted("far", [1])))
    assert (str(sent), sent.result) == ("far", [1])


def handlers():
    for file in sorted(ROOT.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "Interrupt" not in text:  # nothing to find, and most of the time would go into reading it
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.ExceptHandler) and node.type and "Interrupt" in ast.unparse(node.type):
                        yield file.relative_to(ROOT).as_posix(), function.name, node


def test_every_handler_of_ctrl_c_holds_it_or_raises_it_again():
    found = list(handlers())
    assert "inference/em.py" in {file for file, _, _ in found}
    for file, function, node in found:
        called = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
        raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
        assert "hold" in called or raises or (file, function) in DELAYS | SERVES, f"{file}: {function}"


def test_a_block_lets_ctrl_c_through_while_there_is_nothing_to_keep():
    def run(n, having):
        found = []

        @interruptible
        def work():
            with holding(lambda: f"{len(found)} are kept", having=found if having is None else having):
                for number in range(n):
                    found.append(number)
                raise KeyboardInterrupt
            return found

        with pytest.raises(KeyboardInterrupt) as stop:
            work()
        return getattr(stop.value, "result", None), str(stop.value)

    assert run(2, None) == ([0, 1], "2 are kept")
    assert run(0, None)[0] is None
    assert run(2, lambda: False)[0] is None
    assert run(0, lambda: True)[0] == []
