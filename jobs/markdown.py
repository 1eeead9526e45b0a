"""Result files in Markdown: one section per family, each replaced when its job runs again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def replace_section(path: Path, title: str, name: str, text: str) -> None:
    """Write `text` as the section `name` of the file; other sections stay."""
    sections: dict[str, str] = {}
    if path.exists():
        for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _, body = part.partition("\n")
            sections[heading.strip()] = body.strip()
    sections[name] = text.strip()
    body = "\n\n".join(f"## {heading}\n\n{sections[heading]}" for heading in sorted(sections))
    path.write_text(f"# {title}\n\n{body}\n", encoding="utf-8")
