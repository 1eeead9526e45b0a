"""The demonstration: `spark-submit jobs/demo.py [--dir FOLDER]`, or `anon-spark demo`."""

from __future__ import annotations

import sys
from pathlib import Path

from jobs.progress import bar
from jobs.session import make_session


def demo(folder: Path, rows: int) -> int:
    """Make the samples, run every family on them and say where to look."""
    from pipelines.demo import DEMONSTRATIONS, make_samples

    spark = make_session("anon-spark demo")
    print(f"Making a sample of {rows:,} rows in {folder}/ …")
    make_samples(spark, folder, rows)
    for family, demonstrate in DEMONSTRATIONS.items():
        print(f"\n{family}: anonymizing it …")
        with bar() as progress:
            shown = demonstrate(spark, folder, progress)
        print(shown)
    return 0


if __name__ == "__main__":
    from jobs.cli import main

    sys.exit(main(["demo", *sys.argv[1:]]))
