"""The samplers of trees of topics against priors drawn another way, and against posteriors worked out by hand.

Statistical tests fix their random states; the false-alarm rate of each is stated or is that of `pluri.testing`: 1e-3.
"""

from functools import partial

import numpy as np
import pytest

from pluri.priors import Gamma
from pluri.testing import SamplerProblem, geweke_test, kernel_transition
from pluri.topics.documents import Tokens
from pluri.topics.tree.gibbs import TreeGibbs
from pluri.topics.tree.settings import TreeSettings

LENGTHS = (3, 2)
N_WORDS = 4
PRIOR = Gamma(2.0, 1.0)


def tokens_like(words, lengths=LENGTHS, n_words=N_WORDS):
    documents = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(np.asarray(words, dtype=np.int32), documents, offsets, n_words)


class Stick:
    """A stick broken when it is asked for: piece t takes a fraction ``fraction(t)`` of what is left."""

    def __init__(self, fraction, cap):
        self.fraction, self.cap, self.pieces, self.rests = fraction, cap, [], [1.0]

    def grow(self, t):
        while len(self.pieces) <= t:
            v = 1.0 if len(self.pieces) == self.cap - 1 else self.fraction(len(self.pieces))
            self.pieces.append(self.rests[-1] * v)
            self.rests.append(self.rests[-1] * (1.0 - v))

    def __getitem__(self, t):
        self.grow(t)
        return self.pieces[t]

    def draw(self, rng):
        u, t = rng.random(), 0
        while True:
            u -= self[t]
            if u < 0 or t == self.cap - 1:
                return t
            t += 1


def draw_prior(rng, settings, grows, lengths=LENGTHS, n_words=N_WORDS):
    """A position drawn from the prior: a program of its own, with the same arrays as the library's states."""
    top, caps, depth = settings.top, settings.caps, settings.most_depth
    fixed = not isinstance(settings.concentration, Gamma)
    gamma = lambda: settings.concentration if fixed else settings.concentration.sample(rng)  # noqa: E731
    lam, rho, zeta = gamma(), gamma(), [gamma() for _ in range(min(depth, 50))]
    eta = gamma() if settings.doc_concentration is None else settings.doc_concentration
    psi, ell, log_stop = 1.0, np.empty(0, dtype=np.int32), np.zeros(depth)
    if settings.scale_dependent:
        while True:
            psi = gamma()
            stops = Stick(partial(lambda psi, s: rng.beta(1, psi), psi), depth)
            ell = np.array([stops.draw(rng) for _ in range(n_words)], dtype=np.int32)
            found = ell.max() + 1
            if len(np.unique(ell)) == found and (found >= settings.least_depth if grows else found == depth):
                break
        log_stop = np.log([max(stops[s], 1e-300) for s in range(depth)])
        depth = found
    base = Stick(lambda t: rng.beta(1, lam), caps[top])
    part = lambda t: rng.beta(max(eta * base[t], 1e-300), max(eta * base.rests[t + 1], 1e-300))  # noqa: E731
    theta = [Stick(part, caps[top]) for _ in lengths]
    usage = [Stick(lambda s: rng.beta(1, rho), depth) for _ in lengths]
    columns = {}

    def column(s, m):
        if (s, m) not in columns:
            columns[s, m] = Stick(lambda t: rng.beta(1, zeta[s]), caps[s])
        return columns[s, m]

    scale, paths = [], []
    for d in np.repeat(np.arange(len(lengths)), lengths):
        # A word of each scale is as likely as its usage: scales without words do not exist where words have scales.
        c, path = usage[d].draw(rng), []
        for s in range(c + 1):
            path.append(0 if s < top else theta[d].draw(rng) if s == top else column(s, path[-1]).draw(rng))
        scale.append(c)
        paths.append(path)
    scale = np.array(scale, dtype=np.int32)
    if grows and not settings.scale_dependent:
        depth = scale.max() + 1
        widths = np.array([max((p[s] for p in paths if len(p) > s), default=-1) + 1 for s in range(depth)])
        widths[: min(top, depth)] = 1
        rooms = widths.copy()
    else:
        widths = rooms = caps
    n_scales, n_top = len(rooms), rooms[top] if top < len(rooms) else 0
    offsets, widest = np.concatenate([[0], np.cumsum(rooms)]), max(rooms.max(), 1)
    transition, transition_rest = np.zeros((offsets[-1], widest)), np.zeros((n_scales, widest))
    for s in range(top + 1, depth):
        for m in range(widths[s - 1]):
            for t in range(widths[s]):
                transition[offsets[s] + t, m] = column(s, m)[t]
            column(s, m).grow(widths[s] - 1)
            transition_rest[s, m] = column(s, m).rests[widths[s]]
    return {
        "rooms": rooms.copy(), "widths": widths.copy(), "depth": np.array([depth]), "scale": scale,
        "node": np.array([path[-1] for path in paths], dtype=np.int32),
        "paths": np.array([path + [0] * (n_scales - len(path)) for path in paths], dtype=np.int32)
        if grows else np.zeros((0, 0), dtype=np.int32),
        "word_scale": ell,
        "sizes": np.bincount(ell, minlength=n_scales) if ell.size else np.full(n_scales, n_words),
        "base": np.array([base[t] for t in range(n_top)] + [base.rests[n_top]]),
        "theta": np.array([[stick[t] for t in range(n_top)] for stick in theta]).reshape(len(lengths), n_top),
        "theta_rest": np.array([stick.rests[n_top] for stick in theta]),
        "usage": np.array([[stick[s] if s < depth else 0.0 for s in range(n_scales)] for stick in usage]),
        "usage_rest": np.array([stick.rests[depth] for stick in usage]),
        "transition": transition, "transition_rest": transition_rest, "log_stop": log_stop,
        "zeta": np.array([zeta[s] for s in range(n_scales)]), "concentrations": np.array([lam, eta, rho, psi]),
    }  # fmt: skip


