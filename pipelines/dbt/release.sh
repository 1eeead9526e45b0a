#!/bin/sh
# dbt builds the source table, then anon-spark publishes a release of it. Copy it and change what is yours.
#
#   sh release.sh people.yaml --select people          the job file, then what dbt build is told
#   ANON_SPARK_RUN="spark-submit --properties-file spark.conf jobs/run.py" sh release.sh people.yaml --select people
#
# It ends with the exit code of anon-spark: 0 published, or nothing to publish (the release of a series whose new people wait
# stays as it is), 2 the job file is wrong, 3 the data do not allow a release, 1 anything else. A failure of dbt is 1, whatever
# dbt ended with: its 2 is not ours.

if [ $# -eq 0 ]; then
  echo "release.sh: name the job file, as in: sh release.sh people.yaml --select people" >&2
  exit 2
fi
job=$1
shift

# 1. the source: models and their tests. If a test fails, nothing is released
dbt build "$@" || {
  echo "release.sh: dbt build ended with $?. No release was tried." >&2
  exit 1
}

# 2. the release: checks the job, anonymizes, audits, publishes in one commit. exec hands on stop signals and the exit code
exec ${ANON_SPARK_RUN:-anon-spark run} "$job" --quiet
