"""How large a dictionary is, in several numbers since none of them is the answer; and merging of atoms that are alike.

The beta process lets hardly any atom die out completely; atoms that few rows use, or that add next to nothing, count as
in use all the same, and two atoms may share the work of one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.factors.dictionaries.records import Array

#: Share of the rows that counts as regular use, and of the power that counts as all of it.
REGULAR, ALL_BUT_LITTLE = 0.01, 0.99
#: Cosine of the angle between two atoms, up to sign, above which they are near duplicates.
ALIKE = 0.99


def effective_size(components: Array, usage: Array, power: Array) -> dict[str, int]:
    """Number of atoms by four rules.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
    usage : array of shape (n_components,)
        Share of the rows that use each atom.
    power : array of shape (n_components,)
        Sum over rows of the squared length of what an atom adds.

    Returns
    -------
    dict
        ``used``: atoms that any row uses; ``one_percent``: that at least 1 % of the rows use; ``distinct``: those of
        the latter that are left when near duplicates count once; ``power``: the fewest atoms with 99 % of the power.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sizes import effective_size
    >>> atoms = np.array([[1.0, 0], [-1, 0.01], [0, 1], [1, 1]])
    >>> effective_size(atoms, np.array([0.5, 0.3, 0.005, 0.0]), np.array([99.5, 0.4, 0.1, 0.0]))
    {'used': 3, 'one_percent': 2, 'distinct': 1, 'power': 1}
    """
    falling = np.sort(power)[::-1].cumsum()
    total = falling[-1]
    needed = int(np.searchsorted(falling, ALL_BUT_LITTLE * total)) + 1 if total > 0 else 0
    regular = usage >= REGULAR
    distinct = len(set(near_duplicates(components[regular], usage[regular]).tolist()))
    return {
        "used": int((usage > 0).sum()),
        "one_percent": int(regular.sum()),
        "distinct": distinct,
        "power": min(needed, len(power)),
    }


def near_duplicates(components: Array, usage: Array, least_cosine: float = ALIKE) -> NDArray[np.intp]:
    """For each atom the most used one that it is alike, itself if there is none.

    Atoms are taken in the order of their usage; one that is alike an earlier one, up to sign, joins it and attracts no
    others.
    """
    lengths = np.linalg.norm(components, axis=1)
    units = components / np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = np.abs(units @ units.T)
    leader = np.arange(len(components))
    leaders: list[int] = []
    for k in np.argsort(-usage, kind="stable").tolist():
        close = [j for j in leaders if cosines[k, j] > least_cosine]
        if close:
            leader[k] = close[0]
        else:
            leaders.append(k)
    return leader.astype(np.intp)


def merged(components: Array, usage: Array, least_cosine: float = ALIKE) -> tuple[Array, Array]:
    """How near duplicates become one atom: their usage-weighted mean, turned to the same side.

    The merged atom has the mean length of those it is made of, and is used by a row if any of them is, independently.

    Returns
    -------
    mixing : array of shape (n_merged, n_components)
        The new atoms are ``mixing @ components``, most used first.
    usage : array of shape (n_merged,)
    """
    leader = near_duplicates(components, usage, least_cosine)
    kept = np.unique(leader)
    mixing, shares = np.zeros((len(kept), len(components))), np.empty(len(kept))
    for row, k in enumerate(kept):
        group = np.flatnonzero(leader == k)
        weight = usage[group] / usage[group].sum()
        sides = np.where(components[group] @ components[k] < 0, -1.0, 1.0)
        mean = (weight * sides) @ components[group]
        length = float(weight @ np.linalg.norm(components[group], axis=1))
        mixing[row, group] = weight * sides * (length / max(float(np.linalg.norm(mean)), 1e-300))
        shares[row] = -np.expm1(np.log1p(-usage[group]).sum())
    order = np.argsort(-shares, kind="stable")
    return mixing[order], shares[order]
