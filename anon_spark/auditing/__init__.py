"""The audit: one verifier per guarantee, and checks of truthfulness, row accounting and release hygiene.

Independent code: nothing here comes from the modules that count, search or recode, so a fault there cannot certify
itself. Every verifier reads frames, runs few distributed jobs and returns a `Verdict` of counts.
"""

from __future__ import annotations

from typing import get_args

from pyspark.sql import DataFrame

from anon_spark.auditing.guarantees.draw import verify_draw
from anon_spark.auditing.guarantees.itemset_support import verify_kkm, verify_klm
from anon_spark.auditing.guarantees.k_anonymity import verify_k_anonymity
from anon_spark.auditing.guarantees.l_diversity import verify_l_diversity
from anon_spark.auditing.guarantees.models import verify_models
from anon_spark.auditing.guarantees.nonreciprocal import verify_graph, verify_labels
from anon_spark.auditing.guarantees.population import completed_with_population, verify_population
from anon_spark.auditing.guarantees.tree_signatures import published_labels
from anon_spark.auditing.guarantees.tree_support import verify_kmn
from anon_spark.auditing.reading.classes import published_classes
from anon_spark.auditing.reading.completion import completed, completed_of_trees
from anon_spark.auditing.reading.scope import rows_in_scope
from anon_spark.auditing.release.bound import verify_bound
from anon_spark.auditing.release.dependencies import Dependency, find_dependencies
from anon_spark.auditing.release.hygiene import verify_columns, verify_metadata, verify_order
from anon_spark.auditing.release.persons import verify_one_row_each
from anon_spark.auditing.release.rows import RowAccount, verify_rows
from anon_spark.auditing.truth.compatibility import verify_nr_compat
from anon_spark.auditing.truth.full_domain import verify_recoding
from anon_spark.auditing.truth.linked import verify_linked
from anon_spark.auditing.truth.local_coverage import verify_covered
from anon_spark.auditing.truth.local_recoding import assignment_columns, verify_local_recoding
from anon_spark.auditing.truth.nonreciprocal import verify_compatible, verify_fields
from anon_spark.auditing.truth.transaction_coverage import verify_transactions_covered
from anon_spark.auditing.truth.transactions import verify_transactions
from anon_spark.auditing.truth.tree_coverage import verify_trees_covered
from anon_spark.auditing.truth.trees import verify_trees
from anon_spark.auditing.verdict import Kind, Verdict, combined
from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee import (
    AttributeProtection,
    KAnonymity,
    KKmAnonymity,
    KLmDiversity,
    KmnAnonymity,
    LDiversity,
    NonreciprocalAnonymity,
    NonreciprocalDiversity,
)

Verifiable = (
    KAnonymity
    | LDiversity
    | AttributeProtection
    | KKmAnonymity
    | KLmDiversity
    | KmnAnonymity
    | NonreciprocalAnonymity
    | NonreciprocalDiversity
)


def verify(release: DataFrame, *guarantees: Verifiable, source: DataFrame | None = None) -> Verdict:
    """Whether a release keeps all the guarantees; `verify(...).require()` raises when it does not.

    source: the table that was released. Nonreciprocal guarantees need it: the rows alone do not show whether each record fits
    k rows and each row k records. Only the run can see that sensitive values moved by a secret draw. Models of attribute
    disclosure compare classes with its rows in scope (`rows_in_scope`), and without it with the release.
    Guarantee: decided from the published values alone, and the source where it is needed. Cost: that of each verifier.
    """
    if not guarantees:
        raise ConfigurationError("verify needs at least one guarantee, for example KAnonymity(k=10, columns=[...]).")
    return combined(*(_verdict(release, guarantee, source) for guarantee in guarantees))


def _verdict(release: DataFrame, guarantee: Verifiable, source: DataFrame | None) -> Verdict:
    if isinstance(guarantee, KAnonymity):
        return verify_k_anonymity(release, guarantee.columns, guarantee.k, guarantee.person)
    if isinstance(guarantee, LDiversity):
        return verify_l_diversity(release, guarantee.columns, guarantee.sensitive, guarantee.l)
    if isinstance(guarantee, AttributeProtection):
        if guarantee.map_k is not None or guarantee.presence is not None:
            raise ConfigurationError("map_k and presence need the population table: call verify_population, which takes it.")
        anonymity = guarantee.anonymity
        classes = verify_k_anonymity(release, anonymity.columns, anonymity.k, anonymity.person)
        return combined(classes, *verify_models(release, source, anonymity.columns, guarantee.models))
    if isinstance(guarantee, KKmAnonymity):
        return verify_kkm(release, guarantee.columns, guarantee.items, guarantee.k, guarantee.m)
    if isinstance(guarantee, KLmDiversity):
        known = (guarantee.columns, guarantee.items, guarantee.sensitive)
        return verify_klm(release, *known, guarantee.k, guarantee.l, guarantee.m)
    if isinstance(guarantee, KmnAnonymity):
        if guarantee.negations:
            raise ConfigurationError("Negations need the labels below them: call verify_kmn, which takes these.")
        return verify_kmn(release, guarantee.k, guarantee.m, guarantee.n, guarantee.l, guarantee.sensitive_node_types)
    if isinstance(guarantee, NonreciprocalAnonymity | NonreciprocalDiversity):
        if source is None:
            raise ConfigurationError(
                f"{type(guarantee).__name__}: give the table that was released, verify(release, guarantee, source=table)."
            )
        fits, _ = verify_nr_compat(source, release, guarantee.items, guarantee.k, guarantee.sensitive)
        return combined(verify_fields(release), fits)
    raise ConfigurationError(
        f"No verifier for {type(guarantee).__name__}. Known guarantees: "
        + ", ".join(kind.__name__ for kind in get_args(Verifiable))
    )


__all__ = [
    "Dependency",
    "Kind",
    "RowAccount",
    "Verdict",
    "assignment_columns",
    "completed",
    "completed_of_trees",
    "completed_with_population",
    "find_dependencies",
    "published_classes",
    "published_labels",
    "rows_in_scope",
    "verify",
    "verify_bound",
    "verify_columns",
    "verify_compatible",
    "verify_covered",
    "verify_draw",
    "verify_fields",
    "verify_graph",
    "verify_k_anonymity",
    "verify_kkm",
    "verify_klm",
    "verify_kmn",
    "verify_l_diversity",
    "verify_labels",
    "verify_linked",
    "verify_local_recoding",
    "verify_metadata",
    "verify_models",
    "verify_nr_compat",
    "verify_one_row_each",
    "verify_order",
    "verify_population",
    "verify_recoding",
    "verify_rows",
    "verify_transactions",
    "verify_transactions_covered",
    "verify_trees",
    "verify_trees_covered",
]
