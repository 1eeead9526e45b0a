"""Names of the JVM that pyspark asks for again and again, kept after the first answer.

For every function of every column pyspark asks for a class and one of its methods. The JVM looks for the class in several
packages, in all jars, and copies the list of its methods: of a run on a small table that was 3 % of the time.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember

FUNCTIONS = ("PythonUtils", "PythonSQLUtils", "functions", "org.apache.spark.sql.functions")  # classes of functions alone


class Kept:
    """A class of the JVM whose functions are asked for once."""

    def __init__(self, asked: Any) -> None:
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._asked, name)
        if isinstance(found, JavaMember):  # a function; anything else may change
            setattr(self, name, found)
        return found


def keep_functions(jvm: Any) -> None:
    """Keep the classes of functions in a view of the JVM, which then answers without asking. Twice does nothing more."""
    for name in FUNCTIONS:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):  # else a class that this version of Spark lacks
            setattr(jvm, name, Kept(found))
