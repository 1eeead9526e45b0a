"""Classes of the JVM are asked for once, and answer as before."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.machine.gateway import FUNCTIONS, Kept, keep_functions


class View:
    """A view of a JVM that counts what it is asked; it has classes with these names."""

    def __init__(self, *names: str) -> None:
        self.classes, self.asked = names, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return JavaClass(name, MagicMock()) if name in self.classes else JavaPackage(name, MagicMock())


def test_a_class_is_asked_for_once_and_a_package_stays() -> None:
    view = View("functions", "PythonUtils")
    keep_functions(view)
    keep_functions(view)
    others = [name for name in FUNCTIONS if name not in view.classes]
    assert sorted(view.asked) == sorted([*FUNCTIONS, *others])
    assert all(isinstance(vars(view)[name], Kept) for name in view.classes) and not set(others) & set(vars(view))


def test_functions_are_kept_and_nothing_else() -> None:
    class Members:
        def __init__(self) -> None:
            self.asked = list[str]()

        def __getattr__(self, name: str) -> Any:
            self.asked.append(name)
            return JavaMember(name, None, "target", MagicMock()) if name == "col" else len(self.asked)

    members = Members()
    kept = Kept(members)
    assert kept.col is kept.col and members.asked == ["col"]
    assert kept.counter < kept.counter  # a field is read anew


def test_the_session_answers_without_asking(spark: SparkSession) -> None:
    jvm: Any = SparkContext._jvm
    assert spark.range(3).select(F.sum("id")).collect()[0][0] == 3
    for name in ("PythonUtils", "functions"):
        assert isinstance(vars(jvm)[name], Kept)
    assert jvm.functions.col is jvm.functions.col
    with pytest.raises(Exception, match="no_such_function"):
        jvm.functions.no_such_function("id")
