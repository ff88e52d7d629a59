# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled Kalman steps given the regime: for the particles of a filter, and for one Gaussian per regime.

A system is a record `Matrices` of `pluri.dynamics.switching.rao_blackwell`: start (k,), transition (k, k),
A (k, d, d), b (k, d), Q (k, d, d), C (g, m, d), c (g, m), R (g, m, m), and the mean (k, d) and covariance (k, d, d) of
the first state; g is k, or 1 if all regimes are observed alike. `room` is space to work in: a record `Room`.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled

LOG_2_PI = np.log(2 * np.pi)


@compiled(inner=True, allocates=False)
def predict(A, b, Q, mean, covariance, new_mean, new_covariance, product):
    """Change `new_mean` to A mean + b and `new_covariance` to A covariance A^T + Q."""
    d = len(b)
    for i in range(d):
        total = b[i]
        for j in range(d):
            total += A[i, j] * mean[j]
        new_mean[i] = total
        for j in range(d):
            total = 0.0
            for h in range(d):
                total += A[i, h] * covariance[h, j]
            product[i, j] = total
    for i in range(d):
        for j in range(i + 1):
            total = 0.5 * (Q[i, j] + Q[j, i])
            for h in range(d):
                total += product[i, h] * A[j, h]
            new_covariance[i, j] = total
            new_covariance[j, i] = total


@compiled(inner=True, allocates=False)
def innovate(C, c, R, row, mean, covariance, room):
    """Change `room` to the residual of `row`, C times the covariance and the Cholesky factor of S = C V C^T + R.

    Returns how many entries of `row` were seen, and the log density of these: -inf if S is not positive definite.
    """
    seen, residual, factor, crossed = room.seen, room.residual, room.factor, room.crossed
    n_seen, d = 0, len(mean)
    for i in range(len(row)):
        if not np.isnan(row[i]):
            seen[n_seen] = i
            n_seen += 1
    log_density = -0.5 * n_seen * LOG_2_PI
    for a in range(n_seen):
        i = seen[a]
        total = row[i] - c[i]
        for h in range(d):
            total -= C[i, h] * mean[h]
        residual[a] = total
        for h in range(d):
            total = 0.0
            for g in range(d):
                total += C[i, g] * covariance[g, h]
            crossed[a, h] = total
    for a in range(n_seen):
        for e in range(a + 1):
            total = 0.5 * (R[seen[a], seen[e]] + R[seen[e], seen[a]])
            for h in range(d):
                total += crossed[a, h] * C[seen[e], h]
            for g in range(e):
                total -= factor[a, g] * factor[e, g]
            if a == e:
                if not total > 0.0:
                    return n_seen, -np.inf
                factor[a, a] = np.sqrt(total)
            else:
                factor[a, e] = total / factor[e, e]
        log_density -= np.log(factor[a, a])
    whitened = room.whitened
    for a in range(n_seen):
        total = residual[a]
        for e in range(a):
            total -= factor[a, e] * whitened[e]
        whitened[a] = total / factor[a, a]
        log_density -= 0.5 * whitened[a] * whitened[a]
    return n_seen, log_density


@compiled(inner=True, allocates=False)
def correct(C, R, n_seen, mean, covariance, room):
    """Change `mean` and `covariance` by what `innovate` has left in `room`; the covariance in Joseph's form.

    K^T = S^-1 C V; mean + K (y - C mean - c), (I - K C) V (I - K C)^T + K R K^T.
    """
    d = len(mean)
    seen, residual, factor, gain = room.seen, room.residual, room.factor, room.crossed
    rest, product, scaled = room.rest, room.product, room.scaled
    for h in range(d):
        for a in range(n_seen):
            total = gain[a, h]
            for e in range(a):
                total -= factor[a, e] * gain[e, h]
            gain[a, h] = total / factor[a, a]
        for back in range(n_seen):
            a = n_seen - 1 - back
            total = gain[a, h]
            for e in range(a + 1, n_seen):
                total -= factor[e, a] * gain[e, h]
            gain[a, h] = total / factor[a, a]
    for h in range(d):
        for a in range(n_seen):
            mean[h] += gain[a, h] * residual[a]
            total = 0.0
            for e in range(n_seen):
                total += R[seen[a], seen[e]] * gain[e, h]
            scaled[a, h] = total
        for g in range(d):
            total = 1.0 if g == h else 0.0
            for a in range(n_seen):
                total -= gain[a, h] * C[seen[a], g]
            rest[h, g] = total
    for h in range(d):
        for g in range(d):
            total = 0.0
            for f in range(d):
                total += rest[h, f] * covariance[f, g]
            product[h, g] = total
    for h in range(d):
        for g in range(h + 1):
            total = 0.0
            for f in range(d):
                total += product[h, f] * rest[g, f]
            for a in range(n_seen):
                total += gain[a, h] * scaled[a, g]
            covariance[h, g] = total
            covariance[g, h] = total


