"""The recoding of the family `tree`: a cut with its disassociations, for the fitted table and for others."""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import LINK, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.recoding import Recoding
from anon_spark.families.tree.facts import CutSearch, NodeTypeCut, NodeTypePair, TreeFit
from anon_spark.families.tree.publication import NESTED, PATHS, Recode, published_rows
from anon_spark.families.tree.records import ROWS, Records, Roles, read_records, source_of
from anon_spark.families.tree.settings import Settings
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.tree import Cut, Forest, NodeType, TreeSchema
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.primitives.rounds import Workspace

Label = tuple[str, str | None]  # node type, value: as published


@dataclass(frozen=True)
class Fitted:
    """The fitted table, as long as its run is open."""

    source: DataFrame
    records: Records
    workspace: Workspace


@dataclass(frozen=True)
class TreeRecoding(Recoding):
    """Every value replaced by the lowest label of one cut above it, some relations disassociated in all records.

    Guarantee of an audited release (k^(m,n)): whoever knows up to m values of a record and up to n ancestor–descendant
    relations between them finds no record that fits, or at least k. With l: and no sensitive value is in more than 1 / l.
    Not covered: more values or relations than that; that a value is absent, unless the job names it; whole chains, order,
    number or adjacency of nodes; an attacker who reads from the structure itself what was disassociated; sensitive node
    types without l; kept columns an attacker knows; several releases put together. A second table must be audited by itself.
    """

    roles: Roles
    settings: Settings
    cut: Sequence[Label]
    pairs: Sequence[tuple[Label, Label]]  # in the order in which they are applied
    statistics: CutSearch
    negations: Sequence[Label] = ()
    nulls: str = "value"
    on_unseen: str = "error"
    warnings: Sequence[str] = ()
    key: str | None = field(default=None, repr=False, compare=False)
    workdir: str | None = None
    fitted: Fitted | None = field(default=None, repr=False, compare=False)  # not saved
    may_nest: bool = True  # whether `nested` is wanted where it can be had; not saved

    family = "tree"

    @property
    def has_nested(self) -> bool:
        """Whether the schema is whole, so that the release also holds nested values."""
        return self.may_nest and not self.pairs and all(name in self.roles.schema.ranks for name, _ in self.cut)

    @property
    def published(self) -> list[str]:
        """The columns of a release, in order."""
        return [PATHS, *([NESTED] if self.has_nested else []), *self.roles.keep]

    def transform(self, df: DataFrame) -> DataFrame:
        """The release of this or another table, e.g. next month's batch; it keeps the guarantee only if an audit says so.

        Values that lie below no node of the cut raise. Cost: one write of what is read, one shuffle by record; private files
        stay until the end of the program.
        """
        workspace = Workspace(df.sparkSession, self.workdir)
        atexit.register(workspace.close)
        source = source_of(df, self.roles, workspace)
        records = read_records(source, self.roles, self.nulls, self.on_unseen, self.settings.max_labels, workspace)
        rows = self._rows(records, linked=False)
        return rows if self.key is None else shuffled(rows, key_frame(df.sparkSession, self.key), self.published)

    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release of the fitted table in its final order, with LINK for the audit. Cost: one pass, one shuffle and sort."""
        return shuffled(self._rows(self._fitted.records, linked=True), key, self.published)

    def evidence(self) -> Mapping[str, DataFrame]:
        """For the audit, never published: `linked`, the rows of the records as they were read, with their private link."""
        source = self._fitted.source
        if self.roles.person is not None:
            source = source.select(LINK, F.explode(ROWS).alias(ROWS)).select(LINK, f"{ROWS}.*")
        return {"linked": source}

    @property
    def records(self) -> Records:
        """The trees of the fitted table."""
        return self._fitted.records

    @property
    def forest(self) -> Forest:
        """The hierarchies as they applied to the fitted table."""
        return self.records.forest

    def release(self, linked: bool = False) -> DataFrame:
        """The rows of the release of the fitted table, in the order of its records. Cost: one pass; no action."""
        return self._rows(self.records, linked)

    @cached_property
    def nodes(self) -> Cut:
        """The cut as node numbers of the fitted forest."""
        return self.cut_in(self.forest)

    def cut_in(self, forest: Forest) -> Cut:
        """The cut in the forest of another table. Raises DataError for values that no node of the cut covers."""
        cut = tuple(sorted(node for label in self.cut if (node := forest.node_of(*label)) is not None))
        try:
            forest.image(cut)
        except ValueError as error:
            raise DataError(
                "The table has values below no node of the cut: its hierarchies are not those of the fitted table. Fit again."
            ) from error
        return cut

    def pairs_in(self, forest: Forest) -> list[tuple[int, int]]:
        """The disassociations in the forest of another table; a label that is not there has no relation to lose."""
        pairs = [(forest.node_of(*upper), forest.node_of(*lower)) for upper, lower in self.pairs]
        return [(upper, lower) for upper, lower in pairs if upper is not None and lower is not None]

    def left_out(self) -> dict[str, int]:
        """Rows that the policies for nulls and unseen values drop; none is suppressed."""
        records = self.records
        return {"suppressed": 0, "dropped_nulls": records.dropped_nulls, "dropped_unseen": records.dropped_unseen}

    def facts(self) -> TreeFit:
        """Facts of the fit. A recoding that was loaded does not know how many records and values there were."""
        records = None if self.fitted is None else self.fitted.records
        return TreeFit(
            required_k=self.settings.k,
            m=self.settings.m,
            n=self.settings.relations,
            l=self.settings.l,
            disassociated=self._type_pairs(),
            negations=len(self.negations),
            partial=self.fitted is not None and not self.forest.is_full(self.nodes),
            nested=self.has_nested,
            node_types=tuple(self._type_cut(rank, node_type) for rank, node_type in enumerate(self.roles.schema)),
            search=self.statistics,
            records=None if records is None else records.count,
            nodes=None if records is None else records.nodes,
            merged_siblings=None if records is None else records.merged,
        )

    def content(self) -> dict[str, Any]:
        """What is saved. A hierarchy that a rule made is saved as the rule: its leaves and limits were values of the table."""
        roles = self.roles
        return {
            "schema": [asdict(node_type) for node_type in roles.schema],
            "hierarchies": {name: hierarchy.to_dict() for name, hierarchy in roles.hierarchies.items()},
            "rules": [name for name, hierarchy in roles.hierarchies.items() if not isinstance(hierarchy, Hierarchy)],
            "keep": list(roles.keep),
            "person": roles.person,
            "settings": asdict(self.settings),
            "cut": [list(label) for label in self.cut],
            "pairs": [[list(upper), list(lower)] for upper, lower in self.pairs],
            "negations": [list(label) for label in self.negations],
            "search": {**vars(self.statistics), "trail": [list(step) for step in self.statistics.trail]},
            "nulls": self.nulls,
            "on_unseen": self.on_unseen,
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> TreeRecoding:
        rules = set(content["rules"])
        hierarchies = {
            name: Rule.from_dict(saved) if name in rules else Hierarchy.from_dict(saved)
            for name, saved in content["hierarchies"].items()
        }
        schema = TreeSchema(tuple(NodeType(**saved) for saved in content["schema"]))
        return cls(
            roles=Roles(schema, hierarchies, content["keep"], content["person"]),
            settings=Settings(**content["settings"]),
            cut=[_label(label) for label in content["cut"]],
            pairs=[(_label(upper), _label(lower)) for upper, lower in content["pairs"]],
            negations=[_label(label) for label in content["negations"]],
            statistics=CutSearch(**{**content["search"], "trail": tuple(map(tuple, content["search"]["trail"]))}),
            **{name: content[name] for name in ("nulls", "on_unseen", "warnings")},
        )

    def close(self) -> None:
        """Remove the private files of the fit; frames that read them cannot be used any more."""
        if self.fitted is not None:
            self.fitted.workspace.close()

    @property
    def _fitted(self) -> Fitted:
        if self.fitted is None:
            raise ConfigurationError("This needs the fitted table of the recoding: fit again, or use transform().")
        return self.fitted

    @property
    def recode(self) -> Recode:
        """What is done to the trees of the fitted table."""
        return self._recode_in(self.forest)

    def _recode_in(self, forest: Forest) -> Recode:
        return Recode.of(forest, self.cut_in(forest), self.pairs_in(forest))

    def _rows(self, records: Records, linked: bool) -> DataFrame:
        forest = records.forest
        recode = self._recode_in(forest)
        rows = published_rows(records.frame, forest, recode, self.has_nested, self.roles.keep, linked)
        return rows.select(*map(quoted, self.published), *([LINK] if linked else []))

    def _type_cut(self, rank: int, node_type: NodeType) -> NodeTypeCut:
        """The values of a node type, and how many labels the cut has on each level; the top has none."""
        name, parent, sensitive = node_type.name, node_type.parent, node_type.sensitive
        if self.fitted is None:
            return NodeTypeCut(name, parent, sensitive, values=None, height=None, labels=())
        forest = self.forest
        levels = [int(forest.levels[node]) for node in self.nodes if forest.ranks[node] == rank]
        height = int(forest.tables[rank].shape[0]) - 1
        labels = tuple(levels.count(level) for level in range(height + 1))
        return NodeTypeCut(name, parent, sensitive, int(forest.leaf_nodes[rank].size), height, labels)

    def _type_pairs(self) -> tuple[NodeTypePair, ...]:
        """How many relations were disassociated between two node types; no report says which ones."""
        counted = Counter((upper[0], lower[0]) for upper, lower in self.pairs)
        return tuple(NodeTypePair(upper, lower, times) for (upper, lower), times in sorted(counted.items()))


def _label(saved: Sequence[Any]) -> Label:
    name, value = saved
    return str(name), value
