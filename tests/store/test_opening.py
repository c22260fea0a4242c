"""Opening a store: what is refused, in one line, with nothing created; and what is opened how."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite import cli
from suite.errors import StoreUnusable
from suite.store import files, maintain
from suite.store import sqlite as database
from suite.store.queries import Reader
from suite.store.writer import Store, refuse_unusable
from tests.store import material
from tests.store.places import unwritable


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(url: str, open_: Callable[[str], object] = Store.open) -> str:
    with pytest.raises(StoreUnusable) as error:
        open_(url)
    message = str(error.value)
    assert "\n" not in message
    assert error.value.exit_status == 2
    return message


def journal_mode(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("pragma journal_mode").fetchone()[0])
    finally:
        connection.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one result, at rest."""
    path = tmp_path / "here" / "store.db"
    path.parent.mkdir()
    with Store.open(str(path)) as opened, opened.start_run(material.run_start()) as run:
        run.record(material.record())
        run.finish("complete")
    return path


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "bookmarks.db"
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode=wal")
    connection.execute("create table run (id integer primary key, url text)")
    connection.execute("insert into run values (1, 'a')")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("open_", [Store.open, Reader.open])
class TestRefused:
    def test_a_directory(self, tmp_path: Path, open_: Callable[[str], object]) -> None:
        assert f"store {tmp_path} is a directory: name a file" in refused(str(tmp_path), open_)
        assert "is a directory" in refused(f"{tmp_path}/new/", open_)
        assert everything_in(tmp_path) == {}

    @pytest.mark.parametrize(
        "url",
        [
            "",
            ":memory:",
            "sqlite://",
            "sqlite:///:memory:",
            "sqlite:///x.db?mode=ro",
            "file:x.db?mode=ro",
            "a\0b",
            "sqlite+pysqlite:///x.db",
            "http//://",
            "://",
        ],
    )
    def test_what_names_no_file(
        self, url: str, open_: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert "store.url=" in refused(url, open_)
        assert everything_in(tmp_path) == {}

    def test_another_database_without_showing_its_password(self, open_: Callable[[str], object]) -> None:
        message = refused("postgresql://me:secret@host/bench", open_)
        assert "sqlite:///PATH" in message
        assert "secret" not in message

    def test_a_device_or_a_pipe(self, tmp_path: Path, open_: Callable[[str], object]) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert "not a regular file" in refused(str(tmp_path / "pipe"), open_)
        assert "not a regular file" in refused("/dev/null", open_)

    def test_a_name_too_long(self, tmp_path: Path, open_: Callable[[str], object]) -> None:
        assert "choose another path" in refused(str(tmp_path / ("x" * 300)), open_)

    def test_another_programs_database(self, foreign: Path, open_: Callable[[str], object]) -> None:
        before = everything_in(foreign.parent)
        assert "another program's database (tables run)" in refused(str(foreign), open_)
        assert everything_in(foreign.parent) == before

    @pytest.mark.parametrize("content", [b"# notes\n" * 200, b"SQLite format 3\0" + b"\xff" * 500, b"x"])
    def test_a_file_that_is_no_database(self, tmp_path: Path, content: bytes, open_: Callable[[str], object]) -> None:
        (tmp_path / "notes.md").write_bytes(content)
        assert "notes.md is not a database" in refused(str(tmp_path / "notes.md"), open_)
        assert everything_in(tmp_path) == {"notes.md": content}

    def test_a_newer_schema(self, store: Path, open_: Callable[[str], object]) -> None:
        connection = sqlite3.connect(store)
        connection.execute("update alembic_version set version_num = '0999'")
        connection.commit()
        connection.close()
        before = everything_in(store.parent)
        message = refused(str(store), open_)
        assert "has schema 0999, newer than" in message
        assert "upgrade roofbench" in message
        assert everything_in(store.parent) == before


def test_a_store_that_is_not_there_is_not_created_by_reading(tmp_path: Path) -> None:
    assert "run `roofbench run` first" in refused(str(tmp_path / "none.db"), Reader.open)
    (tmp_path / "touched.db").touch()
    assert "run `roofbench run` first" in refused(str(tmp_path / "touched.db"), Reader.open)
    assert everything_in(tmp_path) == {"touched.db": b""}


def test_a_parent_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    assert f"{tmp_path / 'a' / 'b'} is no directory" in refused(str(tmp_path / "a" / "b" / "s.db"))
    (tmp_path / "file").write_text("x")
    assert "is no directory" in refused(str(tmp_path / "file" / "s.db"))
    assert everything_in(tmp_path) == {"file": b"x"}


def test_a_read_only_file_is_refused_for_writing_and_read(store: Path) -> None:
    before = everything_in(store.parent)
    with unwritable(store):
        assert f"store {store} is read-only" in refused(str(store))
        assert len(Reader.open(str(store)).results()) == 1
    assert everything_in(store.parent) == before


def test_a_read_only_folder_is_refused_for_writing_and_read(store: Path) -> None:
    before = everything_in(store.parent)
    with unwritable(store.parent):
        assert f"{store.parent} is not writable" in refused(str(store))
        assert "is not writable" in refused(str(store.parent / "new.db"))
        assert len(Reader.open(str(store)).results()) == 1
    assert everything_in(store.parent) == before


def test_a_published_store_in_wal_mode_is_read_from_a_read_only_folder(store: Path) -> None:
    connection = sqlite3.connect(store)
    connection.execute("pragma journal_mode=wal")
    connection.close()
    with unwritable(store), unwritable(store.parent):
        assert len(Reader.open(str(store)).results()) == 1


def test_reading_a_store_at_rest_leaves_no_file_beside_it(store: Path) -> None:
    before = everything_in(store.parent)
    with Reader.open(str(store)) as reader:
        reader.results(), reader.runs(), reader.counts()
        assert everything_in(store.parent) == before
    assert everything_in(store.parent) == before


def test_what_a_killed_writer_left_in_the_log_is_read(store: Path) -> None:
    with Store.open(str(store)) as opened, opened.start_run(material.run_start()) as run:
        run.record(material.record())
        copy = store.parent / "copy.db"
        for suffix in ("", "-wal"):
            Path(f"{copy}{suffix}").write_bytes(Path(f"{store}{suffix}").read_bytes())
    with unwritable(copy.parent):  # a log cannot be read where its index cannot be made: said, not passed over
        message = refused(str(copy), Reader.open)
        assert str(copy) in message
        assert "make its directory writable, or copy the store and its log elsewhere" in message
    assert len(Reader.open(str(copy)).results()) == 2


@contextmanager
def locked(path: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.store.child", str(path), "lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        yield
        holder.stdin.close()


def test_a_locked_store_is_one_line_after_the_wait(store: Path) -> None:
    with locked(store):
        message = refused(str(store), lambda url: Store.open(url, busy_timeout_s=0.3))
        assert message == f"store {store} is locked by another process: wait until it ends, or stop it"
    with Store.open(str(store)):
        pass


def test_a_check_of_a_locked_store_says_so_once_and_finds_nothing_wrong(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it wait as who has work to lose does."""
    waits: list[float] = []

    def connect(path: Path, options: str, busy_timeout_s: float = database.BUSY_TIMEOUT_S) -> sqlite3.Connection:
        waits.append(busy_timeout_s)
        return opened(path, options, busy_timeout_s)

    opened = database.connect
    with locked(store), monkeypatch.context() as patched:
        patched.setattr(database, "connect", connect)
        assert cli.main(["store", "check", "--store", str(store)]) == 2
    assert sum(waits) <= database.LOOKING_TIMEOUT_S < database.BUSY_TIMEOUT_S
    message = f"roofbench: store {store} is locked by another process: wait until it ends, or stop it\n"
    assert capsys.readouterr() == ("", message)
    assert cli.main(["store", "check", "--store", str(store)]) == 0


@pytest.mark.parametrize("length", range(220, 256, 5))
def test_a_store_whose_name_is_too_long_for_the_files_beside_it_is_refused(tmp_path: Path, length: int) -> None:
    """Nothing between a name that is taken and one that is refused in one line."""
    url = str(tmp_path / ("a" * length))
    if length + len("..4194304.01234567-journal") <= os.pathconf(tmp_path, "PC_NAME_MAX"):
        with Store.open(url) as opened, opened.start_run(material.run_start()) as run:
            run.finish("complete")
        assert len(Reader.open(url).runs()) == 1
        return
    message = refused(url, Store.open)
    assert f"has {length} bytes" in message
    assert list(tmp_path.iterdir()) == []


def test_a_store_locked_at_rest_cannot_be_read_meanwhile(store: Path) -> None:
    reader = Reader.open(str(store), busy_timeout_s=0.3)
    with locked(store), pytest.raises(StoreUnusable, match="locked by another process"):
        reader.runs()
    assert len(reader.runs()) == 1


AWKWARD = ["plain.db", "100%#a&b=ü'\".db", "with space.db", "file.db"]
FORMS = [(form, name) for form in ("{}", "sqlite:///{}") for name in AWKWARD]


@pytest.mark.parametrize(("form", "name"), [*FORMS, ("{}", "what?.db")])  # in a URL a question mark begins the options
def test_paths_and_urls_name_the_same_file(tmp_path: Path, form: str, name: str) -> None:
    path = tmp_path / name
    with Store.open(form.format(path)) as opened:
        assert opened.path == path
    assert sorted(everything_in(tmp_path)) == [name]
    assert Reader.open(str(path)).runs() == []


def test_a_relative_path_is_of_the_folder_it_was_given_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened = Store.open("store.db")
    reader = Reader.open("sqlite:///store.db")
    monkeypatch.chdir("/")
    with opened, opened.start_run(material.run_start()) as run:
        run.record(material.record())
        assert len(reader.results()) == 1


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()
    with Store.open(str(tmp_path / "s.db")) as opened, opened.start_run(material.run_start()) as run:
        run.record(material.record())
    assert len(Reader.open(str(tmp_path / "s.db")).results()) == 1


def test_a_link_to_nowhere_creates_the_file_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "s.db").symlink_to(tmp_path / "disk" / "real.db")
    with Store.open(str(tmp_path / "s.db")) as opened:
        assert opened.path == tmp_path / "disk" / "real.db"
    assert (tmp_path / "s.db").is_symlink()


def test_a_store_is_written_through_a_log_and_left_without_one(store: Path) -> None:
    with Store.open(str(store)):
        assert journal_mode(store) == "wal"
    assert journal_mode(store) == "delete"
    assert sorted(everything_in(store.parent)) == ["store.db"]


def test_on_a_network_file_system_there_is_no_write_ahead_log(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {store.parent} rw - nfs4 server:/export rw\n")
    monkeypatch.setattr(files, "MOUNTS", mounts)
    with Store.open(str(store)) as opened, opened.start_run(material.run_start()) as run:
        assert journal_mode(store) == "delete"
        run.record(material.record())
        assert not Path(f"{store}-wal").exists()
    assert len(Reader.open(str(store)).results()) == 2


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/a/s.db", "ext4"),
        ("/mnt/share/s.db", "nfs4"),
        ("/mnt/shared/s.db", "ext4"),
        ("/mnt/share/local/s.db", "xfs"),
        ("/mnt/with space/s.db", "fuse.sshfs"),
        ("/over/s.db", "lustre"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_nearest_latest_mount(path: str, kind: str) -> None:
    mounts = (
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "30 22 0:40 / /mnt/share rw - nfs4 server:/a rw\n"
        "31 30 8:2 / /mnt/share/local rw - xfs /dev/sdb rw\n"
        "32 22 0:41 / /mnt/with\\040space rw - fuse.sshfs host: rw\n"
        "33 22 0:42 / /over rw - tmpfs tmpfs rw\n"
        "34 33 0:43 / /over rw - lustre mds:/x rw\n"
    )
    assert files.file_system(Path(path), mounts) == kind


def test_a_full_disk_is_seen_before_anything_is_written(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 4096, 4096))
    assert "4096 bytes are free" in refused(str(store))
    assert "4096 bytes are free" in refused(str(store.parent / "new.db"))
    assert sorted(everything_in(store.parent)) == ["store.db"]


@pytest.mark.parametrize(
    "act", [maintain.vacuum, maintain.prune, lambda url: maintain.rebuild(url, lambda _: None), refuse_unusable]
)
def test_a_store_that_may_not_be_read_is_not_called_read_only(
    act: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mode 000, as the system answers everybody but root."""
    path = tmp_path / "store.db"
    Store.open(str(path)).close()
    monkeypatch.setattr(os, "access", lambda asked, *_: asked != path)
    with pytest.raises(StoreUnusable) as told:
        act(str(path))
    assert str(told.value) == (
        f"store {path} cannot be opened (Permission denied): it and its directory must be readable and writable"
    )
