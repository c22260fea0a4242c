"""What a part found, row by row, kept on disk as it comes: a part that is killed leaves what it had."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self


class Verdict(StrEnum):
    """What became of a row.

    ``pass`` and ``fail`` are judged against a limit, ``info`` has none; ``absent`` had no peer or no reading, ``failed`` broke.
    """

    PASS = "pass"
    FAIL = "fail"
    ABSENT = "absent"
    FAILED = "failed"
    INFO = "info"


class Row(NamedTuple):
    """One line of a part's table: ``cells`` as they are printed, ``figures`` the numbers behind them in SI units."""

    name: str
    cells: tuple[str, ...]
    verdict: Verdict
    figures: Mapping[str, Any] = {}
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "cells": list(self.cells), "verdict": self.verdict.value, "figures": dict(self.figures)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["name"], tuple(data["cells"]), Verdict(data["verdict"]), data["figures"], data["note"])


class Record:
    """The rows of one part.  ``raw`` keeps what a peer printed, whole; ``finished`` is false while the part runs."""

    def __init__(self, part: str, path: Path | None = None, about: Mapping[str, Any] | None = None) -> None:
        self.part = part
        self.about = dict(about or {})
        self.rows: list[Row] = []
        self.raw: dict[str, Any] = {}
        self.finished = False
        self._path = path
        self.save()

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.save()

    def keep(self, name: str, content: Any) -> None:
        """Keep a peer's own output, JSON values only."""
        self.raw[name] = content
        self.save()

    def finish(self) -> None:
        self.finished = True
        self.save()

    def save(self) -> None:
        """Replace the file in one step: a reader never sees half of it."""
        if self._path is None:
            return
        content = {
            "part": self.part,
            "about": self.about,
            "finished": self.finished,
            "rows": [row.to_json() for row in self.rows],
            "raw": self.raw,
        }
        beside = self._path.with_suffix(".part")
        beside.write_text(json.dumps(content, indent=1))
        beside.replace(self._path)

    @classmethod
    def load(cls, path: Path) -> Self:
        data = json.loads(path.read_text())
        record = cls(data["part"], about=data["about"])
        record.rows = [Row.from_json(row) for row in data["rows"]]
        record.raw, record.finished = data["raw"], data["finished"]
        return record
