"""Dates of documents, in whatever form they come, and the days, weeks or months that they lie in."""

from __future__ import annotations

import re
from email.utils import parsedate
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Period = Literal["day", "week", "month", "quarter", "year"]
Integers = NDArray[np.int64]
Days = NDArray[np.datetime64]

#: A year, with or without month and day; a time of day and a time zone may follow, and are not looked at.
ISO = re.compile(r"(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?(?=$|[T ,])|(\d{4})(\d{2})(\d{2})(?=$|T)")
#: What stands for a date that is not known.
UNKNOWN = {"", "nan", "nat", "none", "null", "na", "n/a"}
#: 1970 began on a Thursday: the first Monday of counted weeks is three days earlier.
MONDAY = 3


def check_period(period: str) -> None:
    """Refuse periods that there are none of."""
    if period not in get_args(Period):
        raise ValueError(f"period must be one of {', '.join(get_args(Period))}, got {period!r}")


def as_days(dates: Any, argument: str = "dates") -> Days:
    """Days of dates; NaT where a date is not known.

    Parameters
    ----------
    dates : array-like
        Dates or times of NumPy, pandas, polars or Python, or texts: ``2024-03-31`` or ``2024-03``, with any time after
        it, or as mail has them (``Sun, 31 Mar 2024 10:00:00 +0200``). None, NaN and empty texts are not known.
    argument : str, default="dates"
        What sentences call it.

    Returns
    -------
    array of datetime64[D]

    Examples
    --------
    >>> from pluri.topics.over_time.periods import as_days
    >>> as_days(["2024-03-31T10:00Z", "Sun, 31 Mar 2024 10:00:00 +0200", None]).tolist()
    [datetime.date(2024, 3, 31), datetime.date(2024, 3, 31), None]
    """
    if isinstance(dates, str):
        raise ValueError(f"{argument} must have a date for each document, got the text {dates!r}")
    kind = getattr(getattr(dates, "dtype", None), "kind", "")
    if kind == "M" and getattr(dates.dtype, "tz", None) is None:  # with a time zone: the day there, not in Greenwich
        return np.asarray(dates).astype("datetime64[D]")
    if kind in ("i", "u", "f"):
        raise ValueError(f"{argument} must be dates, such as 2024-03-31, got numbers: convert them first")
    found = np.empty(len(dates), dtype="datetime64[D]")
    for row, date in enumerate(dates):
        found[row] = _day(date, row, argument)
    return found


def _day(date: Any, row: int, argument: str) -> np.datetime64:
    if date is None or date != date:  # None, NaN and NaT
        return np.datetime64("NaT", "D")
    if isinstance(date, np.datetime64):
        return date.astype("datetime64[D]")
    if hasattr(date, "isoformat"):
        return np.datetime64(date.isoformat()[:10], "D")
    text = str(date).strip()
    if text.lower() in UNKNOWN:
        return np.datetime64("NaT", "D")
    if isinstance(date, str):
        try:
            if iso := ISO.match(text):
                year, month, day = (part or "1" for part in (iso.groups()[3:] if iso[4] else iso.groups()[:3]))
                return np.datetime64(f"{year}-{int(month):02d}-{int(day):02d}", "D")
            if mail := parsedate(text):
                return np.datetime64("{:04d}-{:02d}-{:02d}".format(*mail[:3]), "D")
        except ValueError:
            pass
    raise ValueError(f"{argument} must be dates, such as 2024-03-31, got {date!r} in row {row}")


def period_numbers(days: Days, period: Period) -> Integers:
    """Number of the period that each day lies in: days, Mondays, months, quarters or years since 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.over_time.periods import period_numbers, period_starts
    >>> number = period_numbers(np.array(["2024-03-31"], dtype="datetime64[D]"), "week")
    >>> period_starts(number, "week")
    array(['2024-03-25'], dtype='datetime64[D]')
    """
    if period == "day":
        return days.astype(np.int64)
    if period == "week":
        return (days.astype(np.int64) + MONDAY) // 7
    if period == "year":
        return days.astype("datetime64[Y]").astype(np.int64)
    months = days.astype("datetime64[M]").astype(np.int64)
    return months // 3 if period == "quarter" else months


def period_starts(numbers: Integers, period: Period) -> Days:
    """First days of periods."""
    numbers = np.asarray(numbers, dtype=np.int64)
    if period == "day":
        return numbers.astype("datetime64[D]")
    if period == "week":
        return (7 * numbers - MONDAY).astype("datetime64[D]")
    if period == "year":
        return numbers.astype("datetime64[Y]").astype("datetime64[D]")
    return (3 * numbers if period == "quarter" else numbers).astype("datetime64[M]").astype("datetime64[D]")


def period_names(starts: Days, period: Period) -> list[str]:
    """What people call periods.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.over_time.periods import period_names
    >>> period_names(np.array(["2024-04-01"], dtype="datetime64[D]"), "quarter")
    ['2024 Q2']
    """
    texts = [str(start) for start in starts]
    if period in ("day", "week"):
        return texts
    if period == "quarter":
        return [f"{text[:4]} Q{(int(text[5:7]) + 2) // 3}" for text in texts]
    return [text[:7] if period == "month" else text[:4] for text in texts]
