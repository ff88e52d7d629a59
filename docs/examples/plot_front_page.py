"""
A diverse news front page: subsets of a stream
==============================================

Many outlets report the same few stories, and whatever is newest is often the same news five times over. Which six
headlines should be on the page, and what happens to the page when headlines come and go? A determinantal point process
prefers headlines that do not resemble each other; ``TimeVaryingDPP`` follows it through time.
"""

# %%
# Headlines
# ---------
# A small generator stands for the agencies: ten stories, each with words of its own and words of its topic, told in a
# different way every time. Stories break, are told often for a while, and fade. Headlines become vectors by TF-IDF and
# a singular value decomposition, so that words which occur together count as alike.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from pluri.plotting import TimelineDisplay
from pluri.processes.dpp import DPPSelector, SeparateDPP, TimeVaryingDPP, jaccard_overlap

TOPICS = {
    "economy": "bank market rates prices investors budget growth",
    "sport": "final coach fans season victory team record",
    "science": "study researchers discovery data experts laboratory results",
    "weather": "warning rain region residents forecast damage emergency",
}
STORIES = {
    "rate rise": ("economy", "central raises interest inflation borrowers"),
    "merger": ("economy", "airline merger regulators shareholders takeover"),
    "strike": ("economy", "railway strike union wages talks"),
    "cup final": ("sport", "cup striker penalty stadium goal"),
    "marathon": ("sport", "marathon runner kilometres sprint finish"),
    "doping": ("sport", "doping ban cyclist sample appeal"),
    "telescope": ("science", "telescope galaxy distant light image"),
    "vaccine": ("science", "vaccine trial patients dose malaria"),
    "storm": ("weather", "storm coast flood harbour wind"),
    "drought": ("weather", "drought farmers harvest reservoir heat"),
}
rng = np.random.default_rng(5)


def headline(story):
    topic, words = STORIES[story]
    own = rng.choice(words.split(), size=4, replace=False)
    return " ".join([*own, rng.choice(TOPICS[topic].split())])


names = list(STORIES)
n_slots, n_stamps = 20, 30
peaks = np.linspace(-6, n_stamps + n_slots - 4, len(names))  # when each story is told most; then it fades
interest = np.exp(-0.5 * ((np.arange(n_slots + n_stamps)[:, None] - peaks) / 12) ** 2)
told = [names[rng.choice(len(names), p=row / row.sum())] for row in interest]
texts = [headline(story) for story in told]
meaning = make_pipeline(TfidfVectorizer(), TruncatedSVD(12, random_state=0), Normalizer()).fit_transform(texts)
for text in texts[n_slots - 4 : n_slots]:
    print(text)

# %%
# One page
# --------
# At the first moment there are 20 headlines. The newest six repeat themselves, and so do six at random.
# ``DPPSelector`` knows nothing of stories, only the vectors, and finds more of them: by a draw, or always the same by
# greedy search ("map"), which takes no chances. Random and drawn pages are means over 200.

now = np.arange(n_slots)


def n_stories(rows):
    return len({told[row] for row in rows})


pages = {
    "newest": [now[-6:]],
    "random": [rng.choice(now, size=6, replace=False) for _ in range(200)],
    "drawn": [DPPSelector(6, kernel="cosine", random_state=rng).select(meaning[now]) for _ in range(200)],
    "greedy": [DPPSelector(6, kernel="cosine", method="map").select(meaning[now])],
}
for row in pages["greedy"][0]:
    print(f"{told[row]:>10s}: {texts[row]}")

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
means = [np.mean([n_stories(rows) for rows in drawn]) for drawn in pages.values()]
bars = ax.barh(list(pages), means, color=["0.75", "0.75", "#56B4E9", "#0072B2"])
ax.bar_label(bars, fmt="%.1f", padding=4)
ax.set(xlabel="different stories among six headlines", xlim=(0, 6.6))
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)

# %%
# The page through time
# ---------------------
# At each time step a headline comes and the oldest goes. No number of headlines is given: vectors of length 2 make the
# diagonal of the linear kernel 4, so that a headline is worth having (a factor above 1) unless its story is on the page
# already. The picture shows the most probable of 300 subsets at each time step; rows are headlines, sorted by story.
# Mostly each story has one headline, and two where they are told in different words.


def follow(model):
    """Take in the stream, and look at the subsets after each time step."""
    yield model.update(now, 2 * meaning[now])
    for new in range(n_slots, n_slots + n_stamps):
        yield model.update([new], 2 * meaning[[new]], leaving=[new - n_slots])


page = TimeVaryingDPP(n_particles=300, kernel="linear", random_state=0)
shown = [page.best_subset() for _ in follow(page)]

order = sorted({row for subset in shown for row in subset}, key=lambda row: (names.index(told[row]), row))
first = {told[row]: row for row in reversed(order)}
display = TimelineDisplay.from_history(
    page,
    shown,
    item_ids=order,
    names={row: told[row] if first[told[row]] == row else "" for row in order},
    n_particles=300,
    title="The page through time: headlines by story",
    ylabel="",
)
for place, row in enumerate(order):
    if first[told[row]] == row:
        display.axes_[0].axhline(place - 0.5, color="0.5", lw=0.8)

# %%
# Where the calm comes from
# -------------------------
# The page changes little from one time step to the next. That is pleasant, but it is not in the model, which knows
# nothing of the time step before: it is the autocorrelation of the sampler. Subsets are carried over and moved a
# little; with more moves they forget, and resemble their predecessors no more than independent draws do (dashed). The
# calm has a price, too: what is not moved keeps its errors. Whoever wants calm for its own sake should put it into the
# kernel, as a higher quality of what is on the page, and move enough.


def overlap_and_error(model):
    before, overlaps, errors = None, [], []
    for cloud in follow(model):
        if before is not None:
            ancestors = cloud.ancestors if cloud.ancestors.min() >= 0 else np.arange(len(cloud))
            overlaps.append(np.mean([jaccard_overlap(s, before[a]) for s, a in zip(cloud.subsets, ancestors)]))
        before = cloud.subsets
        errors.append(np.abs(model.inclusion_probabilities() - model.inclusion_probabilities(exact=True)).mean())
    return np.mean(overlaps), np.mean(errors)


moves = [0, 2, 10, 50, 250]
followed = [
    overlap_and_error(TimeVaryingDPP(n_particles=300, kernel="linear", n_moves=n, random_state=1)) for n in moves
]
fresh = overlap_and_error(SeparateDPP(n_draws=300, kernel="linear", random_state=1))

figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
labels = ("overlap with the time step before", "error of inclusion probabilities")
for ax, values, level, label in zip(axes, np.transpose(followed), fresh, labels):
    ax.plot(range(len(moves)), values, "o-", color="#0072B2", label="followed")
    ax.axhline(level, color="black", ls="--", lw=1, label="independent draws")
    ax.set_xticks(range(len(moves)), moves)
    ax.set(xlabel="moves of each subset at each time step", ylabel=label)
    ax.set_ylim(0, 1.25 * max(values.max(), level))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)

# sphinx_gallery_thumbnail_number = 2
