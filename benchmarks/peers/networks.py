"""Speed of `pluri.networks`: first calls, epochs with and without sampling, beams, and the same network in torch.

- the first fit and the first prediction of a process, compiling included (budget: 15 s);
- an epoch of the sticky frames (300 sequences of 60 frames) with scheduled sampling, as a multiple of one with teacher
  forcing (budget: 1.3); medians of interleaved epochs;
- decoding 1,000 sequences of 60 frames with a beam of 10, compiled before (budget: 5 s);
- a teacher-forced epoch of the same LSTM in torch on the CPU, where torch is installed.

All are CPU seconds.

    python benchmarks/peers/networks.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import numpy as np

from pluri.datasets import make_sticky_frames
from pluri.networks import EpochRamp, FrameTagger
from pluri.networks.batches import bucket_edges, minibatches
from pluri.networks.design import Design, initialize
from pluri.networks.schedules import probability_at
from pluri.networks.training import _step


def seconds(work: Any) -> float:
    """CPU seconds of this process, all threads: the machine may be busy with other things."""
    started = time.process_time()
    work()
    return time.process_time() - started


def epochs(model: FrameTagger, X: list[Any], y: list[Any]) -> Any:
    """A function that runs one training epoch without validation, on programs that are compiled already."""
    design = Design(**model.settings_)
    data = model._padded(*model._rows(X, y, None, None), design)
    plan = model._plan(design, data)
    rng = np.random.default_rng(0)
    edges = bucket_edges(data.lengths, plan.batch_size)
    state: dict[str, Any] = {"params": initialize(design, rng)}
    state["moments"] = plan.optimizer.start(state["params"])

    def run() -> None:
        params, moments = state["params"], state["moments"]
        value = None
        for rows, length in minibatches(data.lengths, plan.batch_size, edges, rng):
            batch = data.batch(rows, length, plan.batch_size)
            if plan.loss.feedback is not None:
                eps = np.float32(probability_at(plan.schedule, 0, 0))
                batch |= plan.loss.draw(rng, length, plan.batch_size) | {"eps": eps}
            key = rng.integers(2**32, size=2, dtype=np.uint32)
            params, moments, value = _step(plan.loss, plan.optimizer, params, moments, batch, key, np.float32(3e-3))
        jax.block_until_ready(value)
        state["params"], state["moments"] = params, moments

    return run


def torch_epoch(X: list[Any], y: list[Any], hidden_size: int) -> Any:
    """The same network and step in torch, teacher-forced: one LSTM layer, embeddings of the labels before, Adam."""
    import torch

    torch.set_num_threads(1)
    frames = torch.tensor(np.stack(X), dtype=torch.float32)
    labels = torch.tensor(np.stack(y))
    embedding = torch.nn.Embedding(12, 16)
    lstm = torch.nn.LSTM(frames.shape[2] + 16, hidden_size, batch_first=True)
    output = torch.nn.Linear(hidden_size, 10)
    params = [*embedding.parameters(), *lstm.parameters(), *output.parameters()]
    adam = torch.optim.Adam(params, lr=3e-3)
    before = torch.cat([torch.full((len(labels), 1), 10), labels[:, :-1]], dim=1)

    def run() -> None:
        for rows in torch.randperm(len(labels)).split(30):
            adam.zero_grad()
            signal, _ = lstm(torch.cat([frames[rows], embedding(before[rows])], dim=2))
            loss = torch.nn.functional.cross_entropy(output(signal).transpose(1, 2), labels[rows])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            adam.step()

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n = 60 if quick else 300
    data = make_sticky_frames(1000, random_state=0)
    cuts = np.cumsum(data.lengths)[:-1]
    X, y = np.split(data.X, cuts), np.split(data.states, cuts)
    settings = {"hidden_size": 48, "batch_size": 30, "max_epochs": 1, "random_state": 0}
    sampled = FrameTagger("lstm", schedule=EpochRamp(0.5, 0.0), **settings)
    first = seconds(lambda: sampled.fit(X[:n], y[:n]))
    print(f"first fit (one epoch), compiling included:        {first:8.2f} s  (budget 15 s)")
    print(f"first prediction, beam of 10:                     {seconds(lambda: sampled.predict(X[:n])):8.2f} s")
    forced = FrameTagger("lstm", schedule=None, **settings).fit(X[:n], y[:n])
    ways = {"teacher forcing": epochs(forced, X[:n], y[:n]), "scheduled sampling": epochs(sampled, X[:n], y[:n])}
    try:
        ways["torch, teacher forcing"] = torch_epoch(X[:n], y[:n], 48)
    except ImportError:
        print("torch is not installed: no comparison with it")
    for run in ways.values():
        run()  # compiled now
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3 if quick else 11):
        for name, run in ways.items():
            taken[name].append(seconds(run))
    median = {name: float(np.median(values)) for name, values in taken.items()}
    for name, value in median.items():
        print(f"an epoch, {name + ':':<39s} {1e3 * value:8.1f} ms ({value / median['teacher forcing']:.2f} x)")
    print(f"sampling / teacher forcing: {median['scheduled sampling'] / median['teacher forcing']:.2f}  (budget 1.3)")
    count = 200 if quick else 1000
    sampled.predict(X[:count])
    print(
        f"decoding {count} sequences, beam of 10: {seconds(lambda: sampled.predict(X[:count])):17.2f} s  (budget 5 s)"
    )


if __name__ == "__main__":
    main()
