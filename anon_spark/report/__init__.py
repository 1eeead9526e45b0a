"""RunReport and Comparison → JSON, Markdown, one self-contained HTML page with plots; `_repr_html_` in notebooks.

A report holds counts, levels, names of columns and labels that the release shows in at least k rows: never another value
of a record, never a class below k. It reads nothing and decides nothing; the pipeline hands over facts.
"""

from __future__ import annotations

from anon_spark.report.compare import Compared, Comparison
from anon_spark.report.run_report import Bars, Check, Picture, RunReport, Section, Table, Text

__all__ = [
    "Bars",
    "Check",
    "Compared",
    "Comparison",
    "Picture",
    "RunReport",
    "Section",
    "Table",
    "Text",
]
