"""Small recurrent and convolutional networks on JAX that meet their own mistakes, and say what they do not know.

Needs ``pip install "pluri[jax]"`` (jax, equinox, optax). Decoders of sequences are trained by scheduled sampling.
"""

__all__: list[str] = []
