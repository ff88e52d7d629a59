import contextlib
import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from pluri.engine import ArraySource
from pluri.inference import Checkpoint, expectation_maximization, flatten, unflatten
from pluri.inference.checkpoint import read, streams_from_json, streams_to_json, write


@dataclass(frozen=True)
class Inner:
    floor: float
    name: str
    flag: bool
    extra: Any = None


class Pair(NamedTuple):
    left: int
    right: Any


@dataclass(frozen=True)
class Outer:
    means: np.ndarray
    inner: Inner
    pair: Pair
    parts: list[Any]
    table: dict[str, Any]
    scale: np.float32
    derived: float = field(init=False, default=0.0)


def example(seed):
    rng = np.random.default_rng(seed)
    return Outer(
        means=np.asfortranarray(rng.normal(size=(3, 2))),
        inner=Inner(
            floor=float(rng.normal()), name="état", flag=bool(seed % 2), extra=None if seed % 2 else np.arange(3)
        ),
        pair=Pair(10**30 + seed, np.array(["a", "bc"])),
        parts=[rng.integers(9, size=4), -0.0, np.nan, np.inf],
        table={"x": np.array(True), "y": ""},
        scale=np.float32(rng.random()),
    )


def assert_same_bits(left, right):
    one, two = flatten(left), flatten(right)
    assert one.keys() == two.keys()
    for name in one:
        assert (one[name].dtype, one[name].shape, one[name].tobytes()) == (
            two[name].dtype,
            two[name].shape,
            two[name].tobytes(),
        )


@pytest.mark.parametrize("seed", [0, 1])
def test_records_survive_the_file_bit_for_bit(tmp_path, seed):
    write(tmp_path / "file", {"a": [1, None, "b"]}, {"tree": example(seed)})
    header, leaves = read(tmp_path / "file")
    back = unflatten(leaves, {"tree": example(7)})["tree"]
    assert header == {"a": [1, None, "b"]}
    assert_same_bits(back, example(seed))
    assert type(back) is Outer
    assert type(back.pair) is Pair
    assert type(back.scale) is np.float32
    assert back.pair.left == 10**30 + seed
    assert back.inner.flag is bool(seed % 2)


@pytest.mark.parametrize(("leaf", "name"), [({1, 2}, "set"), (np.array([None]), "ndarray of objects"), (1j, "complex")])
def test_what_needs_pickle_is_refused(leaf, name):
    with pytest.raises(TypeError, match=f"a checkpoint holds .* got {name} at 'params.odd'"):
        flatten({"odd": leaf}, "params")


def test_missing_leaf_is_named():
    with pytest.raises(ValueError, match="nothing is stored for 'b'"):
        unflatten(flatten({"a": 1}), {"a": 0, "b": 0})


@pytest.mark.parametrize(
    "make", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM]
)
@pytest.mark.parametrize("seed", [5, 2**100, [1, 2, 3], None])
def test_streams_come_back_with_their_descendants(make, seed):
    streams = np.random.Generator(make(seed)).spawn(2)
    again = streams_from_json(streams_to_json(streams))
    for one, two in zip(streams, again):
        assert one.spawn(1)[0].random() == two.spawn(1)[0].random()
        assert one.random() == two.random()


# Fits that are cut off and go on


class Flaky:
    """Raises in the given E-step, as a pulled plug does."""

    def __init__(self, problem, fail_at, error=RuntimeError):
        self.problem, self.fail_at, self.error, self.n_expect = problem, fail_at, error, 0

    def expect(self, params, batch):
        self.n_expect += 1
        if self.n_expect == self.fail_at:
            raise self.error("power cut")
        return self.problem.expect(params, batch)

    def __getattr__(self, name):
        return getattr(self.problem, name)


OPTIONS = {"n_init": 3, "max_iter": 12, "tol": 1e-3}


@pytest.mark.parametrize("acceleration", [None, "squarem", "anderson"])
@pytest.mark.parametrize("fail_at", [6, 10, 14, 27, 33])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_resumed_fit_is_bit_identical(toys, tmp_path, acceleration, fail_at, error):
    x, problem = toys.two_groups(), toys.Mixture(3, floor=0.1)
    options = OPTIONS | {"acceleration": acceleration}
    expected = expectation_maximization(problem, ArraySource(x), rng=np.random.default_rng(3), **options)
    path = tmp_path / "fit.npz"
    place = Checkpoint(path, every=4)
    flaky, resumed = Flaky(problem, fail_at, error), Flaky(problem, fail_at=0)
    with contextlib.suppress(RuntimeError, KeyboardInterrupt):
        expectation_maximization(flaky, ArraySource(x), rng=np.random.default_rng(3), checkpoint=place, **options)
    assert path.exists()
    # Another seed: the streams of the runs to come are those of the checkpoint.
    result = expectation_maximization(
        resumed, ArraySource(x), rng=np.random.default_rng(99), checkpoint=place, **options
    )
    assert_same_bits(result.params, expected.params)
    np.testing.assert_array_equal(result.history.objective, expected.history.objective)
    np.testing.assert_array_equal(result.history.accepted, expected.history.accepted)
    assert (result.restart, result.n_iter, result.reason) == (expected.restart, expected.n_iter, expected.reason)
    # A crash loses what came after the last write, Ctrl-C nothing.
    repeated = resumed.n_expect - (len(expected.history) - (fail_at - 1))
    assert 0 <= repeated < 4
    assert error is RuntimeError or repeated == 0


