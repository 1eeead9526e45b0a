"""The guarantee of a table with models: what it refuses, its numbers, and what it says (no Spark)."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee import AttributeProtection, KAnonymity
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Models,
    RecursiveCL,
    TCloseness,
)

K5 = KAnonymity(5, ["age", "zip"])
ALL: Models = {
    "disease": (DistinctL(3), EntropyL(2.5), RecursiveCL(2, 3), TCloseness(0.2), BetaLikeness(1), BetaLikeness(2, enhanced=True)),
    "salary": (TCloseness(0.25, "ordered"), DeltaDisclosure(1.5)),
}


def test_its_numbers_are_plain_and_named() -> None:
    guarantee = AttributeProtection(K5, ALL, 20, (Fraction(1, 20), Fraction(1, 2)))
    assert guarantee.parameters == {
        "k": 5,
        "disease.l": 3, "disease.entropy_l": 2.5, "disease.recursive.c": 2.0, "disease.recursive.l": 3, "disease.t": 0.2,
        "disease.beta": 1.0, "disease.beta.enhanced": 2.0,
        "salary.t.ordered": 0.25, "salary.delta": 1.5,
        "map_k": 20, "presence.least": 0.05, "presence.most": 0.5,
    }  # fmt: skip
    assert json.loads(json.dumps(guarantee.parameters)) == guarantee.parameters
    assert (guarantee.k, guarantee.unit) == (5, "rows")
    assert AttributeProtection(KAnonymity(5, ["age"], "id"), ALL).unit == "persons"
    assert str(AttributeProtection(K5, {"disease": (DistinctL(3), TCloseness(0.2))}, 20, (Fraction(1, 20), Fraction(1, 2)))) == (
        "5-anonymity on age, zip (counting rows) and distinct 3-diversity of disease, 0.2-closeness (equal distance) of disease, "
        "20-map, (0.05, 0.5)-presence"
    )


def test_it_is_a_value() -> None:
    one, other = AttributeProtection(K5, ALL), AttributeProtection(K5, dict(ALL))
    assert one == other and hash(one) == hash(other) and one != AttributeProtection(K5, ALL, 20)


def test_every_model_says_what_it_covers_and_what_not() -> None:
    guarantee = AttributeProtection(K5, ALL)
    covers, limits = "\n".join(guarantee.covers), "\n".join(guarantee.does_not_cover)
    assert guarantee.covers[:2] == K5.covers
    for name, models in ALL.items():
        for model in models:
            assert f"{name}, {model}: {model.covers}." in covers and f"{name}, {model}: {model.does_not_cover}." in limits
    for words in ("count rows, not persons", "judged by itself", "Several releases", "Background knowledge", "Presence"):
        assert words in limits
    assert "when all rows of a class share one sensitive value" not in limits  # as k-anonymity alone says
    assert "columns without a model" in limits and "population" not in limits


@pytest.mark.parametrize(
    ("models", "open_columns"),
    [
        ({"disease": (DistinctL(2),)}, []),
        ({"disease": (TCloseness(0.2),), "salary": (DeltaDisclosure(1),)}, ["disease"]),  # 0.2-close to a table of 90 % flu
        ({"disease": (BetaLikeness(3),), "salary": (TCloseness(0.1, "ordered"), EntropyL(2))}, ["disease"]),
        ({"disease": (BetaLikeness(3, enhanced=True),), "salary": (RecursiveCL(3, 2),)}, []),
    ],
)
def test_a_single_value_in_a_class_is_named_where_no_model_prevents_it(models: Models, open_columns: list[str]) -> None:
    limits = AttributeProtection(K5, models).does_not_cover
    named = [text.split(":")[0].removeprefix("Attribute disclosure in ") for text in limits if text.startswith("Attribute disc")]
    assert named == [*open_columns, "columns without a model"]


def test_a_population_protects_also_a_single_row() -> None:
    guarantee = AttributeProtection(KAnonymity(1, ["age"], least=1), {}, 10)
    assert len(guarantee.covers) == 1 and "at least 10 rows of the population" in guarantee.covers[0]
    limits = "\n".join(guarantee.does_not_cover)
    assert "who is in the table" in limits and "Attribute disclosure: when all rows" in limits  # there is no model
    present = AttributeProtection(K5, {}, None, (Fraction(0), Fraction(1, 2)))
    assert "probability from 0 to 0.5" in present.covers[-1] and "at all is not limited" not in "\n".join(present.does_not_cover)
    with pytest.raises(ConfigurationError, match="protects nobody"):
        KAnonymity(1, ["age"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "No model"),
        (({"age": (DistinctL(2),)},), "both sensitive and quasi-identifiers: age"),
        (({"disease": ()},), "Column disease has no model"),
        (({"disease": (DistinctL(2), DistinctL(3))},), "listed twice"),
        (({}, 1), "map_k is 1"),
        (({}, 10, (0.5,)), "two numbers"),
        (({}, 10, (0.5, 0.2)), "least first"),
        (({}, 10, (-0.5, 0.2)), "from 0 to 1"),
        (({}, 10, (0, 1.5)), "from 0 to 1"),
    ],
)
def test_guarantees_that_say_nothing_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        AttributeProtection(K5, *arguments)


def test_one_row_without_a_population_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Give map_k"):
        AttributeProtection(KAnonymity(1, ["age"], least=1), {"disease": (DistinctL(2),)})
