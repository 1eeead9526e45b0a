"""The template of all families: a release that was not checked is not published."""

from __future__ import annotations

import pytest

from anon_spark.auditing import Kind, RowAccount, Verdict
from anon_spark.errors import GuaranteeViolated
from anon_spark.families.contract import Examined, require_examined

PASSED = Verdict("any", True, 0, 1, "fine.", kind=Kind.PROMISE)
ACCOUNT = RowAccount(1, 1, 0, 0, 0, 0)


def test_a_family_that_checks_nothing_is_refused() -> None:
    require_examined(Examined([PASSED], [PASSED], ACCOUNT))
    with pytest.raises(GuaranteeViolated, match="checked no truth"):
        require_examined(Examined([PASSED], [], ACCOUNT))
    with pytest.raises(GuaranteeViolated, match="checked no promise and no truth"):
        require_examined(Examined([], [], ACCOUNT))