def test_finished_checkpoint_is_returned_without_work(toys, tmp_path):
    x, path = toys.two_groups(), tmp_path / "fit.npz"
    fit = lambda problem: expectation_maximization(  # noqa: E731
        problem, ArraySource(x), rng=np.random.default_rng(3), checkpoint=path, **OPTIONS
    )
    first, counting = fit(Flaky(toys.Mixture(3, 0.1), 0)), Flaky(toys.Mixture(3, 0.1), 0)
    second = fit(counting)
    assert counting.n_expect == 0
    assert_same_bits(second.params, first.params)
    assert second.history == first.history


def test_larger_max_iter_goes_on_from_the_checkpoint(toys, tmp_path):
    x, path, problem = toys.two_groups(), tmp_path / "fit.npz", toys.Mixture(2, 0.1)
    options = {"tol": -np.inf, "acceleration": "squarem"}
    fit = lambda **more: expectation_maximization(  # noqa: E731
        problem, ArraySource(x), rng=np.random.default_rng(3), **options, **more
    )
    fit(max_iter=7, checkpoint=path)
    longer = fit(max_iter=20, checkpoint=path)
    assert longer.n_iter == 20
    assert_same_bits(longer.params, fit(max_iter=20).params)


# Files that must not be used, or lost


@pytest.fixture
def saved(toys, tmp_path):
    path = tmp_path / "fit.npz"
    fit_with(toys, path)
    return path


def fit_with(toys, path, n_components=2, **options):
    place = Checkpoint(path, fingerprint=options.pop("fingerprint", "groups"))
    options = {"rng": np.random.default_rng(0), "max_iter": 3, "checkpoint": place} | options
    return expectation_maximization(toys.Mixture(n_components, 0.1), ArraySource(toys.two_groups()), **options)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"not a checkpoint",
        lambda content: content[:-3000] + bytes([content[-3000] ^ 1]) + content[-2999:],
    ],
    ids=["cut", "empty", "text", "bit"],
)
def test_damaged_file_is_refused_and_left_alone(toys, saved, damage):
    content = damage(saved.read_bytes())
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint '.*fit\.npz' is damaged or not a checkpoint of pluri"):
        fit_with(toys, saved)
    assert saved.read_bytes() == content


def test_other_file_is_refused_and_left_alone(toys, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.zeros(3))
    content = path.read_bytes()
    with pytest.raises(ValueError, match="damaged or not a checkpoint"):
        fit_with(toys, path)
    assert path.read_bytes() == content


def test_pickle_in_the_file_is_not_run(toys, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.savez(tmp_path / "fit.npz", format=np.array([Trap()], dtype=object))
    with pytest.raises(ValueError, match="damaged or not a checkpoint"):
        fit_with(toys, tmp_path / "fit.npz")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"fingerprint": "other groups"}, "fingerprint"),
        ({"n_init": 2}, "n_init"),
        ({"acceleration": "squarem"}, "acceleration"),
        ({"n_components": 3}, "shapes"),
    ],
)
def test_checkpoint_of_another_fit_is_refused_and_left_alone(toys, saved, options, name):
    content = saved.read_bytes()
    with pytest.raises(ValueError, match=f"belongs to another fit: its {name} is .*, this one has"):
        fit_with(toys, saved, **options)
    assert saved.read_bytes() == content


def test_failed_write_leaves_the_old_file_and_no_other(toys, saved, monkeypatch):
    content = saved.read_bytes()

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        fit_with(toys, saved, max_iter=9)
    assert saved.read_bytes() == content
    assert os.listdir(saved.parent) == [saved.name]


def test_the_number_of_iterations_between_writes_is_checked(tmp_path):
    with pytest.raises(ValueError, match="every must be an integer of at least 1, got -1"):
        Checkpoint(tmp_path / "fit.npz", every=-1)


def test_missing_directory_is_refused_before_any_work(toys, tmp_path):
    with pytest.raises(ValueError, match="checkpoint must lie in an existing directory, got"):
        fit_with(toys, tmp_path / "nowhere" / "fit.npz")
