"""Spikes of nerve cells: recordings, and counts in bins of time."""

from pluri.datasets.spikes.counts import ReachingCounts, SpikeTrains, TrackSpikes, bin_spikes
from pluri.datasets.spikes.recordings import (
    load_hippocampus_track,
    load_locust_odors,
    load_locust_spontaneous,
    load_macaque_reaching,
)

__all__ = [
    "ReachingCounts",
    "SpikeTrains",
    "TrackSpikes",
    "bin_spikes",
    "load_hippocampus_track",
    "load_locust_odors",
    "load_locust_spontaneous",
    "load_macaque_reaching",
]
