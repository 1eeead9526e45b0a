"""Invented people for the gates of tables with quasi-identifiers: classes of known sizes, and rows that policies drop."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

CITIES = {"Aldorf": "North", "Bexley": "North", "Carden": "South", "Dunmore": "South"}
ILLNESS = ("flu", "gripp\u00e9", None, "gout")
ZIPS = ("13050", "13051", "13052", "22040", "22041", "22042", "31007", "45001")
DOSES = (0.0, 1.5, 0.1, 7.0)


def people() -> pa.Table:
    """(North, 13) and (South, 22): six persons each; (South, 31): two; (North, 45): one person, four rows; two are dropped."""
    rows: list[dict[str, Any]] = []
    for number in range(18):
        if number < 6:
            city, zip_, person = ("Aldorf", "Bexley")[number % 2], f"1305{number % 3}", number
        elif number < 12:
            city, zip_, person = ("Carden", "Dunmore")[number % 2], f"2204{number % 3}", number
        elif number < 14:
            city, zip_, person = "Carden", "31007", number
        else:
            city, zip_, person = "Aldorf", "45001", 14
        rows.append({"person_id": 7000 + person, "city": city, "zip": zip_})
    rows += [{"person_id": 7020, "city": None, "zip": "130519999"}, {"person_id": 7021, "city": "Atlantis", "zip": "2204199"}]
    for number, row in enumerate(rows):
        row |= {
            "row_id": number,
            "name": f"Inhabitant-{number}",
            "illness": ILLNESS[number * 3 % 4],
            "dose": DOSES[(number + number // 6) % 4],
        }
    return pa.Table.from_pylist(rows)


JOB: dict[str, Any] = {
    "columns__identifiers": ["name", "row_id"],
    "columns__quasi_identifiers": {"city": {"levels": "hierarchies/city.csv"}, "zip": {"mask": {"keep": "left"}}},
    "columns__sensitive": ["illness"],
    "columns__keep": ["dose"],
    "nulls": "suppress",
    "on_unseen": "suppress",
}
