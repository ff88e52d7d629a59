"""Semidefinite programmes with known answers; bounds at every moment; cuts against enumeration; files; refusals."""

from __future__ import annotations

import gzip
import itertools
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from pluri.optimize.sdp import LowRank, lmi_feasible_point, maxcut_round, maxcut_sdp, read_sdpa, solve_sdp
from pluri.validation import as_generator


def complete(n):
    return np.ones((n, n)) - np.eye(n)


def cycle(n):
    step = np.roll(np.eye(n), 1, axis=1)
    return step + step.T


def petersen():
    outer, inner = cycle(5), np.roll(np.eye(5), 2, axis=1)
    return np.block([[outer, np.eye(5)], [np.eye(5), inner + inner.T]])


#: Optimum of the relaxation: (n / 4) times the largest eigenvalue of the Laplacian for vertex-transitive graphs.
GRAPHS = {
    "K3": (complete(3), 2.25),
    "K5": (complete(5), 6.25),
    "C4": (cycle(4), 4.0),
    "C5": (cycle(5), 2.5 * (1 + math.cos(math.pi / 5))),
    "Petersen": (petersen(), 12.5),
}


def heaviest_cut(C):
    """By enumeration of all partitions."""
    n = len(C)
    sides = np.array(list(itertools.product([-1.0, 1.0], repeat=n - 1)))
    sides = np.c_[np.ones(len(sides)), sides]
    return float(((C.sum() - np.einsum("si,ij,sj->s", sides, C, sides)) / 4).max())


def watched(optimum, slack=1e-7):
    """A callback that holds both bounds against the optimum each time that they are computed."""
    seen = []

    def look(now):
        seen.append(now)
        assert now.lower_bound <= optimum + slack * max(1, abs(optimum))
        assert now.fun >= optimum - slack * max(1, abs(optimum))

    return look, seen


@pytest.mark.parametrize("name", GRAPHS)
def test_relaxations_of_small_graphs_come_within_their_gap_with_certificates_at_every_moment(name):
    C, optimum = GRAPHS[name]
    L = np.diag(C.sum(axis=1)) - C
    look, seen = watched(optimum)

    def check(now):
        look(now)
        if now.x is not None:
            np.linalg.cholesky(np.diag(now.x) - L / 4)
        if now.dual is not None:
            assert_allclose(np.diag(now.dual), 1.0)
            assert np.linalg.eigvalsh(now.dual)[0] > -1e-9
            assert_allclose(np.sum(L / 4 * now.dual), now.lower_bound)

    relaxed = maxcut_sdp(C, tol=5e-3, callback=check)
    assert relaxed.result.success
    assert relaxed.bound - optimum <= 5e-3 * relaxed.bound
    assert optimum - relaxed.value <= 5e-3 * relaxed.bound
    assert len(seen) > 3
    trials = {now.phase: now.c0 for now in seen}  # one for each phase, each below the one before
    assert len(trials) > 1
    assert all(trials[later] < trials[earlier] for earlier, later in itertools.pairwise(sorted(trials)))
    assert all(now.fun <= now.c0 for now in seen if now.phase)


