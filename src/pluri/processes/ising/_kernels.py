# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep of the Gibbs sampler for labels on grids.

A pixel's new label k is drawn with log weight  log p(y_i | k) + J #{neighbours with label k},  black fields of the
checkerboard first, then white ones.
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled


@compiled()
def sweep_labels(log_likelihood, agreement, uniforms, labels, conditional, work):
    """Resample every label in place; returns how many changed and by how much the log density rose.

    `log_likelihood` (n, d, h, w, K), `uniforms` and `labels` (n, d, h, w), `work` (K,). The conditional probabilities
    that labels were drawn from are added to `conditional` (n, d, h, w, K): their mean is a better estimate of the
    marginals than that of the labels themselves.
    """
    n_images, depth, height, width, n_labels = log_likelihood.shape
    changed = 0
    gain = 0.0
    for image in range(n_images):
        for color in range(2):
            for z in range(depth):
                for i in range(height):
                    for j in range((color + z + i) % 2, width, 2):
                        for k in range(n_labels):
                            work[k] = log_likelihood[image, z, i, j, k]
                        if z > 0:
                            work[labels[image, z - 1, i, j]] += agreement
                        if z + 1 < depth:
                            work[labels[image, z + 1, i, j]] += agreement
                        if i > 0:
                            work[labels[image, z, i - 1, j]] += agreement
                        if i + 1 < height:
                            work[labels[image, z, i + 1, j]] += agreement
                        if j > 0:
                            work[labels[image, z, i, j - 1]] += agreement
                        if j + 1 < width:
                            work[labels[image, z, i, j + 1]] += agreement
                        old = labels[image, z, i, j]
                        highest = work[0]
                        for k in range(1, n_labels):
                            highest = max(highest, work[k])
                        before = work[old]
                        total = 0.0
                        for k in range(n_labels):
                            work[k] = math.exp(work[k] - highest)
                            total += work[k]
                        threshold = uniforms[image, z, i, j] * total
                        new = 0
                        cumulative = work[0]
                        while cumulative <= threshold and new < n_labels - 1:
                            new += 1
                            cumulative += work[new]
                        for k in range(n_labels):
                            conditional[image, z, i, j, k] += work[k] / total
                        if new != old:
                            changed += 1
                            gain += math.log(work[new]) + highest - before
                            labels[image, z, i, j] = new
    return changed, gain