def draw_words(rng, position, settings, n_words=N_WORDS):
    """Words given scales and nodes, topics drawn from their prior."""
    words, topics = [], {}
    for key in zip(position["scale"].tolist(), position["node"].tolist()):
        if key not in topics:
            shapes = np.full(n_words, settings.topic_word_prior)
            if settings.scale_dependent:
                shapes[position["word_scale"] != key[0]] = 0.0
            draws = rng.gamma(shapes)
            topics[key] = draws / draws.sum()
        words.append(rng.choice(n_words, p=topics[key]))
    return np.array(words, dtype=np.int32)


def summaries(settings, position, y):
    """Numbers that have a meaning whatever the size of the tree."""
    scale, depth = position["scale"], int(position["depth"][0])
    named = {
        "depth": depth, "mean scale": scale.mean(), "top scale": (scale == 0).mean(), "node": position["node"].mean(),
        "together": (position["node"][0] == position["node"][1]) & (scale[0] == scale[1]),
        "first usage": position["usage"][0, 0], "log concentrations": np.log(position["concentrations"][[0, 2]]),
        "first word": float((y == 0).mean()), "same word": float(y[0] == y[1]),
        "word and scale": float(((y == y[0]) & (scale == scale[0])).sum()),
        "word and node": float(((y == y[0]) & (scale == scale[0]) & (position["node"] == position["node"][0])).sum()),
    }  # fmt: skip
    if settings.doc_concentration is None:
        named["log eta"] = np.log(position["concentrations"][1])
    if depth > settings.top:
        named["first base"] = position["base"][0]
        named["first share"] = position["theta"][0, 0] if position["theta"].shape[1] else 0.0
    else:
        named["first base"] = named["first share"] = 0.0
    if settings.scale_dependent:
        named |= {"words at the top": position["sizes"][0], "log psi": np.log(position["concentrations"][3]),
                  "first stop": np.exp(position["log_stop"][0]), "log zeta": np.log(position["zeta"][depth - 1])
                  if depth > settings.top + 1 else 0.0}  # fmt: skip
    if not isinstance(settings.concentration, Gamma):  # then they stay what they are
        logs = [named.pop(name) for name in ("log concentrations", "log eta", "log psi", "log zeta") if name in named]
        assert all(np.isin(value, [0.0, np.log(settings.concentration)]).all() for value in logs)
    return {name: np.asarray(value, dtype=float) for name, value in named.items()}


CASES = {
    "nsd": (TreeSettings((2, 3), scale_dependent=False, root=False, concentration=PRIOR), "truncated", {}),
    "nsd at once": (
        TreeSettings((1, 2, 3), scale_dependent=False, concentration=PRIOR), "truncated", {"collapsed": False}
    ),
    "sd": (TreeSettings((1, 2, 2), concentration=PRIOR), "truncated", {}),
    "sd at once": (
        TreeSettings((2, 2), root=False, concentration=PRIOR, topic_word_prior=0.5), "truncated",
        {"collapsed": False},
    ),
    "retrospective nsd": (
        TreeSettings(None, scale_dependent=False, root=False, concentration=PRIOR), "retrospective", {}
    ),
    "slice nsd": (TreeSettings(None, scale_dependent=False, root=True, concentration=PRIOR), "slice", {}),
    "retrospective sd": (TreeSettings((1, 2, 3), concentration=PRIOR), "retrospective", {}),
    "slice sd": (TreeSettings((2, 2, 2), root=False, concentration=PRIOR), "slice", {}),
    "capped nsd": (
        TreeSettings((2, 3), scale_dependent=False, root=False, concentration=PRIOR, doc_concentration=1.5),
        "retrospective", {},
    ),
    "fixed sd": (TreeSettings((2, 2, 2), root=False, concentration=1.5), "retrospective", {}),
    "fixed nsd": (TreeSettings((2, 2, 2), scale_dependent=False, root=False, concentration=0.7), "slice", {}),
}  # fmt: skip


def tree_problem(case):
    """For the table of all samplers."""
    settings, inference, options = CASES[case]
    return SamplerProblem(
        f"TreeGibbs, {case}",
        prior=partial(draw_prior, settings=settings, grows=inference != "truncated"),
        data=partial(draw_words, settings=settings),
        transition=kernel_transition(
            lambda y: TreeGibbs(tokens_like(y), settings, inference=inference, **options)
        ),
        statistics=partial(summaries, settings),
        n_steps=4,
    )  # fmt: skip


UNBOUNDED = ("retrospective nsd", "slice nsd")
#: Cases that are tried with all samplers of the library.
IN_THE_TABLE = ("nsd", "sd", "slice sd")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow) if case in UNBOUNDED else case
        for case in CASES
        if case not in IN_THE_TABLE
    ],
)
def test_geweke(case):
    """False-alarm rate 1e-6 for each case."""
    problem = tree_problem(case)
    result = geweke_test(
        problem.prior, problem.data, problem.transition, problem.statistics, n_marginal=600, n_successive=160,
        n_steps=4, alpha=1e-6, max_stages=5, random_state=3,
    )  # fmt: skip
    result.raise_if_failed()
