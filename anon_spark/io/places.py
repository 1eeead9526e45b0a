"""Checks that the places of a job can be written, made before any work; they leave nothing behind."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anon_spark.config import is_path
from anon_spark.errors import ConfigurationError
from anon_spark.primitives.stores import Store

IMPLEMENTATION = "spark.sql.catalogImplementation"
SESSION_CATALOG = "spark_catalog"


def require_writable(place: str, key: str, shown: str | None = None) -> None:
    """Refuse a folder that cannot be written: a file in it, or in the nearest folder above, is made and removed.

    A store that cannot be managed from here is left to Spark.
    """
    try:
        store = Store.of(place, key)
    except ConfigurationError:
        return
    probe = f"_anon_spark_probe_{uuid4().hex}"
    try:
        if store.is_local:
            _try_local(_nearest(Path(store.path)) / probe)
        else:
            existed = store.exists
            store.below(probe).write("")
            store.below(probe).remove()
            if not existed:
                store.remove()
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "the store refuses it"
        raise ConfigurationError(f"{key}: {shown or place} cannot be written ({reason}). Choose another place.") from error


def require_lasting(spark: SparkSession, table: str, key: str) -> None:
    """Refuse a bare name where the catalog ends with the process: nobody would find the table again."""
    if is_path(table):
        return
    names = [part.strip("`") for part in table.split(".")]
    if len(names) > 2 and names[0].lower() != SESSION_CATALOG:
        return  # a catalog that somebody has set up
    try:
        implementation = spark.conf.get(IMPLEMENTATION)
    except PySparkException:  # a platform that does not tell has a catalog of its own
        return
    if implementation == "in-memory":
        raise ConfigurationError(
            f"{key}: {table} is a name of the catalog, and the catalog of this session is forgotten when it ends. Write a "
            f"path, such as ./{names[-1]}, or start Spark with a metastore (spark.sql.catalogImplementation=hive)."
        )


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    for place in (path, *path.parents):
        if place.exists():
            return place
    return Path(path.anchor)


def _try_local(probe: Path) -> None:
    """Raises OSError where no file can be made; what was made is gone afterwards."""
    before = probe.parent.stat()
    descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.close(descriptor)
    probe.unlink()
    with suppress(OSError):  # the folder may belong to somebody else
        os.utime(probe.parent, ns=(before.st_atime_ns, before.st_mtime_ns))
