"""One line of evidence (a quantity, a test, a p-value) and the plain table that many lines make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pluri.testing.false_alarms import holm


class SamplerError(AssertionError):
    """A sampler failed a test of its correctness."""


@dataclass(frozen=True)
class Comparison:
    """A test of one quantity.

    Attributes
    ----------
    quantity : str
        What was looked at: a coordinate, a product of two, a statistic of the user's.
    test : str
        How: ``ks``, ``location``, ``spread``, ``chi-square``, ...
    statistic, p_value : float
    """

    quantity: str
    test: str
    statistic: float
    p_value: float


def overall_p_value(comparisons: Sequence[Comparison]) -> float:
    """The smallest p-value, corrected for how many there are (Bonferroni; holds under any dependence)."""
    return min(1.0, len(comparisons) * min((c.p_value for c in comparisons), default=1.0))


@dataclass(frozen=True)
class Outcome:
    """What a test of a sampler came to; the results of all tests share this.

    Attributes
    ----------
    comparisons : tuple of Comparison
        All that was compared.
    passed : bool
    alpha : float
        Probability with which a correct sampler fails.
    interrupted : bool
        Whether Ctrl-C cut the replications short; the p-values are those of the replications made.
    """

    comparisons: tuple[Comparison, ...]
    passed: bool
    alpha: float
    interrupted: bool = False

    @property
    def p_value(self) -> float:
        """Smallest p-value, corrected for the number of comparisons."""
        return overall_p_value(self.comparisons)

    @property
    def worst(self) -> Comparison:
        """The comparison with the smallest p-value."""
        return min(self.comparisons, key=lambda c: c.p_value)

    def headline(self) -> str:
        """One line about all."""
        verdict = "passed" if self.passed else "FAILED"
        return f"{verdict}: corrected p = {self.p_value:.3g} over {len(self.comparisons)} comparisons"

    def summary(self, n_worst: int = 8) -> str:
        """Headline and the comparisons with the smallest p-values, as a plain table."""
        corrected = holm([c.p_value for c in self.comparisons])
        order = sorted(range(len(corrected)), key=lambda i: self.comparisons[i].p_value)[:n_worst]
        rows = [
            (c.quantity, c.test, f"{c.statistic:.4g}", f"{c.p_value:.3g}", f"{corrected[i]:.3g}")
            for i, c in ((i, self.comparisons[i]) for i in order)
        ]
        return self.headline() + "\n" + aligned(("quantity", "test", "statistic", "p-value", "corrected"), rows, 2)

    def raise_if_failed(self) -> None:
        """Raise a `SamplerError` with the summary if the sampler failed."""
        if not self.passed:
            raise SamplerError(self.summary())

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """Table of plain text: the first `n_left` columns to the left, the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(w) if j < n_left else cell.rjust(w) for j, (cell, w) in enumerate(zip(line, widths)))
        .rstrip()
        for line in lines
    )  # fmt: skip
