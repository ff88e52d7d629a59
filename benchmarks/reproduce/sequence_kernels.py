"""Support vector machines of aligned sequences: Japanese vowels, simulated phonemes, digits of unseen speakers.

Vowels: nine speakers, 270 utterances to learn from, 370 to test, raw features, one class against the rest, for five
widths of the frame kernel and three prices of errors. Beside each figure stands that of a prototype written for the
specification of this library; the paper used speech that is not public.

Phonemes: the paper's study of sample sizes on data simulated in its place. Six classes, each a left-to-right chain of
three states with two Gaussian components; 26 features, of which 13 are differences of the others; five simulated
speakers. One hidden Markov model a class with 1, 4, 8 or 16 components a state, beside the kernel machine, whose sigma
is chosen by cross-validation for the first speaker and then kept. Expected from the paper: with 50 sequences a class
the kernel machine is at least as good as the best of the others (it is not: one component is enough for these data),
and 16 components are worse than 4 (they are).

Repairs: the first simulated speaker with 200 sequences a class, where the similarities have negative eigenvalues, with
each way to repair them.

Digits: each of five speakers left out in turn, with each way to repair the similarities.

Curve: accuracy against sigma, drawn into benchmarks/figures/sequence_kernel_sigma.png.

Needs ``japanese_vowels.npz`` and ``fsdd_mfcc13.npz`` in PLURI_DATA.

    python benchmarks/reproduce/sequence_kernels.py              # about 20 minutes of CPU
    python benchmarks/reproduce/sequence_kernels.py --quick      # vowels, one simulated speaker, a tenth of the digits
    python benchmarks/reproduce/sequence_kernels.py vowels       # or phonemes, repairs, digits, curve
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from published import figure_path
from sklearn.cluster import KMeans
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from pluri.datasets import load_japanese_vowels, load_spoken_digits
from pluri.sequences import GMMHMM, SequenceSVC, TimeAlignmentKernel

#: sigma -> accuracy for C = 0.1, 1, 10, share of support vectors and smallest eigenvalue for C = 10, of the prototype.
PROTOTYPE = {
    0.5: (96.8, 98.7, 98.9, 84.1, 0.043),
    1.0: (92.7, 98.7, 98.9, 57.4, -0.286),
    2.0: (90.5, 94.6, 98.4, 60.4, -0.390),
    4.0: (89.5, 89.2, 97.0, 85.2, -0.173),
    8.0: (88.1, 87.8, 88.7, 98.9, -0.051),
}
PRICES = (0.1, 1.0, 10.0)
N_CLASSES, N_STATIC = 6, 13
SIZES, COMPONENTS = (50, 100, 200), (1, 4, 8, 16)
N_TEST = 340


def vowels() -> None:
    data = load_japanese_vowels()
    train, test = data.sequences(~data.is_test), data.sequences(data.is_test)
    y, held_out = data.y[~data.is_test], data.y[data.is_test]
    print("Japanese vowels: accuracy in % (prototype)")
    print(f"{'sigma':>6} " + "".join(f"{f'C={C:g}':>16}" for C in PRICES) + f"{'SV % at C=10':>18}{'eigenvalue':>18}")
    worst = 0.0
    for sigma, expected in PROTOTYPE.items():
        kernel = TimeAlignmentKernel(sigma=sigma)
        gram, rows = kernel(train), kernel(test, train)
        cells = []
        for C, theirs in zip(PRICES, expected):
            model = SequenceSVC("precomputed", C=C, psd="none").fit(gram, y)  # as the prototype
            accuracy = 100 * model.score(rows, held_out)
            worst = max(worst, abs(accuracy - theirs))
            cells.append(f"{accuracy:7.1f} ({theirs:5.1f}) ")
        share = 100 * len(model.support_) / len(y)
        print(
            f"{sigma:6g} {''.join(cells)}{share:9.1f} ({expected[3]:5.1f})"
            f"{model.min_eigenvalue_:+10.3f} ({expected[4]:+.3f})",
            flush=True,
        )
    print(f"largest difference of an accuracy: {worst:.2f} points")
    for psd in ("none", "clip", "flip", "shift"):
        model = SequenceSVC(TimeAlignmentKernel(sigma=1.0), C=10.0, psd=psd).fit(train, y)
        print(f"sigma 1, C 10, psd={psd!r:7}: {100 * model.score(test, held_out):.1f} %, kept {len(model.support_)}")
    kernel = TimeAlignmentKernel("sum", sigma="median", normalize=True)
    model = SequenceSVC(kernel, C=10.0).fit(train, y)
    print(f"sum of all paths, median sigma, C 10: {100 * model.score(test, held_out):.1f} %\n", flush=True)


class Phonemes:
    """One simulated speaker."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        common = self.rng.normal(size=(3, 1, N_STATIC))
        own = 0.35 * self.rng.normal(size=(N_CLASSES, 3, 1, N_STATIC))
        self.means = common + own + 0.5 * self.rng.normal(size=(N_CLASSES, 3, 2, N_STATIC))
        self.mixing = np.eye(N_STATIC) + 0.1 * self.rng.normal(size=(N_STATIC, N_STATIC))
        self.offset = self.rng.normal(size=N_STATIC)

    def sequence(self, label: int) -> np.ndarray:
        """Frames of a phoneme, 13 features and their differences; at least four frames."""
        while True:
            stays = self.rng.geometric(0.25, size=3)
            if stays.sum() >= 4:
                break
        states = np.repeat(np.arange(3), stays)
        parts = self.rng.integers(2, size=len(states))
        static = self.means[label, states, parts] + self.rng.normal(size=(len(states), N_STATIC))
        static = static @ self.mixing + self.offset
        return np.column_stack([static, np.gradient(static, axis=0)])

    def draw(self, n: int) -> tuple[list[np.ndarray], np.ndarray]:
        """So many sequences of each class."""
        y = np.repeat(np.arange(N_CLASSES), n)
        return [self.sequence(label) for label in y], y


