"""
Networks that have met their own mistakes: scheduled sampling
=============================================================

Labels that seldom change are a trap for a network that is told the true label before each one: it copies, and is lost
when it has to go by its own. Scheduled sampling feeds it its own labels while it learns. (Needs JAX:
``pip install "pluri[jax]"``.)
"""

# %%
# Two ways of training
# --------------------
# Frames of four labels. The same network learns with the true label before each frame, and with its own more and more
# often.

import matplotlib.pyplot as plt
import numpy as np

from pluri.datasets import make_sticky_frames
from pluri.networks import FrameTagger
from pluri.plotting import PositionErrorDisplay

data = make_sticky_frames(160, length=40, n_states=6, random_state=0)
X, y = np.split(data.X, 160), np.split(data.states, 160)
settings = {"hidden_size": 24, "max_epochs": 30, "n_iter_no_change": 30, "random_state": 0}
taggers = {
    "always told the truth": FrameTagger("rnn", schedule=None, **settings).fit(X[:120], y[:120]),
    "told less and less": FrameTagger("rnn", **settings).fit(X[:120], y[:120]),
}
for name, tagger in taggers.items():
    scores = tagger.evaluate(X[120:], y[120:])
    print(f"{name:>22}: wrong {scores.teacher_forced_error:.3f} told the label before, "
          f"{scores.free_running_error:.3f} on its own")  # fmt: skip

# %%
# Where the errors are
# --------------------
# A mistake early in a sequence is carried on by the network that never saw one.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, tagger) in zip(axes, taggers.items()):
    PositionErrorDisplay.from_estimator(tagger, X[120:], y[120:], ax=ax, title=name)
plt.show()
