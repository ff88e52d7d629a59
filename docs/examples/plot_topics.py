"""
Topics, and how many: latent Dirichlet allocation
=================================================

Latent Dirichlet allocation can be learned in four ways, and they do not find the same topics. Which of them found the
better ones is a question for documents that no model has seen. So is the number of topics, unless a model is asked that
has an opinion of its own.
"""

# %%
# Ten bars in a grid
# ------------------
# The words are the 25 cells of a grid, the topics its rows and columns, and each document is a heap of 50 words from
# several bars. Nothing says which words are neighbours. Every algorithm gets the same documents, the same priors, and
# three starts.

import time

import matplotlib.pyplot as plt
import numpy as np

from pluri.datasets import make_bars, make_topic_documents
from pluri.metrics import match_topics
from pluri.plotting import ComponentCountDisplay
from pluri.topics import HDPTopicModel, LatentDirichletAllocation

bars = make_bars(size=5, n_documents=400, length=50, doc_topic_prior=1.0, random_state=0)
new = make_bars(size=5, n_documents=200, length=50, doc_topic_prior=1.0, random_state=1)
algorithms = {
    "gibbs": {"n_warmup": 100},
    "vb": {"max_iter": 60},
    "svi": {"max_iter": 30},
    "em": {"max_iter": 60},
}
LatentDirichletAllocation(10, inference="gibbs", n_warmup=1, n_draws=1).fit(bars.X)  # compile
fits = {}
for algorithm, options in algorithms.items():
    began = time.perf_counter()
    fits[algorithm] = [
        LatentDirichletAllocation(
            10, inference=algorithm, doc_topic_prior=1.0, topic_word_prior=0.1, random_state=start, **options
        ).fit(bars.X)
        for start in range(3)
    ]
    seconds = (time.perf_counter() - began) / 3
    perplexity = [model.held_out(new.X, random_state=0).perplexity for model in fits[algorithm]]
    found = [match_topics(bars.topic_word, model.topic_word_).n_above(0.95) for model in fits[algorithm]]
    print(f"{algorithm:5s}  bars found {found}  held-out perplexity {np.round(perplexity, 1)}  {seconds:.1f} s a fit")

# %%
# The bars as they are, and as the first start of each algorithm sees them. Gibbs sampling can leave a poor solution
# because it moves at random; the others climb to the nearest top, and there are many. More starts (``n_init``) help
# them, and so would documents of fewer topics: these mix all ten bars (``doc_topic_prior=1``), which is harder than
# most texts.

figure, axes = plt.subplots(5, 10, figsize=(9.2, 4.9), layout="constrained")
shown = {"the bars": bars.topic_word}
for algorithm, (model, *_) in fits.items():
    shown[algorithm] = model.topic_word_[match_topics(bars.topic_word, model.topic_word_).pairs[:, 1]]
for row, (name, topics) in zip(axes, shown.items()):
    row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=11)
    for ax, topic in zip(row, topics):
        ax.imshow(topic.reshape(5, 5), cmap="Blues", vmin=0.0, vmax=0.22)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("0.8")

# %%
# How many topics?
# ----------------
# Documents drawn from twelve topics; 200 of them are held out. Half of the words of each of these is predicted from the
# other half. Too few topics are punished at once; too many hardly, if the priors are learned
# (``doc_topic_prior="learn"``, ``topic_word_prior="learn"``): topics that are not needed become small. The curve tells
# where it stops to pay, not where the truth is.

data = make_topic_documents(
    n_documents=800, n_words_per_document=80, n_words=400, n_topics=12, doc_topic_prior=0.1, random_state=3
)
train, test = data.X[:600], data.X[600:]
numbers = [2, 4, 8, 12, 24]
curve = []
for number in numbers:
    model = LatentDirichletAllocation(
        number,
        inference="gibbs",
        doc_topic_prior="learn",
        topic_word_prior="learn",
        n_warmup=100,
        n_draws=5,
        random_state=1,
    ).fit(train)
    curve.append(model.held_out(test, random_state=0).perplexity)

# %%
# A hierarchical Dirichlet process has no number to choose. Its draws have topics of a handful of tokens that come and
# go, so slowly that a warning says that the chains have not settled; the number of topics with at least one percent of
# the tokens is the steadier one. Report that, with the interval.

process = HDPTopicModel(topic_word_prior=0.05, n_warmup=200, n_draws=50, random_state=0).fit(train)
print(process.summary(n_topics=3))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.5), width_ratios=(1.3, 1.0), layout="constrained")
left.plot(numbers, curve, "o-", color="#0072B2", label="LDA, learned priors")
level = process.held_out(test, random_state=0).perplexity
left.axhline(level, color="#D55E00", lw=1.5, ls="--", label="hierarchical Dirichlet process")
left.set(xlabel="number of topics", ylabel="held-out perplexity", xscale="log", ylim=(0, None))
left.set_xticks(numbers, numbers)
left.minorticks_off()
left.legend(frameon=False)
left.spines[["top", "right"]].set_visible(False)
ComponentCountDisplay(process.trace_.flat("n_topics")).plot(ax=right, title="all topics of a draw")
right.set_xlabel("number of topics")
print(f"topics of 1 % or more: {process.n_large_topics_}, interval {process.n_large_topics_interval_}")
