"""Print what roofbench needs, one requirement a line:  python requirements.py PYPROJECT [EXTRA...]

pip installs what a project needs only together with the project, and a layer of gigabytes would then be made anew for every
line of source that changes.
"""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def requirements(project: dict[str, Any], extras: Sequence[str]) -> list[str]:
    """The dependencies of the table ``project`` and of its named extras; ``SystemExit`` for one that it has not."""
    offered = project["optional-dependencies"]
    for extra in extras:
        if extra not in offered:
            raise SystemExit(f"requirements: pyproject.toml has no extra {extra}; it has {', '.join(sorted(offered))}")
    return [*project["dependencies"], *(line for extra in extras for line in offered[extra])]


if __name__ == "__main__":
    file, *named = sys.argv[1:]
    sys.stdout.writelines(f"{line}\n" for line in requirements(tomllib.loads(Path(file).read_text())["project"], named))
