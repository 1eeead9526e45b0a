"""The fit of the lattice family: distinct tuples, search, choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from time import perf_counter
from typing import Literal

from pyspark.sql import DataFrame

from anon_spark.config.job import PrivacySpec
from anon_spark.config.models import InPopulationSpec
from anon_spark.config.options import default, require_options
from anon_spark.errors import ConfigurationError, GuaranteeUnreachable, LimitExceeded
from anon_spark.families.arguments import Anonymizer, check_arguments, spark_frame
from anon_spark.families.lattice.bounded import least_loss, searches_one_k
from anon_spark.families.lattice.choice import Choice, choose
from anon_spark.families.lattice.exact import LEAST_K, exact_front
from anon_spark.families.lattice.exhaustive import exhaustive_front
from anon_spark.families.lattice.facts import Search
from anon_spark.families.lattice.job import LatticeJob, LatticeSpec
from anon_spark.families.lattice.model_costs import model_costs
from anon_spark.families.lattice.poka import Depth, Poka
from anon_spark.families.lattice.recoding import Fitted, LatticeRecoding
from anon_spark.families.lattice.scores import Scores
from anon_spark.kernels.models import Conditions
from anon_spark.metrics.classification import ClassificationError
from anon_spark.metrics.discernibility import Discernibility
from anon_spark.metrics.glm import INT64_SAFE, GeneralLoss
from anon_spark.metrics.loss import Loss
from anon_spark.model.facts import LevelReached
from anon_spark.model.front import Point, nondominated
from anon_spark.model.guarantee import KAnonymity
from anon_spark.model.guarantee.models import Model, Number, exact_number
from anon_spark.model.hierarchy import Hierarchy, Rule, as_rules, portable
from anon_spark.model.lattice import Node, lattice_of
from anon_spark.model.progress import Progress
from anon_spark.primitives.classes import Frequencies, count_tuples, counting
from anon_spark.primitives.classes.counting import marginals
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns

GUIDED_TUPLES = 10_000  # from about here a node costs more than choosing it with care


@dataclass(frozen=True, kw_only=True)
class LatticeAnonymizer(Anonymizer):
    """k-anonymity by full-domain generalization: `fit` finds the Pareto front of k against loss and chooses from it.

    Parameters are those of the job file. `choose` is {"k": …}, {"max_loss": …}, {"node": […]} or "knee"; by default the
    least loss with the required k. `models`: what the values of a sensitive column must keep in every class, as
    {"disease": [EntropyL(1.5), TCloseness(0.2)]}. `map_k` and `presence` (least, most) are kept in the population that `fit`
    gets. `others_wait` goes with a node: rows of classes that are too small are left out, however many, because their people come
    again with a later table. `workdir` is a private place that all workers see (needed on a cluster).
    Beyond 5 million nodes, `exact` with GLM and a k searches that k alone, up to `max_nodes` and `max_seconds`, and states a loss
    that no node is below.
    Guarantee of what `fit` returns: see LatticeRecoding. Cost: one shuffle of the table to distinct tuples; then
    evaluated nodes × distinct tuples in tasks; the driver holds arrays of lattice size.
    """

    k: int
    quasi_identifiers: Mapping[str, Hierarchy | Rule]
    sensitive: Sequence[str] = ()
    models: Mapping[str, Sequence[Model]] = field(default_factory=dict)
    map_k: int | None = None
    presence: tuple[Number, Number] | None = None
    keep: Sequence[str] = ()
    person: str | None = None
    suppression: float = default(PrivacySpec, "suppression")
    nulls: Literal["value", "suppress"] = default(LatticeJob, "nulls")
    on_unseen: Literal["error", "suppress"] = default(LatticeJob, "on_unseen")
    search: Literal["exact", "poka", "exhaustive"] = default(LatticeSpec, "search")
    depth: Depth | None = None
    refine: bool = default(LatticeSpec, "refine")
    loss: Literal["glm", "dm", "cm"] = default(LatticeSpec, "loss")
    class_column: str | None = None
    max_nodes: int = default(LatticeSpec, "max_nodes")
    max_seconds: float = default(LatticeSpec, "max_seconds")
    choose: Mapping[str, object] | Literal["knee"] | None = None
    others_wait: bool = False
    workdir: str | None = None
    progress: Progress | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_arguments(self)
        require_options(self, LatticeJob, InPopulationSpec if self.map_k is not None else PrivacySpec, LatticeSpec)
        KAnonymity(max(self.k, 2), tuple(self.quasi_identifiers), self.person)  # refuses columns that cannot be
        if (self.loss == "cm") != (self.class_column is not None):
            raise ConfigurationError("loss cm goes with class_column, and only with it.")
        if self.class_column is not None and self.class_column not in (*self.sensitive, *self.keep):
            raise ConfigurationError("class_column must be one of sensitive or keep: it is published unchanged.")
        strange = [name for name in self.models if name not in self.sensitive]
        if strange:
            raise ConfigurationError(f"models: {', '.join(strange)} is no sensitive column. Name it in sensitive.")
        named = [*self.quasi_identifiers, *self.sensitive, *self.keep, *([self.person] if self.person else [])]
        if len(set(named)) < len(named):
            raise ConfigurationError("A column has one role: name each column once.")
        nullable = [n for n, h in self.quasi_identifiers.items() if isinstance(h, Hierarchy) and h.has_null]
        if nullable and self.nulls == "suppress":
            raise ConfigurationError(f"nulls: suppress, but these hierarchies keep nulls: {', '.join(nullable)}.")

    def fit(
        self, df: DataFrame, workspace: Workspace | None = None, population: DataFrame | None = None
    ) -> LatticeRecoding:
        """Search the table's lattice; the recoding keeps the fitted counts only while a given workspace is open.

        population: a table with the same quasi-identifiers that holds everybody in `df`, for map_k and presence.
        """
        df = spark_frame(df)
        require_columns(df, self._named())
        if (population is None) != (self.map_k is None and self.presence is None):
            raise ConfigurationError("map_k and presence go with a population, and only with it: fit(df, population=…).")
        if workspace is not None:
            return self._fit(df, workspace, population, keep_counts=True)
        with Workspace(df.sparkSession, self.workdir) as private:
            return self._fit(df, private, population, keep_counts=False)

    def _fit(
        self, df: DataFrame, workspace: Workspace, population: DataFrame | None, keep_counts: bool
    ) -> LatticeRecoding:
        # 1. distinct tuples of leaf codes, with rows (and persons, and class values)
        frequencies = count_tuples(
            df,
            as_rules(self.quasi_identifiers),
            workspace,
            nulls=self.nulls,
            on_unseen=self.on_unseen,
            class_column=self.class_column,
            person=self.person,
            models=self._models,
            population=population,
        )
        self._refuse_too_few(frequencies)
        choice = self._choice()
        lattice = lattice_of(frequencies.hierarchies, searches_one_k(self.search, self.loss, choice.k))
        # 2. the counting of batches of nodes, and the loss that turns counts into points
        allowed = int(Fraction(str(self.suppression)) * frequencies.rows)
        budget = frequencies.rows if self.others_wait else allowed
        general = GeneralLoss(
            frequencies.rows, tuple(h.weight_total for h in frequencies.hierarchies), marginals(frequencies)
        )
        conditions = Conditions(frequencies.sensitive, self.map_k, self._presence)
        counts = counting(frequencies, budget, workspace, conditions=conditions)
        scores = Scores(lattice, counts, self._loss(general), self.progress)
        # 3. the front; of a node that is kept, its own points
        started = perf_counter()
        if self.others_wait:
            front, least = [], None
        elif lattice.has_front:
            front, least = self._front(scores, frequencies.tuples), None
        else:
            front, least = self._point(scores, max(choice.k or 0, self.k))
        seconds = perf_counter() - started
        # 4. one of its points
        asked = [f"{model} of {name}" for name, models in self._models.items() for model in models]
        chosen = choose(choice, front, scores, self.k, [*asked, *conditions.of_population()])
        if chosen.classes == 0:
            raise GuaranteeUnreachable(f"No class of these rows reaches k = {self.k} on the levels of the series.", k=self.k)
        refit = None
        if self.others_wait:
            front = [chosen]
            if lattice.has_front:
                bounded = counting(frequencies, allowed, workspace, conditions=conditions)
                refit = self._refit(Scores(lattice, bounded, scores.loss), frequencies.tuples)
        searched = lattice.has_front and not self.others_wait
        costs = model_costs(self._models, scores, counts, chosen) if searched and conditions else []
        losses = general.per_attribute(scores.stats_of(chosen))
        return LatticeRecoding(
            hierarchies=portable(self.quasi_identifiers, frequencies.hierarchies),
            chosen=chosen,
            points=front,
            denominator=scores.loss.denominator,
            required_k=self.k,
            sensitive=list(self.sensitive),
            models=self._models,
            with_population=population is not None,
            model_costs=costs,
            others_wait=self.others_wait,
            refit=refit,
            keep=list(self.keep),
            person=self.person,
            nulls=self.nulls,
            on_unseen=self.on_unseen,
            statistics=Search(
                name=self.search,
                loss=self.loss,
                nodes=lattice.size,
                evaluated=scores.evaluated,
                batches=scores.batches,
                seconds=round(seconds, 3),
                tuples=frequencies.tuples,
                rows=frequencies.rows,
                budget=budget,
                complete=searched and self.search != "poka",
                least_loss=least,
            ),
            attributes=[
                LevelReached(name, level, hierarchy.height, hierarchy.cardinality(level), share)
                for name, level, hierarchy, share in zip(
                    self.quasi_identifiers, chosen.node, frequencies.hierarchies, losses, strict=True
                )
            ],
            warnings=ambiguity_warnings(dict(zip(self.quasi_identifiers, frequencies.hierarchies, strict=True))),
            fitted=Fitted(frequencies, counts, workspace) if keep_counts else None,
        )

    def _refit(self, scores: Scores, tuples: int) -> Point | None:
        """The point of least loss that a search of these rows alone would choose, None where no node reaches k."""
        return next((point for point in reversed(self._front(scores, tuples)) if point.k >= self.k), None)

    def _front(self, scores: Scores, tuples: int) -> list[Point]:
        least_k = min(self.k, LEAST_K)
        if self.search == "exhaustive":
            return exhaustive_front(scores, least_k)
        if self.search == "exact":
            return exact_front(scores, guided=tuples >= GUIDED_TUPLES, least_k=least_k)
        depth = self.depth if self.depth is not None else scores.lattice.average_height
        return nondominated(Poka(scores, depth, self.refine).visit(), least_k)

    def _point(self, scores: Scores, k: int) -> tuple[list[Point], float | None]:
        """The best point found for one k, as the whole front, and the loss that none is below; the top's if it lacks k."""
        found = least_loss(scores, k, self.max_nodes, self.max_seconds)
        if found is None:  # the top may have k without the models
            return [point for point in [scores.points[scores.lattice.top]] if point.k], None
        return [found.point], found.lower_bound / scores.loss.denominator

    @property
    def _models(self) -> dict[str, tuple[Model, ...]]:
        return {name: tuple(models) for name, models in self.models.items() if models}

    @property
    def _presence(self) -> tuple[Fraction, Fraction] | None:
        if self.presence is None:
            return None
        least, most = (exact_number("presence", end) for end in self.presence)
        return least, most

    def _loss(self, general: GeneralLoss) -> Loss:
        if any(weight * general.rows >= INT64_SAFE for weight in general.root_weights):
            raise LimitExceeded(
                "A quasi-identifier's domain times the number of rows does not fit the counters. Give its mask a "
                "smaller length or alphabet, or its intervals fewer decimals."
            )
        if self.loss == "dm":
            return Discernibility(general.rows)
        return ClassificationError(general.rows) if self.loss == "cm" else general

    def _choice(self) -> Choice:
        if self.choose is None:
            return Choice(k=self.k)
        if self.choose == "knee":
            return Choice(knee=True)
        wanted = dict(self.choose)
        unknown = set(wanted) - {"k", "max_loss", "node", "knee"}
        if unknown:
            raise ConfigurationError(f"choose: unknown {', '.join(sorted(unknown))}. Use k, max_loss, node or knee.")
        node: Node | None = tuple(wanted.pop("node")) if wanted.get("node") is not None else None  # type: ignore[arg-type]
        return Choice(node=node, **{name: value for name, value in wanted.items() if value is not None})  # type: ignore[arg-type]

    def _refuse_too_few(self, frequencies: Frequencies) -> None:
        members = frequencies.rows if frequencies.persons is None else frequencies.persons
        if members < self.k:
            what = "rows" if frequencies.persons is None else "persons"
            raise GuaranteeUnreachable(
                f"k = {self.k} is more than the {members:,} {what} of the table. Lower k.", members=members
            )

    def _named(self) -> list[str]:
        return [*self.quasi_identifiers, *self.sensitive, *self.keep, *([self.person] if self.person else [])]


def ambiguity_warnings(hierarchies: Mapping[str, Hierarchy]) -> list[str]:
    """Warnings for ambiguous labels. Full-domain recoding works on (level, code), so they only mislead readers."""
    return [
        f"{name}: {labels} labels stand for different sets of values on levels {low} and {high}; readers of the "
        "release cannot tell which is meant. Give them different names."
        for name, hierarchy in hierarchies.items()
        for low, high, labels in hierarchy.ambiguous_labels()
    ]
