"""A data frame is fitted in every way without a word about names."""

import numpy as np
import pandas as pd
import pytest

from pluri.mixtures import DirichletProcessMixture


@pytest.mark.parametrize("inference", ["gibbs", "slice", "vb"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_data_frame_is_fitted_without_a_word_about_names(inference):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)) + np.repeat([[0], [8]], 20, axis=0), columns=["a", "b"])
    settings = {} if inference == "vb" else {"n_draws": 5, "n_warmup": 5}
    model = DirichletProcessMixture(inference=inference, random_state=0, **settings).fit(frame)
    np.testing.assert_array_equal(model.labels_[:2], model.predict(frame)[:2])
