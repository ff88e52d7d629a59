"""What the settings that Gaussian-process regression and classification share may be."""

from __future__ import annotations

from collections.abc import Mapping

from sklearn.gaussian_process.kernels import Kernel

from pluri.validation import Allowed, Made, Number, Only, Whole

SETTINGS: Mapping[str, Allowed] = {
    "kernel": Made(Kernel, "a kernel of sklearn.gaussian_process.kernels") | Only(None),
    "jitter": Only("auto") | Number(least=0),
    "max_exact_n": Whole(1),
}
