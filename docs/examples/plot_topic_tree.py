"""
Trees of topics: hierarchical models
====================================

Two models arrange topics in a tree, general words at the top. In hierarchical LDA every document walks down one path
and never sees the other branches. In a tree of topics with scales, a document mixes branches, each word belongs to one
level, and a node may have several parents. Which of them fits is a question about the documents; here each gets those
that it was made for, and then the first one gets those of the second.
"""

# %%
# One path for each document
# --------------------------
# Ten general words, three subjects of eight words, two special fields of five words below each. Every document has one
# subject, from which most of its words come, and one of its fields.

import numpy as np

from pluri.datasets import make_tree_documents
from pluri.plotting import TopicGraphDisplay
from pluri.topics import HierarchicalLDA, HierarchicalPachinko, LatentDirichletAllocation, TreeTopicModel

general = "time people year day place part world hand life way"
subjects = "sea river forest animal bird weather travel summer hotel city street train "
subjects += "market kitchen cook dinner taste fresh recipe oven"
fields = "whale dolphin shark seal coral hike trail summit tent glacier salmon boat harbour net trout "
fields += "museum statue gallery ticket guide wine cheese vineyard cellar grape bread flour butter sugar cake"
words = np.array(f"{general} {subjects} {fields}".split())

data = make_tree_documents(n_documents=200, n_words_per_document=80, random_state=0)
rng = np.random.default_rng(0)
ends = rng.integers(6, size=200)
levels = rng.dirichlet([4, 12, 4], size=200)
mixed = np.einsum("dl,dlw->dw", levels, data.topic_word[np.column_stack([0 * ends, 1 + ends // 2, 4 + ends])])
X = rng.multinomial(80, mixed / mixed.sum(axis=1, keepdims=True))

settings = {"n_levels": 3, "concentration": 0.5, "topic_word_prior": (1.0, 0.5, 0.1), "n_warmup": 150, "n_draws": 20}
paths = HierarchicalLDA(**settings, n_chains=4, random_state=0).fit(X).name_words(words)
TopicGraphDisplay.from_estimator(paths, title="hierarchical LDA: a path for each document")

# %%
# The number of branches was not given. This is the likeliest tree of four chains, and it has small branches that are
# not needed. Chains do not agree on the number, because documents move between branches one at a time and a chain
# seldom leaves the tree that it has made early: run several (``n_chains``), and trust what they have in common.

for chain, (nodes, value) in enumerate(zip(paths.n_nodes_trace_[:, -1], paths.log_joint_[:, -1])):
    print(f"chain {chain}: nodes of each level {nodes.tolist()}, log joint {value:.0f}")

# %%
# Documents that mix branches
# ---------------------------
# Now every document has words of all three subjects in shares of its own, and three of the six fields lie below two
# subjects: fishing belongs to nature and to food. A path cannot say that; hierarchical LDA makes a branch for every
# mixture. The tree with scales keeps to the size it is given.

tree = (
    TreeTopicModel(
        max_depth=3, max_nodes=(1, 4, 8), topic_word_prior=0.1, n_warmup=300, n_draws=20, thin=1, random_state=0
    )
    .fit(data.X)
    .name_words(words)
)
TopicGraphDisplay.from_estimator(tree, title="tree with scales: words of one level each")

# %%
# The general words are found, all ten of them, and the words of the other two levels are told apart too: 20 and 30, as
# they were made. The children are not those that the documents were made with. Documents choose among subjects only, so
# that they tell what the fields of a subject are *together*, not one by one: a field below two subjects may as well be
# two fields with the same words, and from chain to chain it is sometimes one and sometimes the other. Do not read such
# a tree as *the* tree.

root_words = words[tree.word_scale_ == 0]
print("words of the root:", " ".join(root_words))
print("words of each level:", np.bincount(tree.word_scale_))
print("nodes with two parents or more:", len(tree.shared_children(threshold=0.1)))

# %%
# Who predicts new documents?
# ----------------------------
# Half of the words of 100 new documents, given the other half, in nats per word. Ten flat topics do as well as any
# tree: a tree is there to be read, not to predict better. The last line is the score that was published for trees of
# this kind. It takes the level of each word as known, from the very word that is scored; so it is about one nat too
# good, and comparing it with the others would be a mistake.

new = make_tree_documents(n_documents=100, n_words_per_document=80, random_state=1).X
crowded = HierarchicalLDA(**settings, random_state=0).fit(data.X)
rivals = {
    f"hierarchical LDA, {crowded.n_topics_} nodes": crowded,
    f"tree with scales, {sum(tree.nodes_per_scale_)} nodes": tree,
    "Pachinko allocation, 10 nodes": HierarchicalPachinko(3, 6, n_warmup=200, n_draws=10, random_state=0).fit(data.X),
    "LDA, 10 topics": LatentDirichletAllocation(
        10, inference="gibbs", doc_topic_prior="learn", topic_word_prior="learn", random_state=0
    ).fit(data.X),
}
for name, model in rivals.items():
    print(f"{name:32s} {model.held_out(new, random_state=0).per_word:.2f}")
given_levels = tree.held_out(new, "conditional_scale", random_state=0).per_word
print(f"{'given levels: no probability':32s} {given_levels:.2f}")
