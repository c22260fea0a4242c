"""Real stores for the tests of pages, small enough to be kept: ``recorded/README.md`` says what is in each.

python -m tests.dashboard.recordings STORE NAME    # keep a store as NAME, without what tells where it was made
"""

import json
import lzma
import sqlite3
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

KEPT = Path(__file__).with_name("recorded")


def recorded(name: str, folder: Path) -> Path:
    """The store of this name, unpacked into ``folder``."""
    path = folder / f"{name}.db"
    path.write_bytes(lzma.decompress((KEPT / f"{name}.db.xz").read_bytes()))
    return path


def keep(source: Path, name: str) -> Path:
    """Pack a copy of a store, without its own path and the name of its kernel's build."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        with sqlite3.connect(f"file:{source}?mode=ro", uri=True) as there:
            there.execute("VACUUM INTO ?", (str(copy),))
        there.close()
        with sqlite3.connect(copy) as scrubbed:
            for run in scrubbed.execute("SELECT id, argv, overrides, config FROM run").fetchall():
                values = [json.dumps(_scrubbed(json.loads(each))) for each in run[1:]]
                scrubbed.execute("UPDATE run SET argv = ?, overrides = ?, config = ? WHERE id = ?", (*values, run[0]))
            scrubbed.execute("UPDATE environment SET facts = json_set(facts, '$.system.kernel[0]', 'Linux')")
            scrubbed.commit()
            scrubbed.execute("VACUUM")
        scrubbed.close()
        target = KEPT / f"{name}.db.xz"
        target.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    return target


def _scrubbed(found: Any) -> Any:
    """The same with every store's address replaced by the default one."""
    if isinstance(found, dict):
        return {name: _scrubbed(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_scrubbed(value) for value in found]
    if isinstance(found, str) and "sqlite:///" in found:
        return f"{found.partition('sqlite:///')[0]}roofbench.db"
    return found


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), sys.argv[2]))
