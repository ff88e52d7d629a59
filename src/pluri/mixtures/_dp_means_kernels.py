# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled passes over the rows of `pluri.mixtures.dp_means`."""

from pluri.engine.compiled import compiled


@compiled()
def move_closer(X, centers, first, distance, nearest):
    """Give rows to centers that are closer than what they have; the centers have numbers from `first`."""
    for i in range(X.shape[0]):
        for k in range(centers.shape[0]):
            total = 0.0
            for d in range(X.shape[1]):
                gap = X[i, d] - centers[k, d]
                total += gap * gap
            if total < distance[i]:
                distance[i] = total
                nearest[i] = first + k


@compiled()
def next_dear(order, weights, distance, penalty, begin):
    """The first place of `order` from `begin` whose row costs more than the penalty; its length if there is none."""
    for place in range(begin, len(order)):
        i = order[place]
        if weights[i] * distance[i] > penalty:
            return place
    return len(order)


@compiled()
def add_up(X, weights, labels, total, size):
    """Weighted sums of the rows of each cluster, and of their weights."""
    for i in range(X.shape[0]):
        k = labels[i]
        size[k] += weights[i]
        for d in range(X.shape[1]):
            total[k, d] += weights[i] * X[i, d]
