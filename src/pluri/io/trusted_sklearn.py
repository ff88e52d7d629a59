"""The parts of scikit-learn that a model file may hold: what people put in front of a model, or around it.

On the list are estimators whose whole state is numbers, text, arrays and other estimators of the list: nothing of them
is run by loading, and their methods run nothing that a file could bring. Steps that are made to call a function of
yours (``FunctionTransformer``, ``SelectKBest``) are not on it, and a vectorizer with an analyzer, tokenizer or
preprocessor of your own is refused when it is saved, unless you name the function in `trusted`.

What compiled code later relies on, without looking, is checked when a file is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

State = dict[str, Any]

#: Names as files spell them.
SKLEARN = frozenset(
    {
        "sklearn.decomposition._pca.PCA",
        "sklearn.decomposition._truncated_svd.TruncatedSVD",
        "sklearn.feature_extraction.text.CountVectorizer",
        "sklearn.feature_extraction.text.TfidfTransformer",
        "sklearn.feature_extraction.text.TfidfVectorizer",
        "sklearn.feature_selection._variance_threshold.VarianceThreshold",
        "sklearn.frozen._frozen.FrozenEstimator",
        "sklearn.gaussian_process.kernels.CompoundKernel",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.DotProduct",
        "sklearn.gaussian_process.kernels.ExpSineSquared",
        "sklearn.gaussian_process.kernels.Exponentiation",
        "sklearn.gaussian_process.kernels.Matern",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.gaussian_process.kernels.RationalQuadratic",
        "sklearn.gaussian_process.kernels.Sum",
        "sklearn.gaussian_process.kernels.WhiteKernel",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.model_selection._split.GroupKFold",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.ShuffleSplit",
        "sklearn.model_selection._split.StratifiedGroupKFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.model_selection._split.StratifiedShuffleSplit",
        "sklearn.model_selection._split.TimeSeriesSplit",
        "sklearn.pipeline.FeatureUnion",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.Binarizer",
        "sklearn.preprocessing._data.MaxAbsScaler",
        "sklearn.preprocessing._data.MinMaxScaler",
        "sklearn.preprocessing._data.Normalizer",
        "sklearn.preprocessing._data.PowerTransformer",
        "sklearn.preprocessing._data.QuantileTransformer",
        "sklearn.preprocessing._data.RobustScaler",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._discretization.KBinsDiscretizer",
        "sklearn.preprocessing._encoders.OneHotEncoder",
        "sklearn.preprocessing._encoders.OrdinalEncoder",
        "sklearn.preprocessing._label.LabelEncoder",
        "sklearn.preprocessing._polynomial.PolynomialFeatures",
    }
)

#: Of scikit-learn's own bookkeeping: the address of an object in this process.
ADDRESSES = ("_stop_words_id",)
#: Attributes of `SimpleImputer` that must be types of arrays; files have the types of their entries.
ARRAY_TYPES = ("_fit_dtype", "_fill_dtype")


def restore_imputer(state: State) -> State:
    """Types of arrays from those of their entries."""
    return {name: np.dtype(state[name]) for name in ARRAY_TYPES if isinstance(state.get(name), type)}


def check_vectorizer(state: State) -> None:
    """Refuse columns that are no columns, which compiled code would follow anywhere, and names of files as texts."""
    if state.get("input", "content") != "content":
        raise ValueError(f"a vectorizer must have input='content' to be saved or loaded, got {state['input']!r}")
    words = state.get("vocabulary_")
    if words is None:
        return
    columns: list[Any] = list(words.values()) if isinstance(words, dict) else [None]
    whole = all(isinstance(column, int | np.integer) and not isinstance(column, bool) for column in columns)
    if not whole or sorted(columns) != [*range(len(columns))]:
        raise ValueError("vocabulary_ of a vectorizer must lead from words to the columns 0, 1, ..., each once")


#: What is looked at when an object of a name is saved or loaded.
CHECKS: dict[str, Callable[[State], None]] = {
    "sklearn.feature_extraction.text.CountVectorizer": check_vectorizer,
    "sklearn.feature_extraction.text.TfidfVectorizer": check_vectorizer,
}