def left_right_model(sequences: Sequence[np.ndarray], n_mix: int, seed: int) -> GMMHMM:
    """A chain of three states that only goes on, started by k-means on each third of the sequences."""
    thirds = [np.concatenate([np.array_split(x, 3)[state] for x in sequences]) for state in range(3)]
    means = [KMeans(n_mix, n_init=1, random_state=seed).fit(third).cluster_centers_ for third in thirds]
    model = GMMHMM(
        3, n_mix, covariance_type="diag", n_iter=15, random_state=seed, min_covar=1e-2, means_init=np.stack(means),
        startprob_init=[1.0, 0.0, 0.0], transmat_init=[[0.75, 0.25, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]],
    )  # fmt: skip
    return model.fit(list(sequences))


def hmm_accuracy(train: tuple, test: tuple, n_mix: int) -> float:
    """One model a class, on standardised features; the class of the highest likelihood."""
    X, y = train
    scaler = StandardScaler().fit(np.concatenate(X))
    held = [scaler.transform(x) for x in test[0]]
    scores = []
    for label in range(N_CLASSES):
        own = [scaler.transform(x) for x, one in zip(X, y) if one == label]
        scores.append(left_right_model(own, n_mix, label).score_sequences(held))
    return 100 * float(np.mean(np.argmax(scores, axis=0) == test[1]))


def choose_sigma(X: list[np.ndarray], y: np.ndarray) -> float:
    """By five folds."""
    accuracy = {}
    for factor in (0.5, 0.7, 1.0, 1.4, 2.0):
        sigma = factor * TimeAlignmentKernel(sigma="median").resolve(X).sigma
        gram = TimeAlignmentKernel(sigma=sigma)(X)
        right = []
        for learn, held in StratifiedKFold(5, shuffle=True, random_state=0).split(gram, y):
            model = SequenceSVC("precomputed", C=10.0).fit(gram[np.ix_(learn, learn)], y[learn])
            right.append(model.score(gram[np.ix_(held, learn)], y[held]))
        accuracy[sigma] = float(np.mean(right))
    return max(accuracy, key=accuracy.__getitem__)


