"""Every public estimator has a small fit, for ``pluri compile`` and for the measurement of first calls."""

import pytest

from pluri.cli.compiling.tiny_fits import KIND_OF_DATA, QUESTIONS, tiny_fits

pytestmark = pytest.mark.filterwarnings("ignore")
FITS = {fit.name: fit for fit in tiny_fits()}


def test_there_is_a_small_fit_and_the_model_answers(kind):
    fit = FITS[kind.__name__]
    model = fit.prepare()()
    assert type(model) is kind
    fit.ask(model)


def test_no_small_fit_is_of_an_estimator_that_is_gone(request):
    conftest = request.config.pluginmanager.get_plugin(str(request.path.parent / "conftest.py"))
    names = {kind.__name__ for kind in conftest.ESTIMATORS}
    assert {fit.name for fit in FITS.values() if fit.data} == names
    assert set(KIND_OF_DATA) <= names


# The quicker test above guards the defaults.
@pytest.mark.thorough
@pytest.mark.parametrize("fit", [fit for fit in tiny_fits(every_setting=True) if fit.setting or not fit.data],
                         ids=lambda fit: fit.title)  # fmt: skip
def test_every_setting_and_every_function_runs(fit):
    fit.ask(fit.prepare()())


def test_questions_are_asked_with_what_they_take():
    asked = []

    class Model:
        def predict(self, X):
            asked.append(("predict", X))

        def score(self, X, y):
            asked.append(("score", y))

        def sample(self, n_samples=1):
            asked.append(("sample", n_samples))

        def transform(self, X, items):
            raise AssertionError("it needs more than the data")

    FITS["NaiveBayes"].ask(Model())
    assert [name for name, _ in asked] == [name for name in QUESTIONS if name in ("predict", "score", "sample")]
