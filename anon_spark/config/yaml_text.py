"""YAML as a job file uses it: plain values only, every key text and given once."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from anon_spark.errors import ConfigurationError

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses equal keys."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.faults: list[str] = []

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                continue
            if key.value == "on":   # YAML 1.1 reads it as true; here it is the key for joins of tables
                key.tag = _TEXT
            if key.tag != _TEXT:
                self.faults.append(f"line {line}: a key should be text; put it in quotes")
            elif key.value in seen:
                self.faults.append(f"line {line}: key {key.value} is given twice, first in line {seen[key.value]}")
            else:
                seen[key.value] = line
        return node


# YAML 1.1 reads 1e-2 as text, because it has no dot
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789"))


def parse(content: str, where: str) -> Any:
    """The values of a YAML text.

    Guarantee: every fault raises ConfigurationError with line numbers, without the lines themselves.
    """
    loader = None
    try:
        loader = _Loader(content)
        value = loader.get_single_data()
        json.dumps(value, default=lambda _: None, skipkeys=True)   # an anchor that contains itself raises here
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigurationError(f"{where}{line}: is not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError:
        raise ConfigurationError(f"{where}: is not YAML: it contains characters that YAML does not allow") from None
    except (ValueError, OverflowError, RecursionError):
        raise ConfigurationError(
            f"{where}: a value cannot be read, such as a day that does not exist or an anchor inside itself") from None
    finally:
        if loader is not None:
            loader.dispose()
    if loader.faults:
        raise ConfigurationError("\n".join(f"{where}, {fault}" for fault in loader.faults), problems=loader.faults)
    return value
