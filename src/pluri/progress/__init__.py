"""Showing how a fit is going: our own display, and scikit-learn's callbacks."""

from typing import TYPE_CHECKING, Any

from pluri.progress.bar import Step, open_progress

if TYPE_CHECKING:
    from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks

__all__ = ["CallbackSupport", "Step", "fit_callbacks", "open_progress", "with_callbacks"]


def __getattr__(name: str) -> Any:
    # scikit-learn takes a while to import, and only estimators need it.
    if name in {"CallbackSupport", "fit_callbacks", "with_callbacks"}:
        from pluri.progress import callbacks

        return getattr(callbacks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