@pytest.mark.parametrize("name", ["K3", "C5", "C4"])
def test_the_plain_perceptron_with_a_fixed_slack_comes_within_its_accuracy(name):
    # The published algorithm: an eigenvector for each update, slack of 1 or 10; 1.5 % within 20,000 updates.
    C, optimum = GRAPHS[name]
    found = []
    for tau in (1.0, 10.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = maxcut_sdp(C, oracle="eigen", tau=tau, memory=0, tol=1e-2, max_updates=2_000).result
        found.append(result.fun)
        assert result.n_oracle <= result.n_updates + result.history["phase"].max() + 1
    assert min(found) <= 1.015 * optimum


@pytest.mark.parametrize("oracle", ["auto", "eigen", "cholesky"])
@pytest.mark.parametrize("strategy", ["threshold", "bisection"])
def test_the_largest_eigenvalue_is_found_by_every_oracle_and_strategy(oracle, strategy):
    rng = as_generator(0)
    A = rng.standard_normal((6, 6))
    A = A + A.T
    optimum = np.linalg.eigvalsh(A)[-1]
    look, _ = watched(optimum)
    # Negative curvature alone, threshold by threshold, has a gap of 0.013 to 0.018 after a million updates in 3 of 60
    # matrices; all else is below 0.01.
    tol = 5e-2 if (oracle, strategy) == ("cholesky", "threshold") else 1e-2
    result = solve_sdp([1.0], [np.eye(6)], -A, oracle=oracle, strategy=strategy, tol=tol, callback=look)
    assert result.success
    assert result.lower_bound <= optimum + 1e-9 <= result.fun + 1e-9
    assert_allclose(np.trace(result.dual), 1.0)
    assert np.linalg.eigvalsh(result.dual)[0] > -1e-9


def test_diagonal_matrices_are_a_linear_programme():
    rng = as_generator(1)
    for _ in range(3):
        A, inside = rng.standard_normal((8, 3)), rng.standard_normal(3)
        rows = np.r_[A, np.eye(3), -np.eye(3)]
        b = np.r_[A @ inside - rng.random(8), inside - 2, -inside - 2]
        c = rng.standard_normal(3)
        optimum = linprog(c, A_ub=-rows, b_ub=-b, bounds=(None, None)).fun
        look, _ = watched(optimum)
        result = solve_sdp(c, list(rows.T), -b, tol=2e-2, callback=look)
        assert result.success
        assert (rows @ result.x > b).all()
        assert result.fun - optimum <= 2e-2 * max(1, abs(result.fun))


def test_a_sum_of_eigenvalues_and_a_matrix_norm_have_closed_forms():
    rng = as_generator(2)
    B = rng.standard_normal((3, 2))
    zero = np.zeros
    F0 = np.block([[zero((3, 3)), B], [B.T, zero((2, 2))]])  # t I + F0 >= 0: t is at least the largest singular value
    norm = np.linalg.norm(B, 2)
    look, _ = watched(norm)
    result = solve_sdp([1.0], [np.eye(5)], F0, tol=1e-2, callback=look)
    assert result.success
    assert abs(result.fun - norm) <= 1e-2 * max(1.0, result.fun)


def test_random_programmes_are_proved_to_lie_within_their_gap():
    # Both problems have an interior, so that their optima agree; the dual matrix is a proof that needs no other solver.
    rng = as_generator(4)
    for _ in range(3):
        n, m = 3, 5
        F = [one + one.T for one in rng.standard_normal((n, m, m))]
        inside, root = rng.standard_normal(n), rng.standard_normal((m, m))
        F0 = np.eye(m) - np.tensordot(inside, F, 1)
        c = np.array([np.sum(one * (root @ root.T / m + 0.1 * np.eye(m))) for one in F])
        result = solve_sdp(c, F, F0, tol=2e-2)
        assert result.success
        np.linalg.cholesky(F0 + np.tensordot(result.x, F, 1))
        assert_allclose(c @ result.x, result.fun)
        assert np.linalg.eigvalsh(result.dual)[0] > -1e-9
        assert_allclose([np.sum(one * result.dual) for one in F], c, atol=1e-7)
        assert_allclose(-np.sum(F0 * result.dual), result.lower_bound)


def test_an_upper_bound_that_nothing_reaches_is_named():
    result = solve_sdp([1.0], [np.eye(2)], -np.eye(2), bounds=(None, 0.5), rho_min=1e-2)
    assert result.status == 2
    assert "bounds[1]=0.5" in result.message


def test_points_below_a_trial_value_are_found_when_it_is_known():
    A = np.diag([1.0, 2.0, 3.0])
    result = solve_sdp([1.0], [np.eye(3)], -A, bounds=(0.0, 5.0), strategy="bisection", tol=1e-2)
    assert result.success
    assert (result.history["c0"] <= 5.0).all()
    assert (np.linalg.eigvalsh(result.x[0] * np.eye(3) - A) > 0).all()
    assert result.fun < result.history["c0"][result.history["c0"] >= result.fun].min()


def test_kinds_and_units_of_the_matrices_do_not_change_the_answer():
    C, optimum = GRAPHS["C5"]
    F0 = -(np.diag(C.sum(axis=1)) - C) / 4
    basis = np.eye(5)
    kinds = [
        [np.diag(row) for row in basis],
        list(basis),
        [sparse.csr_array(np.diag(row)) for row in basis],
        [LowRank(row) for row in basis],
        [3.0 * np.diag(row) for row in basis],
    ]
    for F in kinds:
        scale = np.trace(F[0].toarray() if hasattr(F[0], "toarray") else np.diag(F[0]) if F[0].ndim == 1 else F[0])
        look, _ = watched(optimum)
        result = solve_sdp(np.full(5, scale), F, F0, tol=1e-2, callback=look)
        assert result.success
        assert_allclose(scale * result.x.sum(), result.fun)
        assert_allclose([np.trace(result.dual[i : i + 1, i : i + 1]) for i in range(5)], 1.0)


def test_rescaling_on_the_way_keeps_every_claim():
    C, optimum = GRAPHS["K3"]
    look, _ = watched(optimum)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = maxcut_sdp(
            C, tol=1e-4, max_updates=9_000, rescale=True, memory=10, random_state=0, callback=look
        ).result
    assert np.linalg.eigvalsh(np.diag(result.x) - (np.diag(C.sum(axis=1)) - C) / 4)[0] > 0
    assert result.gap < 0.02


def test_no_cut_is_heavier_than_the_bound_and_rounding_keeps_its_promise():
    # The mean over hyperplanes is at least 0.87856 <L/4, X>. Over 600 draws of a weight between 0 and w, the mean falls
    # short by 0.06 w with probability exp(-2 * 600 * 0.06^2) = 1.3 % at most; the observed spread is a third of w / 2,
    # for which the shortfall is more than seven standard errors.
    rng = as_generator(3)
    for n in (6, 8, 9):
        C = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
        C = C + C.T
        best = heaviest_cut(C)
        relaxed = maxcut_sdp(C)
        cut = maxcut_round(relaxed.X, C, 600, random_state=n)
        assert relaxed.bound >= best >= cut.weight * (1 - 1e-12)
        assert_allclose(cut.weight, C[np.ix_(cut.side, ~cut.side)].sum())
        assert cut.mean_weight >= 0.87856 * relaxed.value - 0.06 * C.sum() / 2
        assert cut.weight >= 0.87856 * best
        assert_allclose(cut.weight, best)  # 600 hyperplanes find the best of so few vertices


def test_bipartite_graphs_are_cut_whole():
    C = np.zeros((6, 6))
    C[:3, 3:] = 1.0
    C = sparse.csr_array(C + C.T)
    relaxed = maxcut_sdp(C)
    assert relaxed.value <= 9.0 + 1e-9 <= relaxed.bound + 1e-9
    assert maxcut_round(relaxed.X, C, random_state=0).weight == 9.0


FILE = """"a comment
* another
2 = mDIM
2 = nBLOCK
(2, -2) = bLOCKsTRUCT
{1.0, 2.0}
0 1 1 2 -1.0
0 2 1 1 0.5
1 1 1 1 1.0
2 1 2 2 1.0
2 2 2 2 3.0
"""


def test_a_file_of_sdpa_is_read_with_blocks_and_comments(tmp_path):
    (tmp_path / "small.dat-s.gz").write_bytes(gzip.compress(FILE.encode()))
    (tmp_path / "small.dat-s").write_text(FILE)
    for source in (FILE, tmp_path / "small.dat-s.gz", str(tmp_path / "small.dat-s")):
        problem = read_sdpa(source)
        assert problem.blocks == (2, -2)
        assert_allclose(problem.c, [1.0, 2.0])
        assert_allclose(problem.F0.toarray(), [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -0.5, 0], [0, 0, 0, 0]])
        assert_allclose(problem.F[0].toarray(), np.diag([1.0, 0, 0, 0]))
        assert_allclose(problem.F[1].toarray(), np.diag([0, 1.0, 0, 3.0]))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("2 = mDIM", "two", "line 3 of the text must begin with the number of variables"),
        ("2 = nBLOCK", "0", "line 4 of the text must begin with the number of blocks"),
        ("(2, -2)", "(2)", "line 5 of the text must hold 2 sizes of blocks"),
        ("(2, -2)", "(2, 0)", "line 5 of the text must hold 2 sizes of blocks"),
        ("{1.0, 2.0}", "{1.0, 2.0, 3.0}", "line 6 of the text must end c after 2 entries, got 3"),
        ("{1.0, 2.0}", "{1.0, nan}", "line 6 of the text must hold finite numbers"),
        ("0 1 1 2 -1.0", "3 1 1 2 -1.0", "line 7 of the text must name a matrix of 0, ..., 2, got 3"),
        ("0 1 1 2 -1.0", "0 5 1 2 -1.0", "line 7 of the text must name a block of 1, ..., 2, got 5"),
        ("0 1 1 2 -1.0", "0 1 1 3 -1.0", "line 7 of the text must name a row and a column of 1, ..., 2"),
        ("0 1 1 2 -1.0", "0 1 1 -1.0", "line 7 of the text must hold matrix, block, row and column"),
        ("0 1 1 2 -1.0", "0 1 1.5 2 -1.0", "line 7 of the text must hold matrix, block, row and column"),
        ("0 1 1 2 -1.0", "what is this", "line 7 of the text must hold an entry"),
        ("0 2 1 1 0.5", "0 2 1 2 0.5", "line 8 of the text must lie on the diagonal"),
        ("0 2 1 1 0.5", "0 1 2 1 -1.0", "must give each entry of a matrix once"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence_with_the_line(old, new, sentence):
    with pytest.raises(ValueError) as refusal:
        read_sdpa(FILE.replace(old, new))
    assert sentence in str(refusal.value)


def test_a_file_that_ends_early_or_is_not_compressed_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must have a line with the sizes of the blocks, got the end"):
        read_sdpa("2\n1\n")
    (tmp_path / "plain.gz").write_text(FILE)
    with pytest.raises(ValueError, match=r"plain\.gz must be a file compressed by gzip"):
        read_sdpa(tmp_path / "plain.gz")
    with pytest.raises(FileNotFoundError):
        read_sdpa(tmp_path / "nothing.dat-s")


def test_ctrl_c_keeps_the_best_point_and_bound_and_goes_on():
    C, optimum = GRAPHS["Petersen"]

    def interrupt(now):
        if now.x is not None and now.dual is not None and now.phase > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        maxcut_sdp(C, tol=1e-6, callback=interrupt)
    relaxed = stop.value.result
    assert relaxed.result.interrupted
    assert relaxed.result.status == 4
    assert relaxed.value <= optimum + 1e-9 <= relaxed.bound + 1e-9
    assert "the best point" in str(stop.value)


def test_a_callback_ends_the_search_and_progress_is_told(capsys):
    C, _ = GRAPHS["Petersen"]
    result = maxcut_sdp(C, tol=1e-6, verbose=1, callback=lambda now: now.phase >= 2).result
    assert result.status == 5
    assert not result.success
    assert "objective" in capsys.readouterr().err


def test_too_few_updates_are_a_warning_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"with a gap of .* above tol=1e-09, because max_updates"):
        result = maxcut_sdp(GRAPHS["C5"][0], tol=1e-9, max_updates=500).result
    assert result.status == 1
    assert result.n_updates <= 501


