"""Active learning: which items to have labelled next, so that a model learns most from few labels.

- `uncertainty`: scores from the probabilities of one model or of several; `fisher`: scores from the information that a
  row brings about the coefficients of a regression; `expected_error`: from the models that each label would lead to;
- `strategies`: the scores by name; `batches`: several rows at once, the best or diverse ones;
- `learner`: the loop around any model; `committee`: models that disagree; `stream`, `synthesis`: items that come one by
  one, and items that are made up; `comparison`: strategies beside random choice, with intervals.
"""
