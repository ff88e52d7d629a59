"""Choosing among rows that come in batches and are not kept: functions of rows, sieves, and the estimator."""
