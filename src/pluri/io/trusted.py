"""The types that a model file may hold: an explicit list of names, and nothing else is ever imported.

A new model or prior is added here by the name of its module and class; a test checks that each name exists and that
each public model is among them. Naming them as text keeps this folder free of imports from the model families.
"""

from __future__ import annotations

from collections.abc import Iterable

MODELS = frozenset(
    {
        "pluri.sequences.bernoulli.BernoulliHMM",
        "pluri.sequences.categorical.CategoricalHMM",
        "pluri.sequences.classifier.HMMClassifier",
        "pluri.sequences.gaussian.GaussianHMM",
        "pluri.sequences.gmm.GMMHMM",
        "pluri.sequences.multinomial.MultinomialHMM",
        "pluri.sequences.poisson.PoissonHMM",
    }
)

PARTS = frozenset(
    {
        "pluri.inference.history.History",
        "pluri.priors.dirichlet.Dirichlet",
        "pluri.priors.dirichlet.Sticky",
        "pluri.priors.diversity.Diversity",
        "pluri.sequences.monitor.ConvergenceMonitor",
    }
)

#: What people put in front of a model. Their state is numbers and text only, and no method runs what it holds.
SKLEARN = frozenset(
    {
        "sklearn.decomposition._pca.PCA",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.MaxAbsScaler",
        "sklearn.preprocessing._data.MinMaxScaler",
        "sklearn.preprocessing._data.RobustScaler",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._label.LabelEncoder",
    }
)

OBJECTS = MODELS | PARTS | SKLEARN

BIT_GENERATORS = frozenset({"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"})

#: Scalars and keys. Both spellings of a name that changed between NumPy 1 and 2.
NUMPY_SCALARS = frozenset(
    f"numpy.{name}"
    for name in (
        *("bool", "bool_", "str_", "bytes_", "float16", "float32", "float64", "longdouble"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong"),
        *("datetime64", "timedelta64"),
    )
)
KEYS = frozenset({"builtins.int", "builtins.str"}) | NUMPY_SCALARS

#: For each kind of node of a skops file that may occur, the types it may build; the objects come from `OBJECTS`.
CONTAINERS: dict[str, frozenset[str]] = {
    "DictNode": frozenset({"builtins.dict"}),
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "NdArrayNode": NUMPY_SCALARS | {"numpy.ndarray"},
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": KEYS | {"builtins.float"},
}


def type_name(kind: type) -> str:
    """Module and name of a type, as a file spells it.

    Examples
    --------
    >>> from collections import deque
    >>> from pluri.io.trusted import type_name
    >>> type_name(deque)
    'collections.deque'
    """
    return f"{kind.__module__}.{kind.__name__}"


def object_names(extra: Iterable[type] = ()) -> frozenset[str]:
    """Names of the objects that may be stored: ours, and those the caller vouches for."""
    extra = list(extra)
    for kind in extra:
        if not isinstance(kind, type):
            raise TypeError(f"trusted must hold classes, got {kind!r}")
    return OBJECTS | {type_name(kind) for kind in extra}