def test_an_objective_without_bound_is_told():
    result = solve_sdp([-1.0], [np.eye(2)], -np.eye(2))
    assert result.status == 3
    assert not result.success
    assert result.lower_bound == -math.inf


def test_a_problem_without_objective_is_one_of_feasibility():
    result = solve_sdp([0.0, 0.0], [np.diag([1.0, -1.0]), np.diag([0.0, 2.0])], -np.eye(2))
    assert result.success
    assert (np.linalg.eigvalsh(np.diag([result.x[0], 2 * result.x[1] - result.x[0]]) - np.eye(2)) > 0).all()
    assert result.gap == 0.0
    assert lmi_feasible_point(np.eye(2), [np.eye(2)]).success


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([1.0, 2.0], [EYE]), {}, "F must hold a matrix for each of the 2 entries of c, got 1"),
        (([], []), {}, "c must have one axis and at least one entry"),
        (([math.nan], [EYE]), {}, "c must be finite"),
        (([1.0], [np.ones((2, 3))]), {}, "F[0] must be a square matrix or a diagonal, got shape (2, 3)"),
        (([1.0], [[[0.0, 1.0], [0.0, 0.0]]]), {}, "F[0] must be symmetric"),
        (([1.0], [sparse.csr_array([[0.0, 1.0], [0.0, 0.0]])]), {}, "F[0] must be symmetric"),
        (([1.0], [EYE], np.eye(3)), {}, "F[0] must be of size 3 as the first matrix, got 2"),
        (([1.0], [EYE], np.full((2, 2), math.inf)), {}, "F0 must be finite"),
        (([1.0], [EYE]), {"oracle": "magic"}, "oracle must be"),
        (([1.0], [EYE]), {"strategy": "luck"}, "strategy must be"),
        (([1.0], [EYE]), {"tau": -1.0}, "tau must be"),
        (([1.0], [EYE]), {"bounds": (2.0, 1.0)}, "bounds must be a pair with low below high"),
        (([1.0], [EYE]), {"bounds": 3.0}, "bounds must be a pair (low, high)"),
        (([1.0], [EYE]), {"max_updates": 0}, "max_updates must be"),
        (([1.0], [EYE]), {"memory": -1}, "memory must be"),
        (([1.0], [EYE]), {"rho_min": 0.0}, "rho_min must be"),
        (([1.0], [EYE]), {"tol": 0.0}, "tol must be"),
        (([1.0], [EYE]), {"rescale": "yes"}, "rescale must be"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, options, sentence):
    with pytest.raises(ValueError) as refusal:
        solve_sdp(*arguments, **options)
    assert sentence in str(refusal.value)


def test_bad_graphs_and_products_are_refused():
    with pytest.raises(ValueError, match="adjacency must be symmetric"):
        maxcut_sdp([[0.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="adjacency must be a square matrix"):
        maxcut_sdp(np.ones(3))
    with pytest.raises(ValueError, match=r"X must have shape \(3, 3\)"):
        maxcut_round(np.eye(2), complete(3))
    with pytest.raises(ValueError, match="X must be positive semidefinite"):
        maxcut_round(-np.eye(3), complete(3))
    with pytest.raises(ValueError, match=r"factors must have shape \(m, rank\)"):
        LowRank(np.ones((3, 2)), [1.0])
