"""The most probable topics and shares, by EM."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.lda.maximum.em import fit_maximum, fold_in

__all__ = ["fit_maximum", "fold_in"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "em": ["fit_maximum", "fold_in"],
    },
)