@compiled(inner=True, allocates=False)
def kalman_step(system, z, first, row, mean, covariance, new_mean, new_covariance, room):
    """Change `new_mean` and `new_covariance` to moments in regime z given `row`; returns the log density of `row`."""
    if first:
        for i in range(len(new_mean)):
            new_mean[i] = system.first_mean[z, i]
            for j in range(len(new_mean)):
                new_covariance[i, j] = system.first_covariance[z, i, j]
    else:
        predict(system.A[z], system.b[z], system.Q[z], mean, covariance, new_mean, new_covariance, room.product)
    g = z if len(system.C) > 1 else 0
    n_seen, log_density = innovate(system.C[g], system.c[g], system.R[g], row, new_mean, new_covariance, room)
    if n_seen > 0 and log_density > -np.inf:
        correct(system.C[g], system.R[g], n_seen, new_mean, new_covariance, room)
    return log_density


@compiled(inner=True, allocates=False)
def draw(probabilities, uniform):
    """An index in proportion to `probabilities`; one that has none is never drawn."""
    total = 0.0
    for i in range(len(probabilities)):
        total += probabilities[i]
    reached, chosen = 0.0, 0
    for i in range(len(probabilities)):
        if probabilities[i] > 0.0:
            chosen = i
            reached += probabilities[i]
            if reached > uniform * total:
                return chosen
    return chosen


@compiled(allocates=False)
def move(system, first, row, uniforms, old, new, gains, room, ahead):
    """Change the tracks `new` to those one step after `old`, and `gains` (n,) to what their weights are multiplied by.

    Tracks are regimes (n,), means (n, d) and covariances (n, d, d). `ahead` is None to draw regimes from the Markov
    chain, or space for tracks of all k next regimes, from which one is drawn by how well it explains `row`.
    """
    old_regimes, old_means, old_covariances = old
    regimes, means, covariances = new
    d = means.shape[1]
    for n in range(len(regimes)):
        chances = system.start if first else system.transition[old_regimes[n]]
        if ahead is None:
            z = draw(chances, uniforms[n])
            regimes[n] = z
            gains[n] = kalman_step(
                system, z, first, row, old_means[n], old_covariances[n], means[n], covariances[n], room
            )
            continue
        shares, some_means, some_covariances = ahead
        largest = -np.inf
        for z in range(len(chances)):
            shares[z] = -np.inf
            if chances[z] > 0.0:
                density = kalman_step(
                    system, z, first, row, old_means[n], old_covariances[n], some_means[z], some_covariances[z], room
                )
                shares[z] = density + np.log(chances[z])
                largest = max(largest, shares[z])
        if largest == -np.inf:
            regimes[n] = 0
            gains[n] = -np.inf
            continue
        total = 0.0
        for z in range(len(chances)):
            shares[z] = np.exp(shares[z] - largest)
            total += shares[z]
        gains[n] = largest + np.log(total)
        z = draw(shares, uniforms[n])
        regimes[n] = z
        for i in range(d):
            means[n, i] = some_means[z, i]
            for j in range(d):
                covariances[n, i, j] = some_covariances[z, i, j]


@compiled(allocates=False)
def interacting_filters(system, rows, offsets, log_densities, tracks, mixed, room):
    """Change `log_densities` (n, k) to log p(y_t | z_t, y before t), one Gaussian standing for all pasts of a regime.

    The interacting multiple model filter (Blom and Bar-Shalom 1988): before each step the Gaussians of all regimes are
    mixed, for each next regime, into one of the same moments. `tracks` and `mixed` are space for k probabilities, means
    and covariances.
    """
    chances, means, covariances = tracks
    shares, mixed_means, mixed_covariances = mixed
    k = len(chances)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            first = t == offsets[s]
            largest = -np.inf
            for z in range(k):
                total = 1.0
                if not first:
                    total = 0.0
                    for i in range(k):
                        total += chances[i] * system.transition[i, z]
                shares[z] = system.start[z] if first else total
                mix(system.transition, z, total, chances, means, covariances, mixed_means[z], mixed_covariances[z])
            for z in range(k):
                log_densities[t, z] = kalman_step(
                    system, z, first, rows[t], mixed_means[z], mixed_covariances[z], means[z], covariances[z], room
                )
                if shares[z] > 0.0:
                    largest = max(largest, log_densities[t, z])
            total = 0.0
            for z in range(k):
                chances[z] = shares[z] * np.exp(log_densities[t, z] - largest) if shares[z] > 0.0 else 0.0
                total += chances[z]
            for z in range(k):
                chances[z] /= total


@compiled(inner=True, allocates=False)
def mix(transition, z, total, chances, means, covariances, mean, covariance):
    """Change `mean` and `covariance` to those of the Gaussians of all regimes, weighted by how they lead to z."""
    k, d = means.shape
    for i in range(d):
        mean[i] = 0.0
        for j in range(d):
            covariance[i, j] = 0.0
    if not total > 0.0:
        return
    for h in range(k):
        share = chances[h] * transition[h, z] / total
        for i in range(d):
            mean[i] += share * means[h, i]
    for h in range(k):
        share = chances[h] * transition[h, z] / total
        for i in range(d):
            for j in range(d):
                apart = (means[h, i] - mean[i]) * (means[h, j] - mean[j])
                covariance[i, j] += share * (covariances[h, i, j] + apart)
