"""One standalone cluster for all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.cluster import Cluster, standalone_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone master with two one-core workers of 1g, ended after the last test."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
