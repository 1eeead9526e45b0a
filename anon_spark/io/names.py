"""Names that a Delta table can have: those of a release are checked before a row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from anon_spark.columns import is_publishable, quoted
from anon_spark.errors import ConfigurationError


def require_publishable(source: DataFrame, published: Sequence[str]) -> None:
    """Refuse names that Delta would refuse at publication: of published columns, and of fields inside those of the source.

    A column that is only read may have any name. Cost: none, reads the schema.
    """
    unfit = [name for name in published if not is_publishable(name)]
    for field in source.schema.fields:
        if field.name in published:
            unfit += [f"{field.name}: {inner}" for inner in _unfit(field.dataType)]
    if unfit:
        raise ConfigurationError(
            f"Names that a Delta table cannot have: {'; '.join(map(quoted, unfit))}. Spaces, tabs, line breaks and , ; {{ }} ( ) "
            "= are not allowed in the name of a published column or of a field inside it, nor two fields that differ in case "
            "only. Rename them, in a view for instance, and read that.",
            names=unfit,
        )


def _unfit(kind: DataType) -> Iterator[str]:
    """Fields inside a type that cannot be written."""
    if isinstance(kind, StructType):
        lowered = [field.name.lower() for field in kind.fields]
        for field in kind.fields:
            if not is_publishable(field.name) or lowered.count(field.name.lower()) > 1:
                yield field.name
            yield from _unfit(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _unfit(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _unfit(kind.keyType)
        yield from _unfit(kind.valueType)
