"""
Word classes of an invented language: categorical hidden Markov models
======================================================================

`~pluri.datasets.make_zipf_tagging` draws sentences from an invented language: word classes with the frequencies of
English parts of speech, a hand-made grammar, words with Zipf frequencies. A `~pluri.sequences.CategoricalHMM` that
sees only the words looks for the classes. How many there are, and how strong a diversity prior to use, is chosen by
held-out likelihood.
"""

# %%
# Sentences
# ---------

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pluri.datasets import make_zipf_tagging
from pluri.metrics import many_to_one_accuracy, one_to_one_accuracy
from pluri.plotting import StateHistogramDisplay
from pluri.sequences import CategoricalHMM, HMMSearchCV, SymbolClassHMM

corpus = make_zipf_tagging(300, n_states=5, n_words=100, mean_length=15, as_words=True, random_state=0)
sentences = [words for words, states in corpus.sequences()]
print(" ".join(sentences[0][:, 0]))
print(f"{len(corpus.X)} words, {len(corpus.vocabulary)} of them distinct; classes: {', '.join(corpus.tags)}")

# %%
# Choose the number of states and the prior
# -----------------------------------------
# Three folds of whole sentences; the score is the log-likelihood of held-out words, for which no labels are needed. A
# concentration above 1 leaves unseen words a little probability, and ``unseen="missing"`` skips a word that the other
# folds do not have at all.

model = CategoricalHMM(emissionprob_prior=1.01, unseen="missing", n_init=2, n_iter=40, tol=0.1, random_state=0)
search = HMMSearchCV(
    model, {"n_components": [2, 3, 4, 5, 6], "diversity": [None, 1.0, 10.0, 100.0]}, cv=3, random_state=0
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # 40 iterations are enough to compare, and 100 is too strong on purpose
    search.fit(sentences)
print("best:", search.best_params_)

# %%
# No prior and a weak one can hardly be told apart; a strong one costs likelihood. The best number of states need not be
# the true one: what counts here is how well the next word is predicted from 3000 words of training text.

figure, ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
results = search.cv_results_
colors = ("#4D4D4D", "#0072B2", "#009E73", "#E69F00")
for strength, color, marker in zip((None, 1.0, 10.0, 100.0), colors, "os^D"):
    rows = [n for n, params in enumerate(results["params"]) if params["diversity"] == strength]
    states = [results["params"][n]["n_components"] for n in rows]
    name = "no prior" if strength is None else f"diversity {strength:g}"
    ax.plot(states, results["mean_test_score"][rows], color=color, marker=marker, label=name)
ax.axvline(5, color="0.8", zorder=0)
ax.set(xlabel="number of states (5 are true)", ylabel="held-out log-likelihood per word", xticks=range(2, 7))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# How often each class is used
# ----------------------------
# EM spreads the words over the states more evenly than the language does: it cuts the large class into pieces. A model
# in which each word belongs to one class, `~pluri.sequences.SymbolClassHMM`, is closer to how this language was made.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    settings = {"n_components": 5, "n_init": 10, "n_iter": 200, "random_state": 0}
    plain = CategoricalHMM(**settings).fit(sentences)
    diverse = CategoricalHMM(diversity=10.0, **settings).fit(sentences)
classes = SymbolClassHMM(5, n_chains=5, random_state=0).fit(sentences)
predictions = {
    "HMM": plain.predict(sentences),
    "diversity 10": diverse.predict(sentences),
    "SymbolClassHMM": classes.predict(sentences),
}
for name, states in predictions.items():
    one, many = one_to_one_accuracy(corpus.y, states), many_to_one_accuracy(corpus.y, states)
    print(f"{name:>15}: one-to-one {one:.3f}, many-to-one {many:.3f}, distinct states {len(np.unique(states))}")

StateHistogramDisplay.from_predictions(
    corpus.y, predictions, n_states=5, state_names=corpus.tags, normalize=True, title="share of each class"
)

# sphinx_gallery_thumbnail_number = 2
