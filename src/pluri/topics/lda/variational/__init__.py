"""Variational Bayes: `batch` and `online` (ways of learning), `document_step` (documents given topics), `factors`."""
