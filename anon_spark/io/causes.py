"""Known causes of failures that Spark, Delta and the file system report, as messages that say what to do.

Only the kind of an error is used. Its text may hold values of records and is never repeated. Errors of this package that a
task raised keep their text, which holds no values.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from anon_spark import errors
from anon_spark.errors import AnonSparkError, DataError, PublicationRefused

_CONFLICT = re.compile(
    r"DELTA_CONCURRENT_\w+|DELTA_PROTOCOL_CHANGED|DELTA_METADATA_CHANGED|ConcurrentModificationException|"
    r"Concurrent(Append|DeleteRead|DeleteDelete|Write|Transaction)Exception|(Protocol|Metadata)ChangedException|"
    r"DELTA_TABLE_ALREADY_EXISTS|TABLE_OR_VIEW_ALREADY_EXISTS"
)
_FIRST = re.compile(r"DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")
_FULL = re.compile(r"No space left on device|DiskOutOfSpace|Disk quota exceeded|DSQuotaExceeded", re.IGNORECASE)
_APPEND_ONLY = re.compile(r"DELTA_CANNOT_MODIFY_APPEND_ONLY|delta\.appendOnly", re.IGNORECASE)
_CONSTRAINT = re.compile(r"DELTA_VIOLATE_CONSTRAINT\w*|DELTA_NOT_NULL_CONSTRAINT_VIOLATED|DELTA_MISSING_NOT_NULL\w*")
_LOST = re.compile(
    r"FAILED_READ_FILE|FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND\w*|DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_VERSION_NOT_CONTIGUOUS|"
    r"SparkFileNotFoundException|VersionNotFoundException|DELTA_LOG_FILE_NOT_FOUND\w*"
)
_READ_ONLY = re.compile(r"Permission denied|AccessControlException|Read-only file system|AccessDenied|403 Forbidden")
_NAME = re.compile(
    r"INVALID_SCHEMA_OR_RELATION_NAME|REQUIRES_SINGLE_PART_NAMESPACE|INVALID_TABLE_NAME|PARSE_SYNTAX_ERROR|"
    r"is not a valid name for tables/databases|InvalidObjectException"
)
_OF_A_TASK = "PythonException"  # of pyspark, with a JVM and on Spark Connect
_OURS = re.compile(r"^(?:\S+: )?anon_spark\.errors\.(\w+): (.+)$", re.MULTILINE)
_GONE = re.compile(r"Py4JNetworkError|ConnectionRefusedError|Answer from Java side is empty|SparkContext was shut down")


def is_conflict(error: BaseException) -> bool:
    """Whether Delta refused a commit because somebody else's came first."""
    return _says(error, _CONFLICT)


def is_first_commit(error: BaseException) -> bool:
    """Whether a table was not created because its folder is not empty: another writer may be about to commit first."""
    return _says(error, _FIRST)


def known_cause(error: BaseException, work: str | None = None) -> AnonSparkError | None:
    """The error to raise instead; None where the cause is unknown. It repeats no text of the original error."""
    if isinstance(error, AnonSparkError):
        return None
    ours = _of_a_task(error)
    if ours is not None:
        return ours
    if (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or _says(error, _FULL):
        return DataError(
            "A disk is full: the working directory, the output or the folder of the report has no room. Nothing was "
            f"published. Make room{f' in {work}' if work else ''}, or name another place under `work:`, and run again."
        )
    if _says(error, _APPEND_ONLY):
        return PublicationRefused(
            "output.table has the property delta.appendOnly, so its release cannot be replaced. Nothing was published. Unset "
            "the property, or choose another table."
        )
    if _says(error, _CONSTRAINT):
        return PublicationRefused(
            "output.table has a constraint (CHECK or NOT NULL) that the new release does not keep. Nothing was published. Drop "
            "the constraint, or choose another table."
        )
    if is_conflict(error):
        return PublicationRefused(
            "output.table: another writer committed at the same moment. Nothing of this run was published: run again, and "
            "let one job write there."
        )
    if _says(error, _LOST):
        return DataError(
            "input.table: data files of the version that is read are gone: they were vacuumed, or lost. Read a newer version "
            "(input.version), or restore the table."
        )
    if _says(error, _NAME):
        return DataError("output: the catalog refuses the name of a table. Use letters, digits and underscores only.")
    if _says(error, _READ_ONLY):
        return DataError("A place cannot be written or read: the rights are missing. Nothing was published.")
    if _says(error, _GONE):
        return AnonSparkError("Spark ended before the run did: its driver was stopped or ran out of memory. Run again.")
    return None


def _of_a_task(error: BaseException) -> AnonSparkError | None:
    """The DataError that a task raised; Spark passes it on as the text of a PythonException.

    Texts of other errors are never taken over: a value of a record could be in them.
    """
    for cause in _chain(error):
        match = _OURS.search(str(cause)) if type(cause).__name__ == _OF_A_TASK else None
        kind = getattr(errors, match[1], None) if match else None
        if match and isinstance(kind, type) and issubclass(kind, DataError):
            return kind(match[2])
    return None


def _says(error: BaseException, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in _texts(error))


def _texts(error: BaseException) -> Iterator[str]:
    """Kind, condition and text of an error and of its causes; for matching only."""
    for cause in _chain(error):
        condition = getattr(cause, "getCondition", None)
        yield type(cause).__name__
        if callable(condition):
            yield str(condition())
        yield str(cause)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
