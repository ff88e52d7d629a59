import pandas as pd
import pytest
import skops.io

from pluri.inference import History, HistoryRow

ROWS = [
    HistoryRow(0, 1, -30.0, -29.0, 0.5),
    HistoryRow(0, 2, -20.0, -19.5, 0.25, False),
    HistoryRow(1, 1, -25.0, -24.0, 0.5),
]


def test_columns_rows_and_runs_agree():
    history = History()
    for row in ROWS:
        history.append(row)
    assert list(history) == ROWS
    assert history[-1] == ROWS[-1]
    assert history.objective.tolist() == [row.objective for row in ROWS]
    assert history.accepted.tolist() == [True, False, True]
    assert list(history.run(0)) == ROWS[:2]
    assert len(history.run(2)) == 0
    with pytest.raises(IndexError):
        history[3]


def test_frame_has_a_column_per_field():
    frame = pd.DataFrame(History(ROWS).to_dict())
    assert frame.columns.tolist() == list(HistoryRow._fields)
    assert [HistoryRow(*row) for row in frame.itertuples(index=False, name=None)] == ROWS


def test_history_is_stored_without_pickle(tmp_path):
    skops.io.dump(History(ROWS), tmp_path / "history.skops")
    trusted = skops.io.get_untrusted_types(file=tmp_path / "history.skops")
    assert trusted == ["pluri.inference.run.History"]
    assert skops.io.load(tmp_path / "history.skops", trusted=trusted) == History(ROWS)


def test_repr_is_one_line():
    assert repr(History()) == "History(empty)"
    assert repr(History(ROWS)) == "History(2 runs, 3 iterations, objective -30 -> -25, 1.25 s)"
