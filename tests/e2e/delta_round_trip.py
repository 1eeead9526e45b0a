"""Submitted by test_cluster: write and read a Delta table through Python workers, on whatever master was given."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa

from jobs.session import make_session


def with_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Append which process handled the row."""
    worker = f"{socket.gethostname()}/{os.getpid()}"
    for batch in batches:
        yield batch.append_column("worker", pa.array([worker] * batch.num_rows, pa.string()))


if __name__ == "__main__":
    table = sys.argv[1]
    spark = make_session("delta round trip")
    rows = spark.range(0, 1000, 1, 4).mapInArrow(with_worker, "id long, worker string")
    rows.write.format("delta").save(table)
    again = spark.read.format("delta").load(table)
    workers = again.select("worker").distinct().count()
    sys.stdout.write(f"{spark.sparkContext.master} rows={again.count()} workers={workers}\n")
    spark.stop()
