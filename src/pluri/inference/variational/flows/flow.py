"""A normalizing flow: layers one after the other, on one flat parameter array, over a standard normal base.

``z_K = f_K(... f_1(z_0))`` with ``z_0 ~ N(0, I)`` and
``log q(z_K) = log N(z_0; 0, I) - sum_k log |det df_k / dz_(k-1)|``. Without layers it is the base itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from pluri.inference.variational.flows.coupling import AffineCoupling
from pluri.inference.variational.flows.elementwise import ElementwiseAffine
from pluri.inference.variational.flows.layer import Array, Cache, Layer
from pluri.inference.variational.flows.planar import Planar
from pluri.inference.variational.flows.radial import Radial
from pluri.inference.variational.flows.spline_coupling import SplineCoupling
from pluri.validation import Only, Whole, check_value

FLOWS = ("planar", "radial", "mixed", "coupling", "spline")


@dataclass(frozen=True)
class Flow:
    """Layers in the order in which `forward` applies them; itself a layer.

    Parameters
    ----------
    dim : int
        Number of columns.
    layers : tuple of Layer

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import Flow, Planar, Radial
    >>> flow, rng = Flow(2, (Planar(2), Radial(2))), np.random.default_rng(0)
    >>> parameters = flow.initialize(rng, 0.3)
    >>> z = flow.sample(parameters, 4, rng)
    >>> flow.log_prob(parameters, z).shape
    (4,)
    """

    dim: int
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        wrong = [layer.dim for layer in self.layers if layer.dim != self.dim]
        if wrong:
            raise ValueError(f"layers must all have dim {self.dim}, got one with dim {wrong[0]}")

    @property
    def n_parameters(self) -> int:
        """Those of all layers."""
        return sum(layer.n_parameters for layer in self.layers)

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """Parameters of the layers, one after the other."""
        return np.concatenate([np.zeros(0), *(layer.initialize(rng, scale) for layer in self.layers)])

    def split(self, parameters: Array) -> list[Array]:
        """Parameters of each layer: views, not copies."""
        ends = accumulate((layer.n_parameters for layer in self.layers), initial=0)
        return [parameters[start:end] for start, end in pairwise(ends)]

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        total, caches = np.zeros(len(z)), []
        for layer, own in zip(self.layers, self.split(parameters)):
            z, log_det, cache = layer.forward(own, z)
            total += log_det
            caches.append(cache)
        return z, total, caches

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        total = np.zeros(len(y))
        for layer, own in zip(reversed(self.layers), reversed(self.split(parameters))):
            y, log_det = layer.inverse(own, y)
            total += log_det
        return y, total

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        gradients: list[Array] = []
        for layer, own, kept in zip(reversed(self.layers), reversed(self.split(parameters)), reversed(cache)):
            grad_y, gradient = layer.backward(own, kept, grad_y, grad_log_det)
            gradients.append(gradient)
        return grad_y, np.concatenate([np.zeros(0), *reversed(gradients)])

    def sample(self, parameters: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw rows: base draws through `forward`."""
        return self.forward(parameters, rng.standard_normal((n_samples, self.dim)))[0]

    def log_prob(self, parameters: Array, y: Array) -> Array:
        """Log density at any rows, through `inverse`."""
        z, log_det = self.inverse(parameters, y)
        return log_standard_normal(z) + log_det


def log_standard_normal(z: Array) -> Array:
    """Log density of N(0, I) at the rows of z."""
    return -0.5 * (np.einsum("nd,nd->n", z, z) + z.shape[1] * np.log(2.0 * np.pi))


@dataclass(frozen=True)
class FlowDesign:
    """What a flow is to be made of, whatever the number of coordinates; see :func:`build_flow`.

    Parameters
    ----------
    kind : {"planar", "radial", "mixed", "coupling", "spline"}, default="planar"
    n_layers : int, default=8
    hidden, n_bins, bound
        Networks and splines of the coupling layers.
    base : {"standard", "learned"}, default="standard"
        Whether the base normal has means and scales of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import FlowDesign
    >>> len(FlowDesign("spline", n_layers=2, hidden=(16,)).build(3, np.random.default_rng(0)).layers)
    3
    """

    kind: str = "planar"
    n_layers: int = 8
    hidden: tuple[int, ...] = (32,)
    n_bins: int = 8
    bound: float = 5.0
    base: str = "standard"

    def __post_init__(self) -> None:
        check_value(self.kind, "flow", Only(*FLOWS))
        check_value(self.n_layers, "n_layers", Whole(0))

    def build(self, dim: int, rng: np.random.Generator) -> Flow:
        """The flow, for a number of coordinates."""
        return build_flow(
            self.kind, dim, self.n_layers, rng, hidden=tuple(self.hidden), n_bins=self.n_bins, bound=self.bound,
            base=self.base,
        )  # fmt: skip


def build_flow(
    kind: str,
    dim: int,
    n_layers: int,
    rng: np.random.Generator,
    *,
    hidden: tuple[int, ...] = (32,),
    activation: str = "tanh",
    n_bins: int = 8,
    bound: float = 5.0,
    base: str = "standard",
) -> Flow:
    """Make a flow of a kind; its parameters still have to be initialised.

    Parameters
    ----------
    kind : {"planar", "radial", "mixed", "coupling", "spline"}
        Mixed is planar and radial in turn. A coupling layer changes half of the coordinates, the next one the other
        half; each pair of layers has a new random division. A spline flow ends with an elementwise affine layer, as
        the splines themselves do not leave their box.
    dim, n_layers : int
    rng : numpy.random.Generator
        For the divisions of the coordinates.
    hidden, activation
        Networks of the coupling layers.
    n_bins, bound
        Splines; see `SplineCoupling`.
    base : {"standard", "learned"}
        Learned: an elementwise affine layer comes first, so that the base is a normal with its own means and scales.

    Returns
    -------
    Flow

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import build_flow
    >>> flow = build_flow("mixed", dim=2, n_layers=3, rng=np.random.default_rng(0))
    >>> [type(layer).__name__ for layer in flow.layers]
    ['Planar', 'Radial', 'Planar']
    """
    check_value(kind, "flow", Only(*FLOWS))
    check_value(base, "base", Only("standard", "learned"))
    layers: list[Layer] = [ElementwiseAffine(dim)] if base == "learned" else []
    order = list(range(dim))
    for index in range(n_layers):
        if kind in ("planar", "radial", "mixed"):
            planar = kind == "planar" or (kind == "mixed" and index % 2 == 0)
            layers.append(Planar(dim) if planar else Radial(dim))
            continue
        if index % 2 == 0:
            order = rng.permutation(dim).tolist()
        half = dim // 2
        passes, changes = tuple(sorted(order[:half])), tuple(sorted(order[half:]))
        if index % 2 == 1 and dim > 1:
            passes, changes = changes, passes
        if kind == "coupling":
            layers.append(AffineCoupling(passes, changes, hidden, activation))
        else:
            layers.append(SplineCoupling(passes, changes, hidden, activation, n_bins, bound))
    if kind == "spline" and n_layers:
        layers.append(ElementwiseAffine(dim))
    return Flow(dim, tuple(layers))