def phonemes(quick: bool) -> None:
    sizes, n_speakers = (SIZES[:1], 1) if quick else (SIZES, 5)
    found: dict[tuple[str, int], list[float]] = {}
    sigma = 0.0
    for seed in range(n_speakers):
        speaker = Phonemes(seed)
        test = speaker.draw(N_TEST // (4 if quick else 1))
        for size in sizes:
            train = speaker.draw(size)
            sigma = sigma or choose_sigma(*train)
            for n_mix in COMPONENTS:
                found.setdefault((f"HMM, {n_mix} components", size), []).append(hmm_accuracy(train, test, n_mix))
            model = SequenceSVC(TimeAlignmentKernel(sigma=sigma), C=10.0).fit(*train)
            found.setdefault(("best path, SVC", size), []).append(100 * model.score(*test))
        print(f"  simulated speaker {seed} done", flush=True)
    print(f"simulated phonemes: accuracy in %, mean of {n_speakers} speakers, sigma {sigma:.2f}, C 10")
    print(f"{'sequences a class':>20}" + "".join(f"{size:>14}" for size in sizes))
    for name in dict.fromkeys(name for name, _ in found):
        cells = (f"{np.mean(found[name, size]):8.1f} ± {np.std(found[name, size]):3.1f}" for size in sizes)
        print(f"{name:>20}{''.join(cells)}")
    print(flush=True)


def repairs() -> None:
    speaker = Phonemes(0)
    test, (X, y) = speaker.draw(80), speaker.draw(200)
    kernel = TimeAlignmentKernel(sigma=6.13)  # as `phonemes` chooses it
    gram, rows = kernel(X), kernel(test[0], X)
    for psd in ("none", "clip", "flip", "shift"):
        model = SequenceSVC("precomputed", C=10.0, psd=psd).fit(gram, y)
        print(
            f"simulated phonemes, smallest eigenvalue {model.min_eigenvalue_:.2f}, psd={psd!r:7}: "
            f"{100 * model.score(rows, test[1]):.1f} %, at most {model.n_iter_.max()} steps of libsvm",
            flush=True,
        )
    print()


def digits(quick: bool) -> None:
    data = load_spoken_digits()
    chosen = np.arange(len(data.y)) % (10 if quick else 2) == 0
    X, y, speaker = data.sequences(chosen), data.y[chosen], data.speaker[chosen]
    # Each utterance without its mean: what microphone and voice add to all frames.
    X = [(x - x.mean(axis=0)) / data.X.std(axis=0) for x in X]
    kernels = {
        "best path": TimeAlignmentKernel(sigma="median").resolve(X),
        "sum of paths": TimeAlignmentKernel("sum", sigma="median", normalize=True).resolve(X),
        "linear warps": TimeAlignmentKernel("linear", sigma="median", length=20).resolve(X),
    }
    print(f"spoken digits, {len(y)} utterances, C 10: accuracy in % for each speaker left out")
    for name, kernel in kernels.items():
        begun = time.process_time()
        gram = kernel(X)
        seconds = time.process_time() - begun
        for psd in ("none", "shift", "clip", "flip") if name == "best path" else ("none",):
            accuracy = {}
            for out in np.unique(speaker):
                learn, held = np.flatnonzero(speaker != out), np.flatnonzero(speaker == out)
                model = SequenceSVC("precomputed", C=10.0, psd=psd).fit(gram[np.ix_(learn, learn)], y[learn])
                accuracy[out] = 100 * model.score(gram[np.ix_(held, learn)], y[held])
            cells = ", ".join(f"{out} {value:.1f}" for out, value in accuracy.items())
            print(
                f"  {name:13} (sigma {kernel.sigma:.2f}, {seconds:.0f} s), psd={psd!r:7}: {cells}; mean "
                f"{np.mean(list(accuracy.values())):.2f}; smallest eigenvalue {model.min_eigenvalue_:.3g}",
                flush=True,
            )


def curve(quick: bool) -> None:
    """Accuracy against sigma: vowels, and a fifth of the digits with each speaker left out; drawn into a figure."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=False, layout="constrained")
    data, digit = load_japanese_vowels(), load_spoken_digits()
    vowel = data.sequences(np.ones(len(data.y), dtype=bool)), data.y, data.is_test.astype(int)
    chosen = np.arange(len(digit.y)) % (20 if quick else 5) == 0
    spoken = [(x - x.mean(axis=0)) / digit.X.std(axis=0) for x in digit.sequences(chosen)]
    problems = {
        "Japanese vowels, test speakers' utterances": (*vowel, [1], (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)),
        "spoken digits, speaker left out": (
            spoken, digit.y[chosen], np.unique(digit.speaker[chosen], return_inverse=True)[1],
            range(len(np.unique(digit.speaker))), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
        ),
    }  # fmt: skip
    for axis, (title, (X, y, fold, outs, sigmas)) in zip(axes, problems.items()):
        found: dict[str, list[float]] = {"none": [], "shift": []}
        for sigma in sigmas:
            gram = TimeAlignmentKernel(sigma=sigma)(X)
            for psd, line in found.items():
                right = []
                for out in outs:
                    learn, held = np.flatnonzero(fold != out), np.flatnonzero(fold == out)
                    model = SequenceSVC("precomputed", C=10.0, psd=psd).fit(gram[np.ix_(learn, learn)], y[learn])
                    right.append(100 * model.score(gram[np.ix_(held, learn)], y[held]))
                line.append(float(np.mean(right)))
        for psd, line in found.items():
            print(
                f"{title}, psd={psd!r}: " + ", ".join(f"sigma {s:g} {v:.1f}" for s, v in zip(sigmas, line)), flush=True
            )
            axis.semilogx(sigmas, line, marker="o", label=f'psd="{psd}"')
        axis.set(title=title, xlabel="sigma", ylabel="accuracy in %")
        axis.set_xticks(list(sigmas), labels=[f"{sigma:g}" for sigma in sigmas], minor=False)
        axis.minorticks_off()
    axes[0].legend()
    figure.savefig(figure_path("sequence_kernel_sigma.png"), dpi=120)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = [word for word in sys.argv[1:] if not word.startswith("-")] or [
        "vowels", "phonemes", "repairs", "digits", "curve"
    ]  # fmt: skip
    short = "--quick" in sys.argv
    if "vowels" in asked:
        vowels()
    if "phonemes" in asked:
        phonemes(short)
    if "repairs" in asked:
        repairs()
    if "digits" in asked:
        digits(short)
    if "curve" in asked:
        curve(short)
