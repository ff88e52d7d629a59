"""Scheduled sampling: a loss in which the network is fed its own tokens some of the time.

At each step a coin decides whether the true token or one of the network's own is fed next; the target is always the
true one, and no gradient goes through the choice:

    loss = - mean_t log p(y_t | fed_1 .. fed_(t-1)),   fed_t = y_t with probability eps, else a draw from p_t.

With eps < 1 the target belongs to the true prefix although the network saw another one, so the optimum is not the
distribution of the data: for sequences "00" and "11" of equal probability it is ``P(y_2 = a | a) = (1 + eps) / 2``.

References
----------
Bengio, Vinyals, Jaitly and Shazeer (2015), Scheduled sampling for sequence prediction with recurrent neural networks,
NeurIPS.
Jang, Gu and Poole (2017), Categorical reparameterization with Gumbel-softmax, ICLR (`sampling_grad="gumbel"`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.networks.backend import jax, jnp
from pluri.networks.design import Design, Network, advance, begin, draw_drops, logits

FEEDBACKS = ("sample", "argmax", "uniform")
COINS = ("token", "sequence")


@dataclass(frozen=True)
class SampledLoss:
    """Mean negative log-probability of the true tokens; a function of parameters, batch and key.

    The batch is a dict: "targets" (n_rows, length), "mask" (n_rows, length), the source's arrays
    (`pluri.networks.design.begin`) and, unless `feedback` is None, "eps" (a number) and what `draw` gives.

    Parameters
    ----------
    design : Design
    feedback : {"sample", "argmax", "uniform"} or None
        What is fed in place of the true token; None for teacher forcing, which has no coin.
    coin : {"token", "sequence"}
    sampling_grad : {"gumbel"} or None
    temperature : float
        Of the straight-through Gumbel-softmax.
    confidence : bool
        Whether the network's token is fed with probability ``(1 - eps) max p_t`` instead of ``1 - eps``.
    dropout : float
    """

    design: Design
    feedback: str | None = "sample"
    coin: str = "token"
    sampling_grad: str | None = None
    temperature: float = 1.0
    confidence: bool = False
    dropout: float = 0.0

    def __call__(self, network: Network, batch: Any, key: Any) -> Any:
        found = self.log_probs(network, batch, key)
        weight = batch["mask"].astype(found.dtype)
        return -jnp.sum(found * weight) / jnp.maximum(weight.sum(), 1.0)

    def log_probs(self, network: Network, batch: Any, key: Any) -> Any:
        """Log-probabilities of the targets, (n_rows, length)."""
        features = self.run(network, batch, key)[0]
        scores = jax.nn.log_softmax(logits(network, features), axis=-1)
        targets = jnp.swapaxes(batch["targets"], 0, 1)
        known = jnp.minimum(targets, self.design.n_outputs - 1)[..., None]  # what is unknown is masked
        return jnp.swapaxes(jnp.take_along_axis(scores, known, axis=-1)[..., 0], 0, 1)

    def run(self, network: Network, batch: Any, key: Any) -> tuple[Any, Any]:
        """Features (length, n_rows, ...) of all steps, and the tokens (length, n_rows) that were fed after each."""
        targets = jnp.swapaxes(batch["targets"], 0, 1)
        drops = draw_drops(network, targets.shape[1], self.dropout, key)
        start = begin(network, self.design, batch, drops)
        frames = jnp.swapaxes(batch["frames"], 0, 1) if self.design.source == "frames" else None
        chance = None if self.feedback is None else (batch["coin"], batch.get("noise"))

        def move(carry: Any, seen: Any) -> Any:
            state, fed = carry
            target, frame, here = seen
            state, features = advance(network, state, fed, frame, start.memory, drops)
            token, fed = self._feed(network, features, target, here, batch.get("eps"))
            return (state, fed), (features, token)

        _, found = jax.lax.scan(move, (start.state, start.fed), (targets, frames, chance))
        return found

    def draw(self, rng: np.random.Generator, length: int, n_rows: int) -> dict[str, NDArray[Any]]:
        """The random numbers of a batch, drawn before the first step; time is the first axis.

        "coin" (length, n_rows): the network's own token is fed where it is below ``1 - eps``. "noise": Gumbel numbers
        (length, n_rows, n_outputs), since adding them and taking the largest draws from a softmax without cumulative
        sums; tokens (length, n_rows) with uniform feedback. By NumPy: JAX's generator would take longer to compile than
        all the rest.
        """
        if self.feedback is None:
            return {}
        coin = rng.random((1 if self.coin == "sequence" else length, n_rows), dtype=np.float32)
        found: dict[str, NDArray[Any]] = {"coin": np.broadcast_to(coin, (length, n_rows))}
        if self.feedback == "uniform":
            found["noise"] = rng.integers(self.design.n_outputs, size=(length, n_rows), dtype=np.int32)
        elif self.feedback == "sample":
            shape = (length, n_rows, self.design.n_outputs)
            found["noise"] = -np.log(np.maximum(rng.standard_exponential(shape, dtype=np.float32), 1e-30))
        return found

    def _feed(self, network: Network, features: Any, target: Any, chance: Any, eps: Any) -> Any:
        """The token that goes into the next step, and its embedding."""
        if chance is None:
            return target, network.embedding[target]
        coin, noise = chance
        if self.feedback == "uniform" and not self.confidence:
            token = jnp.where(coin < 1.0 - eps, noise, target)
            return token, network.embedding[token]
        through = self.sampling_grad is not None
        scores = logits(network, features if through else jax.lax.stop_gradient(features))
        own_share = 1.0 - eps
        if self.confidence:
            own_share = own_share * jax.lax.stop_gradient(jax.nn.softmax(scores, axis=-1).max(axis=-1))
        is_own = coin < own_share
        noisy = scores + noise if self.feedback == "sample" else scores
        own = noise if self.feedback == "uniform" else jnp.argmax(noisy, axis=-1)
        token = jnp.where(is_own, own, target)
        if not through:
            return token, network.embedding[token]
        soft = jax.nn.softmax(noisy / self.temperature, axis=-1)
        hard = jax.nn.one_hot(own, self.design.n_outputs, dtype=soft.dtype)
        mixed = (soft + jax.lax.stop_gradient(hard - soft)) @ network.embedding[: self.design.n_outputs]
        return token, jnp.where(is_own[:, None], mixed, network.embedding[target])
