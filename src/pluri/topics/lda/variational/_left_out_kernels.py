# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled functions that leave topics out of the iterations of a document that they have lost, and bring them back."""

from __future__ import annotations

from pluri.engine.compiled import compiled

#: Expected count below which a topic has lost a document, and that above which it has returned.
LOST = 1e-13
RETURNED = 1e-10


@compiled(reorder=True, inner=True, allocates=False)
def all_topics(everywhere, alpha, current, prior, topics):
    """Fill the last three: all topics, in their order."""
    for k in range(current.size):
        current[k] = everywhere[k]
        prior[k] = alpha[k] if k < alpha.size else 1.0
        topics[k] = k


@compiled(reorder=True, inner=True, allocates=False)
def update(prior, sums, n_live, current, kept):
    """Change gamma, and list the topics that have not lost the document; the change, and their number."""
    change, n_kept = 0.0, 0
    for k in range(n_live):
        new = prior[k] + sums[k]
        change += abs(new - current[k])
        current[k] = new
        kept[n_kept] = k
        n_kept += sums[k] >= LOST
    return change, n_kept


@compiled(reorder=True, inner=True, allocates=False)
def leave_out(room, base, width, padded, n_live, n_kept, elsewhere):
    """Change `room`: topics that are not kept are left out, columns of the others packed; the sum of gamma left out."""
    current, prior, topics, kept, rows = room.current, room.prior, room.topics, room.kept, room.rows
    packed, everywhere = rows.size // 2, room.everywhere
    for k in range(n_live):
        everywhere[topics[k]] = current[k]
        elsewhere += current[k]
    for j in range(n_kept):
        start, stride = (base + kept[j] * padded, 1) if base else (kept[j], width)
        for w in range(padded):
            rows[packed + j * padded + w] = rows[start + w * stride]
    for j in range(n_kept):
        k = kept[j]
        topics[j], current[j], prior[j] = topics[k], current[k], prior[k]
        elsewhere -= current[j]
    return elsewhere


@compiled(reorder=True, inner=True, allocates=False)
def bring_back(room, alpha, n_live, mark):
    """Change `room`: all topics again; if `mark`, those that were left out are -1 in `topics`, the others in `kept`."""
    current, everywhere, topics, kept = room.current, room.everywhere, room.topics, room.kept
    for k in range(n_live):
        everywhere[topics[k]] = current[k]
        kept[k] = topics[k]
    all_topics(everywhere, alpha, current, room.prior, topics)
    if mark:
        for k in range(alpha.size):
            topics[k] = -1
        for j in range(n_live):
            topics[kept[j]] = kept[j]


@compiled(reorder=True, inner=True, allocates=False)
def returned(sums, topics, n_topics):
    """Whether a topic that was left out has come back; none is left out any more in `topics`, which is changed."""
    found = False
    for k in range(n_topics):
        found |= sums[k] > RETURNED and topics[k] < 0
        topics[k] = k
    return found
