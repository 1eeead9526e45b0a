"""The pages of an assessment: one table, or two side by side, as texts, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from anon_spark.assessment.column_sets import ColumnSet
from anon_spark.assessment.facts import RiskFacts
from anon_spark.assessment.sizes import RANGES, THRESHOLDS
from anon_spark.report.formats import NOTHING, percent
from anon_spark.report.items import Bars, Item, Section, Table, Text
from anon_spark.report.plots import range_name

Tables = Mapping[str, RiskFacts]  # by name, one or two
Measure = Callable[[RiskFacts], Any]

SETS_SHOWN = 40
NUMBERS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, None))  # ranges of how many least sets a record has


def sections_of(tables: Tables) -> list[Section]:
    """Every section that has something to show."""
    made = (crowd_section, set_sections, disclosure_section, population_section, counted_section, null_section)
    return [section for make in made for section in make(tables)]


def _rows(tables: Tables, measures: Mapping[str, Measure]) -> list[tuple[Any, ...]]:
    """A row for every measure: its name, its value of every table, and which way is better."""
    return [(name, *(value(facts) for facts in tables.values()), _better(name)) for name, value in measures.items()]


def _head(tables: Iterable[str], first: str = "measure", *last: str) -> tuple[str, ...]:
    """The head of a table of measures: the names of the tables, if there are two."""
    names = list(tables)
    return (first, *(names if len(names) > 1 else ["value"]), *last)


def _better(name: str) -> str:
    """Which way of a measure protects better."""
    if name.startswith("smallest class"):
        return "more"
    less = ("chance", "unique", "found", "classes", "alone")
    return "less" if any(word in name for word in less) else NOTHING


def crowd_section(tables: Tables) -> Iterator[Section]:
    """Prosecutor and marketer risk, and the sizes of crowds."""
    unit = next(iter(tables.values())).unit
    groups = {
        range_name(*ends): [facts.look_up.crowds[at] / facts.look_up.rows for facts in tables.values()]
        for at, ends in enumerate(RANGES)
    }
    measures: dict[str, Measure] = {
        "rows": lambda facts: facts.look_up.rows,
        "classes (different combinations of values)": lambda facts: facts.look_up.classes,
        f"smallest class, {unit}": lambda facts: facts.look_up.smallest_class,
        "rows that are unique": lambda facts: facts.look_up.unique_rows,
        "share of rows that are unique": lambda facts: percent(facts.look_up.unique_share),
        "prosecutor: highest chance": lambda facts: facts.look_up.highest,
        "prosecutor: average chance": lambda facts: facts.look_up.average,
        **{f"prosecutor: rows with a chance above {threshold:g}": _above(threshold) for threshold in THRESHOLDS},
        "marketer: share expected to be found": lambda facts: percent(facts.look_up.marketer),
    }
    text = (
        f"A class is the set of rows that agree in every quasi-identifier, null being a value. Its size counts {unit}. Whoever "
        "knows that a person is in the table, and these values of the person, picks the right one of f with a chance of 1 / f "
        "(prosecutor). Whoever matches everybody finds the average (marketer). Less is better."
    )
    axis = f"share of rows, by {unit} that look alike; larger crowds are better"
    items: list[Item] = [
        Text("", [text]),
        _bars("People by size of their crowd", groups, tables, axis),
        Table("", _head(tables, "measure", "better"), _rows(tables, measures)),
    ]
    yield Section("How large the crowd of a person is", items)


def _bars(title: str, groups: Mapping[str, Sequence[float]], tables: Tables, unit: str) -> Bars:
    """A bar for every group and table."""
    series = {table: [shares[at] for shares in groups.values()] for at, table in enumerate(tables)}
    return Bars(title, list(groups), series, unit, as_share=True)


def _titled(of: str, title: str) -> str:
    return f"{of}{title}" if of else title[0].upper() + title[1:]


def _above(threshold: float) -> Measure:
    return lambda facts: percent(facts.look_up.above[threshold])


def set_sections(tables: Tables) -> Iterator[Section]:
    """Column sets and least sets, where they were counted."""
    if any(facts.column_sets is None for facts in tables.values()):
        return
    last = list(tables.values())[-1]
    assert last.column_sets is not None
    strongest = last.column_sets.strongest()
    groups = {" + ".join(one.columns): [_set_of(facts, one).unique_share for facts in tables.values()] for one in strongest}
    paragraphs = [
        "Distinctness is classes / rows. Separation is the share of pairs of rows that differ in at least one of the columns. "
        "Shares are of rows; less is better."
    ]
    if not last.column_sets.complete:
        paragraphs.append("There are too many sets of these columns. Sets of up to three columns were counted, and no others.")
    title = "The strongest set of each number of columns"
    items: list[Item] = [Text("", paragraphs), _bars(title, groups, tables, "share of rows that are unique; less is better")]
    for name, facts in tables.items():
        assert facts.column_sets is not None
        of = f"{name}: " if len(tables) > 1 else ""
        smallest = [
            (
                percent(one.share),
                one.columns if one.columns is not None else "no set does",
                one.number,
                "; ".join(f"{' + '.join(each.columns)} ({percent(each.unique_share)})" for each in one.strongest[:3]),
            )
            for one in facts.column_sets.smallest()
        ]
        head = ("more than", "columns", "such sets", "strongest")
        items.append(Table(_titled(of, "fewest columns that single out more than a share of the people"), head, smallest))
        items.append(_columns_table(of, facts))
        if len(tables) == 1:
            items.append(_sets_table(facts))
    yield Section("Which columns single people out", items)
    yield Section("Records that few columns single out", list(_least_items(tables)))


def _set_of(facts: RiskFacts, wanted: ColumnSet) -> ColumnSet:
    assert facts.column_sets is not None
    return facts.column_sets.of(wanted.columns)


def _columns_table(of: str, facts: RiskFacts) -> Table:
    sets = facts.column_sets
    assert sets is not None
    rows = []
    for column in facts.quasi:
        alone, others = sets.of([column]), [name for name in facts.quasi if name != column]
        without = percent(sets.of(others).unique_share) if others and sets.complete else None
        inside = percent(sets.least.by_column[column] / sets.least.uniques) if sets.least.uniques else None
        rows.append((column, alone.classes, percent(alone.unique_share), alone.distinctness, alone.separation, without, inside))
    head = ("column", "values", "unique alone", "distinctness", "separation", "unique on all others", "in a least set of uniques")
    return Table(_titled(of, "each column"), head, rows)


def _sets_table(facts: RiskFacts) -> Table:
    sets = facts.column_sets
    assert sets is not None
    order = sorted(sets.sets, key=lambda one: (-one.unique_share, len(one.columns), -one.separation))
    rows = [
        (" + ".join(one.columns), len(one.columns), percent(one.unique_share), one.distinctness, one.separation)
        for one in order[:SETS_SHOWN]
    ]
    more = f"The strongest {SETS_SHOWN} of {len(order):,} sets; all are in the JSON file." if len(order) > SETS_SHOWN else ""
    head = ("columns", "number", "unique", "distinctness", "separation")
    return Table("Sets of columns, the strongest first", head, rows, more)


def _least_items(tables: Tables) -> Iterator[Item]:
    yield Text(
        "",
        [
            "A least set of a unique record is a set of columns on which it is unique while no smaller part of them is enough "
            "(a minimal sample unique of SUDA). Few columns, or many such sets, mean that the record stands out in many ways: a "
            "special unique, which is likelier than others to be unique in the population too.",
        ],
    )  # fmt: skip
    measures: dict[str, Measure] = {
        "unique combinations of values": lambda facts: _least(facts).uniques,
        "of these, unique on fewer than all columns": lambda facts: _least(facts).special,
    }
    yield Table("", _head(tables, "measure", "better"), _rows(tables, measures))
    sizes = sorted({size for facts in tables.values() for size in _least(facts).by_size})
    if sizes:
        by_size = [(size, *(_least(facts).by_size.get(size, 0) for facts in tables.values())) for size in sizes]
        yield Table("Uniques by the columns of their smallest least set", _head(tables, "columns"), by_size)
        by_number = [
            (range_name(*ends), *(_between(_least(facts).by_number, *ends) for facts in tables.values())) for ends in NUMBERS
        ]
        yield Table("Uniques by how many least sets they have", _head(tables, "least sets"), by_number)


def _least(facts: RiskFacts) -> Any:
    assert facts.column_sets is not None
    return facts.column_sets.least


def _between(counts: Mapping[int, int], least: int, most: int | None) -> int:
    return sum(count for number, count in counts.items() if number >= least and (most is None or number <= most))


def disclosure_section(tables: Tables) -> Iterator[Section]:
    """The models of attribute disclosure of every sensitive column."""
    columns = next(iter(tables.values())).sensitive
    if not columns:
        return
    items: list[Item] = [
        Text(
            "",
            [
                "Each number is that of the worst class. Shares in a class are compared with those in the table itself (q), not "
                "with those of another table that it may have been made from. Null is a value, and rows are counted.",
            ],
        )
    ]  # fmt: skip
    for place, column in enumerate(columns):
        items.append(Table(column, _head(tables, "measure", "better"), _disclosure_rows(tables, place)))
    yield Section("What classes tell of sensitive columns", items)


def _disclosure_rows(tables: Tables, place: int) -> list[tuple[Any, ...]]:
    of = [facts.disclosure[place] for facts in tables.values()]
    rows: list[tuple[str, Sequence[Any], str]] = [
        ("distinct values of the table", [one.values if one.values is not None else "more than 1,000" for one in of], ""),
        ("rows in classes with one value", [percent(one.one_value_share) for one in of], "less"),
        ("least l: distinct values of a class", [one.least_l for one in of], "more"),
        ("least entropy l", [one.entropy_l for one in of], "more"),
        ("recursive, l = 2: c must exceed", [one.c_2 if one.c_2 is not None else "no c does" for one in of], "less"),
        ("recursive, l = 3: c must exceed", [one.c_3 if one.c_3 is not None else "no c does" for one in of], "less"),
        ("greatest t, equal distance", [one.t_equal for one in of], "less"),
        ("greatest t, ordered distance", [one.t_ordered for one in of], "less"),
        ("greatest β", [one.beta for one in of], "less"),
        ("greatest δ over values that a class has", [one.delta for one in of], "less"),
        ("classes that lack a value, so fail every δ", [one.lacking_classes for one in of], "less"),
    ]
    return [(name, *values, better or NOTHING) for name, values, better in rows if any(value is not None for value in values)]


def population_section(tables: Tables) -> Iterator[Section]:
    """Journalist risk and uniques of the population."""
    measured = {name: facts.population for name, facts in tables.items() if facts.population is not None}
    if not measured:
        return
    rows: list[tuple[str, list[Any]]] = [
        ("sampling fraction", [one.fraction for one in measured.values()]),
        ("people of the population", [round(one.size) for one in measured.values()]),
        ("journalist: highest chance", [one.highest_chance for one in measured.values()]),
        ("journalist: average chance", [one.average_chance for one in measured.values()]),
        ("uniques of the population, Zayatz", [_people(one.uniques.zayatz) for one in measured.values()]),
        ("uniques, slide negative binomial", [_people(one.uniques.slide_negative_binomial) for one in measured.values()]),
        ("uniques, Pitman", [_people(one.uniques.pitman) for one in measured.values()]),
        ("chosen by the sampling fraction", [one.uniques.chosen or "none has a solution" for one in measured.values()]),
        ("its estimate", [_people(one.uniques.estimate) for one in measured.values()]),
        ("its share of the population", [percent(one.unique_share) for one in measured.values()]),
        ("its error on the table itself", [_signed(one.uniques.error) for one in measured.values()]),
        ("how far it moves by chance", [_signed(one.uniques.spread) for one in measured.values()]),
        ("can be relied on", ["yes" if one.uniques.holds else "no" for one in measured.values()]),
    ]
    text = (
        "The table is taken for a simple random sample. Who does not know whether a person is in it looks for the person in the "
        "population: a class of f rows is expected to be larger there (journalist). Uniques of the population are estimated by "
        "three models, and one is chosen by the sampling fraction (Dankar et al. 2012): Pitman's up to 0.1, above the smaller of "
        "the other two. The chosen one is tried on the table itself, from a part of it; it can be relied on if that error and "
        "the play of chance together are at most 25 %, and Pitman's model does not contradict."
    )
    items: list[Item] = [Text("", [text]), _population_table(measured, rows)]
    yield Section("The population", items)


def _population_table(measured: Iterable[str], rows: Sequence[tuple[str, Sequence[Any]]]) -> Table:
    return Table("", _head(measured, "measure", "better"), [(name, *values, _better(name)) for name, values in rows])


def counted_section(tables: Tables) -> Iterator[Section]:
    """Journalist risk against a table of the population."""
    measured = {name: facts.counted_population for name, facts in tables.items() if facts.counted_population is not None}
    if not measured:
        return
    rows: list[tuple[str, list[Any]]] = [
        ("people of the population", [one.size for one in measured.values()]),
        ("journalist: highest chance", [one.highest_chance for one in measured.values()]),
        ("journalist: average chance", [one.average_chance for one in measured.values()]),
        ("people who are alone in the population", [one.unique for one in measured.values()]),
        ("rows of the table that are alone in the population", [one.unique_rows for one in measured.values()]),
    ]
    text = (
        "Who does not know whether a person is in the table looks for the person in the population (journalist). Crowds are "
        "counted in the table of the population that was given, and are as true as it is."
    )
    items: list[Item] = [Text("", [text]), _population_table(measured, rows)]
    yield Section("The population", items)


def _people(estimate: float | None) -> Any:
    return "no solution" if estimate is None else round(estimate)


def _signed(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:+.0f} %"


def null_section(tables: Tables) -> Iterator[Section]:
    """What changes if nulls agreed with every value."""
    if not any(facts.null_rows for facts in tables.values()):
        return
    measures: dict[str, Measure] = {
        "rows with a null among the quasi-identifiers": lambda facts: facts.null_rows,
        "unique rows, null as a value": lambda facts: percent(facts.look_up.unique_share),
        "unique rows, null as a wildcard": lambda facts: percent(_wild(facts).unique_share) if _wild(facts) else None,
        "average chance, null as a value": lambda facts: facts.look_up.average,
        "average chance, null as a wildcard": lambda facts: _wild(facts).average if _wild(facts) else None,
        "highest chance, null as a wildcard": lambda facts: _wild(facts).highest if _wild(facts) else None,
    }
    text = (
        "Everywhere else a null is a value of its own: two rows without an age agree in age. If a null agreed with every value, "
        "as for an attacker who does not know that the value is missing, crowds would be larger."
    )
    yield Section("Nulls", [Text("", [text]), Table("", _head(tables, "measure", "better"), _rows(tables, measures))])


def _wild(facts: RiskFacts) -> Any:
    return facts.wildcards if facts.wildcards is not None else (None if facts.null_rows else facts.look_up)
