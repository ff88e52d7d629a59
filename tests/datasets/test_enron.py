"""The loader of mail on small tables of the same layout, and daily networks against a direct count."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from pluri.datasets import data_home
from pluri.datasets.enron import Correspondence, communication_snapshots, load_enron

PEOPLE = """id\tdepartment\tlong_department\ttitle\tgender\tseniority
4\tLegal\tENA Legal\tCnsl\tFemale\tJunior
9\tTrading\tENA Gas\tVP Trading\tMale\tSenior
5\tOther\tOther\tCEO\tFemale\tSenior
"""
MESSAGES = """mid\tunix_time\tsender_id\treceiver_ids
2\t172800\t9\t4
1\t3600\t4\t9,5
3\t172801\t5\t5
"""


def needs(name):
    """Skip the test where the data folder (``PLURI_DATA``) has no such file."""
    return pytest.mark.skipif(not (data_home() / name).is_file(), reason=f"no {name} in the folder PLURI_DATA names")


def write(folder, messages=MESSAGES, people=PEOPLE):
    (folder / "enron_messages.tsv.gz").write_bytes(gzip.compress(messages.encode()))
    (folder / "enron_employees.tsv.gz").write_bytes(gzip.compress(people.encode()))


def random_mail(rng, n=300, n_people=8, n_days=40):
    times = np.sort(rng.integers(0, n_days * 86400, size=n))
    nothing = np.full(n_people, "")
    people = rng.integers(n_people, size=(2, n))
    return Correspondence(
        np.datetime64("2001-01-01", "s") + times.astype("timedelta64[s]"), people[0], people[1], np.arange(n),
        nothing, nothing, nothing, nothing,
    )  # fmt: skip


def test_a_message_to_two_people_is_two_rows_in_the_order_of_time(tmp_path):
    write(tmp_path)
    mail = load_enron(tmp_path)
    assert mail.messages.tolist() == [1, 1, 2, 3]
    assert mail.senders.tolist() == [0, 0, 1, 2]
    assert mail.receivers.tolist() == [1, 2, 0, 2]
    assert mail.times[0] == np.datetime64("1970-01-01T01:00:00")
    assert mail.titles.tolist() == ["Cnsl", "VP Trading", "CEO"]
    assert repr(mail) == "Correspondence(3 people, 3 messages, 1970-01-01 to 1970-01-03)"


def test_snapshots_equal_a_direct_count():
    rng = np.random.default_rng(0)
    mail = random_mail(rng)
    snapshots = communication_snapshots(mail, 5)
    assert snapshots.days[0] == mail.times[0].astype("datetime64[D]") + 4
    assert snapshots.days[-1] == mail.times[-1].astype("datetime64[D]")
    for day, network in zip(snapshots.days, snapshots.adjacency):
        expected = set()
        for time, sender, receiver in zip(mail.times, mail.senders, mail.receivers):
            if day - 4 <= time.astype("datetime64[D]") <= day and sender != receiver:
                expected |= {(int(sender), int(receiver)), (int(receiver), int(sender))}
        assert set(map(tuple, np.argwhere(network).tolist())) == expected


def test_the_period_can_be_chosen_and_days_without_mail_are_empty():
    mail = random_mail(np.random.default_rng(1))
    part = communication_snapshots(mail, 3, start="2001-01-10", stop="2001-01-12")
    whole = communication_snapshots(mail, 3)
    offset = int(np.flatnonzero(whole.days == np.datetime64("2001-01-10"))[0])
    np.testing.assert_array_equal(part.adjacency, whole.adjacency[offset : offset + 3])
    assert repr(part) == "Snapshots(3 days from 2001-01-10 to 2001-01-12, 8 people)"
    assert not communication_snapshots(mail, 3, start="2002-01-01", stop="2002-01-02").adjacency.any()


def test_what_is_missing_or_strange_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold enron_employees\.tsv\.gz.*PLURI_DATA"):
        load_enron(tmp_path)
    write(tmp_path, messages=MESSAGES.replace("9,5", "9,77"))
    with pytest.raises(ValueError, match=r"must name people of enron_employees\.tsv\.gz, got '77'"):
        load_enron(tmp_path)
    write(tmp_path, messages="a\tb\n1\t2\n")
    with pytest.raises(ValueError, match="must have the columns"):
        load_enron(tmp_path)
    write(tmp_path, messages=MESSAGES.split("\n")[0] + "\n")
    with pytest.raises(ValueError, match="at least one row"):
        load_enron(tmp_path)


def test_impossible_periods_are_refused():
    mail = random_mail(np.random.default_rng(2))
    with pytest.raises(ValueError, match="window_days must be at least 1"):
        communication_snapshots(mail, 0)
    with pytest.raises(ValueError, match="start must not be after stop"):
        communication_snapshots(mail, 5, start="2001-02-01", stop="2001-01-01")
    mail.times[0] = np.datetime64("2005-01-01")
    with pytest.raises(ValueError, match="in the order of time"):
        communication_snapshots(mail, 5)


@needs("enron_messages.tsv.gz")
def test_the_real_mail_has_the_known_counts():
    mail = load_enron()
    assert (mail.n_people, np.unique(mail.messages).size, mail.times.size) == (156, 21635, 38388)
    assert len(communication_snapshots(mail, 30, start="2001-08-01", stop="2001-12-01")) == 123
