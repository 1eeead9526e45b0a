"""The guarantee for nested records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import check_number
from anon_spark.model.guarantee.limits import PRESENCE, SEVERAL_RELEASES


@dataclass(frozen=True, init=False)
class KmnAnonymity:
    """Any m or fewer labels of a record, with any n or fewer relations among them, are in at least k records, or in none.

    k: at least 2; m: at least 1; n: at least 0; l: at least 2, then in none of these groups of records, nor in all of them,
    is a value of a sensitive node type in more than 1 / l; sensitive_node_types: published as they are (sensitive_classes
    is the older name); negations: nodes of which an attacker may know that a record has nothing, each counting as one of
    the m labels.
    """

    k: int
    m: int
    n: int
    l: int | None = None  # noqa: E741 - the papers' name
    sensitive_node_types: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()

    unit: ClassVar[str] = "records"

    def __init__(
        self,
        k: int,
        m: int,
        n: int,
        l: int | None = None,  # noqa: E741
        sensitive_node_types: Sequence[str] = (),
        negations: Sequence[str] = (),
        *,
        sensitive_classes: Sequence[str] = (),
    ) -> None:
        if sensitive_classes and sensitive_node_types:
            raise ConfigurationError("sensitive_classes is the older name of sensitive_node_types: give one of them.")
        sensitive_node_types = sensitive_node_types or sensitive_classes
        check_number("k", k, "a group of one record protects nobody")
        check_number("m", m, "labels would not be protected at all", least=1)
        check_number("n", n, "a number of relations cannot be below none", least=0)
        if l is not None:
            check_number("l", l, "a value in all records that fit gives itself away")
            if not sensitive_node_types:
                raise ConfigurationError("l is given, but no node type is sensitive. Mark one (sensitive: true), or leave l out.")
        fields = {
            "k": k, "m": m, "n": n, "l": l,
            "sensitive_node_types": _distinct("sensitive_node_types", sensitive_node_types),
            "negations": _distinct("negations", negations),
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def covers(self) -> tuple[str, ...]:
        absent = f", the absence of {', '.join(self.negations)} counting as a label," if self.negations else ""
        secret = " (of node types that are not sensitive)" if self.sensitive_node_types else ""
        share = (
            f"Among the records that fit, and among all, no sensitive value, taken by itself, is in more than one of l = "
            f"{self.l}: the attacker concludes that the person has it with probability 1 / l at most."
        )
        return (
            f"Someone who knows any {self.m} or fewer labels of a record{secret}{absent} and any {self.n} or fewer relations "
            "among them (which of two labels is above the other on some path) finds at least k records that fit, or none.",
            "Labels are known as they were or as they are published: what is counted is their published form.",
            *([share] if self.l is not None else []),
        )

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        return (
            f"More knowledge: somebody who knows more than m = {self.m} labels or more than n = {self.n} relations of a record "
            "may be left with fewer than k.",
            "The method: relations were disassociated where too few records have them, and the label below then stands beside "
            "the one above. Somebody who knows the method and looks for labels that stand outside their usual place may find "
            "fewer than k records.",
            "Whole paths: relations are pairs. Somebody who knows that three labels or more are on one and the same path may be "
            f"left with fewer than k records{'' if self.n < 3 else ', also with n of 3 or more'}.",
            "How often: labels are counted, not nodes. Somebody who knows that a label occurs twice in a record may be left "
            "with fewer than k.",
            "Closer relations: that a label is right below another one, beside it, or before it is outside the guarantee.",
            "Lost relations: disassociating a relation takes others of the same path with it. A relation that is true of a "
            "person may be absent from the person's record, so the records that fit need not hold the person's own; that it is "
            "among them holds for labels and for relations that are left.",
            self._absence,
            *self._sensitive,
            "Columns published unchanged: kept columns are as they were. One that an attacker knows, or that determines a "
            "label, undoes the protection.",
            SEVERAL_RELEASES,
            PRESENCE,
        )

    @property
    def _absence(self) -> str:
        others = f" other than {', '.join(self.negations)}" if self.negations else ""
        return (
            f"Absent labels: somebody who knows that a record does not have a label{others}, or that the known labels are all "
            "of its labels, can rule out records. Name such labels as negations to have their absence counted."
        )

    @property
    def _sensitive(self) -> tuple[str, ...]:
        if not self.sensitive_node_types:
            return ("Shared labels: a label that all records that fit have in common is learnt without finding the record.",)
        names = ", ".join(self.sensitive_node_types)
        known = (
            "Known sensitive values: who knows a sensitive value of a person can use it to pick the record; only labels of the "
            "other node types count among the m."
        )
        if self.l is None:
            return (
                f"Sensitive node types: the values of {names} are published as they are, and nothing limits how many of the "
                "records that fit share one; it is learnt then. Give privacy.l to limit this.",
                known,
            )
        return (
            known,
            "Several sensitive values together: each is in at most 1 / l of the records that fit, but one or the other of them "
            "may be in most. Values that mean nearly the same count one by one.",
            f"Other node types: only values of {names} are limited; any other label that all records that fit share is learnt.",
        )

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"k": self.k, "m": self.m, "n": self.n, **({} if self.l is None else {"l": self.l})}

    def __str__(self) -> str:
        names = ", ".join(self.sensitive_node_types)
        diverse = "" if self.l is None else f" with {self.l}-diversity of {names}"
        beside = f" ({names} unprotected)" if names and self.l is None else ""
        absent = f" and the absence of {', '.join(self.negations)}" if self.negations else ""
        return f"{self.k}^({self.m},{self.n})-anonymity of labels and relations{absent}{diverse}{beside}"


def _distinct(parameter: str, values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise ConfigurationError(f"{parameter} must be a list of names, not one text. Write {parameter}=[...].")
    names = tuple(values)
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{parameter}: {len(names) - len(set(names))} are listed twice. Name each once.")
    return names
