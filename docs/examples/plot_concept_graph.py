"""
A graph of concepts: topics below several others
================================================

In a concept graph a topic may lie below several others: ice hockey below winter and below sport. Each document takes
one path from the root, as long as it likes, and draws its words from the concepts on the path. How many concepts there
are, which lies below which, and where each document goes is learned together, from words alone.
"""

# %%
# Ten concepts, fourteen edges
# ----------------------------
# 400 documents of 80 words over 200 words, drawn from a graph of four levels. One of its edges, from 7 to 9, is
# taken by one document in a hundred.

import matplotlib.pyplot as plt
import numpy as np

from pluri.datasets import make_concept_graph_documents
from pluri.metrics import match_topics
from pluri.plotting import TopicGraphDisplay
from pluri.topics import ConceptGraph

data = make_concept_graph_documents(n_documents=400, n_words_per_document=80, n_words=200, random_state=0)
model = ConceptGraph(n_levels=4, n_warmup=30, n_draws=15, random_state=2).fit(data.X)
print(
    f"{model.n_topics_} concepts, {len(model.edges_)} edges; prior of words {model.topic_word_prior_:.3f}, true 0.025"
)

# %%
# The true graph and the one that was found, each concept named by the true one whose words it has (cosine above 0.9).
# Discs are as large as the share of the words, edges as wide as the probability of the step.

match = match_topics(data.topic_word, model.topic_word_)
true_of = {int(found): int(true) for (true, found), alike in zip(match.pairs, match.similarity) if alike > 0.9}
names = [str(true_of.get(node, "?")) for node in range(model.n_topics_)]
share = data.topic_counts.sum(axis=0) / data.topic_counts.sum()

figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
TopicGraphDisplay([str(i) for i in range(10)], share, data.depth, data.edges, data.edge_probability).plot(
    ax=axes[0], title="true", font_size=11
)
TopicGraphDisplay(names, model.topic_weight_, model.node_depth_, model.edges_, model.edge_probability_).plot(
    ax=axes[1], title="learned", font_size=11
)

# %%
# How far to trust an edge
# ------------------------
# ``edge_count_`` is the number of documents that take an edge, ``edge_stability_`` the share of the draws that have it.
# Other starts set a handful of documents apart and have a concept or two more (they would get a question mark here), in
# all of their draws: stability within one chain proves little. Their log joint probability is lower. Run several chains
# (``n_chains``); the likeliest is kept.

true_count = {f"{upper} -> {lower}": count for (upper, lower), count in zip(data.edges, data.edge_counts)}
print("edge      documents  true  stability")
for (upper, lower), count, stability in zip(model.edges_, model.edge_count_, model.edge_stability_):
    edge = f"{names[upper]} -> {names[lower]}"
    print(f"{edge}  {count:10d}  {true_count.get(edge, 0):4d}  {stability:9.2f}")

# %%
# New documents
# -------------
# ``predict`` gives the concept at which the path of a document most probably ends, ``paths`` the path. Documents drawn
# from the graph itself show how many words that takes.

for length in (5, 20, 80):
    new, paths = model.sample(300, length, random_state=0)
    last = paths[np.arange(300), (paths >= 0).sum(axis=1) - 1]
    print(f"documents of {length} words: last concept right in {np.mean(model.predict(new) == last):.0%}")

# %%
# Where chains start
# ------------------
# The default start puts plain topics into levels (``init="topics"``). The published one puts all documents at the root
# (``init="root"``), from where a chain has to find everything by itself; it hardly ever does. The log joint probability
# tells them apart without knowing the truth.

lost = ConceptGraph(n_levels=4, init="root", n_warmup=30, n_draws=15, random_state=2).fit(data.X)
figure, ax = plt.subplots(figsize=(6.4, 2.9), layout="constrained")
for fit, name, color in ((model, "plain topics in levels", "#0072B2"), (lost, "all at the root", "#D55E00")):
    found = match_topics(data.topic_word, fit.topic_word_).n_above(0.9)
    ax.plot(range(31, 46), fit.log_joint_[0], "o-", ms=4, color=color, label=f"{name}: {found} of 10 concepts")
ax.set(xlabel="sweep", ylabel="log joint probability")
ax.legend(frameon=False, loc="center right")
ax.spines[["top", "right"]].set_visible(False)
