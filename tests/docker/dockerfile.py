"""A Dockerfile read as far as its checks need: stages, instructions, arguments with their defaults."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

KEYWORD = re.compile(r"([A-Z]+)\s+(.*)", re.DOTALL)
VARIABLE = re.compile(r"\$\{(\w+)\}")


class Instruction(NamedTuple):
    """One instruction, its continued lines joined by spaces."""

    keyword: str
    text: str

    @property
    def words(self) -> list[str] | None:
        """The words of the exec form (a JSON array); ``None`` for the shell form."""
        begin = self.text.find("[")
        try:
            return list(json.loads(self.text[begin:])) if begin >= 0 else None
        except ValueError:
            return None


class Stage(NamedTuple):
    """What stands between one ``FROM`` and the next; ``base`` is an image, or the name of an earlier stage."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]

    def all(self, keyword: str) -> list[Instruction]:
        return [each for each in self.instructions if each.keyword == keyword]

    def last(self, keyword: str) -> Instruction | None:
        return next(reversed(self.all(keyword)), None)


def instructions(text: str) -> Iterator[Instruction]:
    """Comments left out, also those within an instruction."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    for line in joined.splitlines():
        if found := KEYWORD.fullmatch(line.strip()):
            yield Instruction(found[1], found[2])
        else:
            assert not line.strip(), f"no instruction: {line}"


def stages(text: str) -> dict[str, Stage]:
    """Stages by name, in their order."""
    defaults: dict[str, str] = {}
    found: list[Stage] = []
    for each in instructions(text):
        if each.keyword == "FROM":
            image, name = re.fullmatch(r"(\S+) AS (\S+)", each.text).groups()  # type: ignore[union-attr]
            found.append(Stage(name, filled(image, defaults), ()))
        elif not found:
            assert each.keyword == "ARG", each
            defaults.update(argument(each))
        else:
            found[-1] = found[-1]._replace(instructions=(*found[-1].instructions, each))
    return {stage.name: stage for stage in found}


def argument(instruction: Instruction) -> dict[str, str]:
    """The name of an ``ARG`` with its default."""
    name, _, default = instruction.text.partition("=")
    return {name: default}


def filled(text: str, values: Mapping[str, str]) -> str:
    """``${NAME}`` replaced."""
    return VARIABLE.sub(lambda found: values[found[1]], text)
