"""What to measure, try, label or choose next: decisions that spend the uncertainty of a model."""

from pluri.lazy_names import lazy_names

__all__: list[str] = []

__getattr__, __dir__ = lazy_names(__name__, {})
