"""RunReport and Comparison → JSON, Markdown, one self-contained HTML page with plots; `_repr_html_` in notebooks.

A report holds counts, levels and names of columns: never a value of a record, never a label of a hierarchy, never
a class below k. It reads nothing and decides nothing; the pipeline hands over facts.
"""

from __future__ import annotations

from anon_spark.report.compare import Compared, Comparison
from anon_spark.report.lattice import lattice_sections
from anon_spark.report.mst import mst_sections
from anon_spark.report.relational_transaction import relational_transaction_sections
from anon_spark.report.run_report import Check, Picture, RunReport, Section, Table, Text
from anon_spark.report.set_valued import set_valued_sections
from anon_spark.report.tree import tree_sections

__all__ = [
    "Check",
    "Compared",
    "Comparison",
    "Picture",
    "RunReport",
    "Section",
    "Table",
    "Text",
    "lattice_sections",
    "mst_sections",
    "relational_transaction_sections",
    "set_valued_sections",
    "tree_sections",
]
