"""The garbage collector rests while a function is compiled, and only then."""

import gc

import numba
import pytest

from pluri.engine.collection_pause import CollectionPause
from pluri.engine.compile_record import listening
from pluri.engine.compiled import compiled


def collector_while_compiling(function, argument):
    """Whether the collector was on when each compilation began."""
    seen = []
    with listening(lambda data: seen.append(gc.isenabled()), lambda data: None):
        function(argument)
    return seen


def test_the_collector_rests_while_functions_and_what_they_call_are_compiled():
    @compiled(cache=False, inner=True)
    def double(x):
        return 2 * x

    @compiled(cache=False)
    def twice(x):
        return double(double(x))

    assert gc.isenabled()
    assert collector_while_compiling(twice, 3) == [False, False]
    assert gc.isenabled()


def test_the_collector_runs_again_after_a_function_that_cannot_be_compiled():
    @compiled(cache=False)
    def impossible(x):
        return x.nothing

    with pytest.raises(numba.TypingError):
        impossible(1.0)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    pause = CollectionPause()
    gc.disable()
    try:
        pause.begin({})
        pause.end({})
        assert not gc.isenabled()
    finally:
        gc.enable()
