"""
Topics that explain a rating: supervised LDA
============================================

Reviews come with stars. A supervised topic model learns topics from words and ratings together: each topic has words
and a coefficient, and the rating of a document is the mean of the coefficients over its words, plus noise. Some ratings
may be missing; those documents take part with their words.
"""

# %%
# Six topics, of which two matter
# -------------------------------
# 500 documents of 30 words: 300 to learn from, 200 to predict. Four topics say nothing about the rating, one lowers
# it, one raises it. Everything is sampled, coefficients and noise too, so that forecasts have error bars: 90 % of them
# should hold the rating.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

from pluri.datasets import make_rated_documents
from pluri.metrics import match_topics
from pluri.topics import LatentDirichletAllocation, SupervisedLDA

data = make_rated_documents(
    n_documents=500, n_words_per_document=30, n_words=100, coef=(-1, 0, 0, 0, 0, 1), noise_scale=0.1,
    doc_topic_prior=0.4, random_state=0,
)  # fmt: skip
X, y, new, stars = data.X[:300], data.y[:300], data.X[300:], data.y[300:]
settings = {"doc_topic_prior": 0.4, "n_warmup": 150, "n_draws": 10, "random_state": 0}

model = SupervisedLDA(6, **settings).fit(X, y)
mean, deviation = model.predict(new, return_std=True)
inside = np.abs(stars - mean) < 1.645 * deviation
print(f"explained variance of new ratings: {r2_score(stars, mean):.2f}")
noise = f"noise {np.sqrt(model.noise_):.2f}, true {data.noise_scale}"
print(f"{noise}; ratings inside their 90 % intervals: {inside.mean():.0%}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.7), layout="constrained")
partner = match_topics(data.topic_word, model.topic_word_).pairs[:, 1]
draws = model.coef_draws_[:, partner]
left.axhline(0.0, color="0.85", lw=1)
left.boxplot(draws, positions=range(6), widths=0.5, showfliers=False, medianprops={"color": "#0072B2", "lw": 2})
left.plot(range(6), data.coef, "D", color="#D55E00", ms=6, label="true", zorder=3)
left.set_xticks(range(6), range(6))
left.set(xlabel="topic", ylabel="coefficient, all draws")
left.legend(frameon=False)
order = np.argsort(mean)
right.fill_between(
    range(200), (mean - 1.645 * deviation)[order], (mean + 1.645 * deviation)[order], color="#0072B2", alpha=0.2, lw=0,
    label="90 % interval",
)  # fmt: skip
right.plot(mean[order], color="#0072B2", lw=2, label="forecast")
right.plot(stars[order], ".", color="#D55E00", ms=5, label="rating")
right.set(xlabel="new documents, by forecast", ylabel="rating")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Is it worth it?
# ---------------
# The rival is plain: topics without ratings first, a regression on the shares of the topics afterwards. With as many
# topics as there are in the documents both predict equally well. With fewer, the supervised model spends them on what
# matters for the rating, if it can: one rating says little beside thirty words.

numbers = [2, 3, 4, 6, 8]
penalties = np.logspace(-3, 4, 15)
supervised, in_two_steps = [], []
for number in numbers:
    fitted = SupervisedLDA(number, **settings).fit(X, y)
    supervised.append(r2_score(stars, fitted.predict(new)))
    topics = LatentDirichletAllocation(
        number, inference="gibbs", doc_topic_prior=0.4, topic_word_prior=0.1, random_state=0
    ).fit(X)
    regression = RidgeCV(penalties).fit(topics.transform(X), y)
    in_two_steps.append(r2_score(stars, regression.predict(topics.transform(new))))

# %%
# Few ratings
# -----------
# Where ratings are rare and documents are not, topics help most: a regression on words has a hundred coefficients to
# learn, the topic model six, and all 300 documents teach it the topics. Unknown ratings are NaN.

known = [10, 20, 40, 80, 300]
with_topics, on_words = [], []
for n in known:
    partly = np.where(np.arange(300) < n, y, np.nan)
    with_topics.append(r2_score(stars, SupervisedLDA(6, **settings).fit(X, partly).predict(new)))
    on_words.append(r2_score(stars, RidgeCV(penalties).fit(X[:n].toarray(), y[:n]).predict(new.toarray())))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.5), sharey=True, layout="constrained")
left.plot(numbers, supervised, "o-", color="#0072B2", label="supervised topics")
left.plot(numbers, in_two_steps, "s--", color="#E69F00", label="topics, then regression")
left.set(xlabel="number of topics", ylabel="explained variance of new ratings", ylim=(-0.05, 1.0), xticks=numbers)
right.plot(known, with_topics, "o-", color="#0072B2", label="six supervised topics")
right.plot(known, on_words, "s--", color="#009E73", label="regression on words")
right.set(xlabel="ratings that are known", xscale="log")
right.set_xticks(known, known)
right.minorticks_off()
for ax in (left, right):
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
