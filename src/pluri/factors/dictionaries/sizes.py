"""How large a dictionary is: several honest numbers, since none of them is the answer.

The beta process lets hardly any atom die out completely; atoms that few rows use, or that add next to nothing, count as
in use all the same. So the number of atoms is counted in three ways.
"""

from __future__ import annotations

import numpy as np

from pluri.factors.dictionaries.records import Array

#: Share of the rows that counts as regular use, and of the power that counts as all of it.
REGULAR, ALL_BUT_LITTLE = 0.01, 0.99


def effective_size(usage: Array, power: Array) -> dict[str, int]:
    """Number of atoms by three rules.

    Parameters
    ----------
    usage : array of shape (n_components,)
        Share of the rows that use each atom.
    power : array of shape (n_components,)
        Sum over rows of the squared length of what an atom adds.

    Returns
    -------
    dict
        ``used``: atoms that any row uses; ``one_percent``: that at least 1 % of the rows use; ``power``: the fewest
        atoms that have 99 % of the power.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sizes import effective_size
    >>> effective_size(np.array([0.5, 0.3, 0.005, 0.0]), np.array([99.5, 0.4, 0.1, 0.0]))
    {'used': 3, 'one_percent': 2, 'power': 1}
    """
    falling = np.sort(power)[::-1].cumsum()
    total = falling[-1] if len(falling) else 0.0
    needed = int(np.searchsorted(falling, ALL_BUT_LITTLE * total)) + 1 if total > 0 else 0
    return {"used": int((usage > 0).sum()), "one_percent": int((usage >= REGULAR).sum()), "power": needed}
