"""The file of a store: where a URL points, whether it can be written, and what kind of disk lies under it."""

import os
import shutil
import stat
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from suite.errors import StoreUnusable
from suite.paths import shown as shown  # for the rest of the store's room

SQLITE = "sqlite:///"
MOUNTS = Path("/proc/self/mountinfo")
LEAST_FREE_BYTES = 2**20  # a new store takes 0.2 MB; under this the first results would fail
LONGEST_COMPANION = "..4194304.01234567-journal"  # of the files made beside a store, what the longest adds to its name

# Write-ahead logging needs memory shared between all openers, which these do not give to two machines.
NETWORK_FILE_SYSTEMS = frozenset(
    ("9p", "afs", "beegfs", "ceph", "cifs", "fhgfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "pvfs2",
     "smb2", "smb3", "smbfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.juicefs", "fuse.rclone", "fuse.s3fs",
     "fuse.sshfs")
)  # fmt: skip


def locate(url: str) -> Path:
    """The absolute path of the file that a plain path or an ``sqlite:///`` URL names.

    ``StoreUnusable`` for what names no file: an empty text, another database, options, memory, a folder; and for a URL that
    names one in another way (a driver, a user, ``%20``), in which a command that loads no database would not find it.
    """
    name = _database(url) if "://" in url else url
    if not name or name == ":memory:" or name.startswith("file:") or "\0" in name:
        raise StoreUnusable(f"store.url={url!r} names no file: give a path such as roofbench.db")
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # a user that the system does not know, or one without a home
        raise StoreUnusable(f"store.url={url!r} begins with a home directory that is not known: give a full path") from error
    if name.endswith("/") or _mode(path, url) == stat.S_IFDIR:
        raise StoreUnusable(f"store {shown(path)} is a directory: name a file, such as {shown(path / 'roofbench.db')}")
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a relative path has no meaning where the current directory was removed
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreUnusable(
            f"store.url={url!r} leads nowhere from the current directory ({reason}): give a full path"
        ) from error


def refuse_unwritable(path: Path, *, grows: bool = True) -> None:
    """``StoreUnusable`` where a store could not be opened for writing; looks only, creates nothing.

    A full disk is refused only where the store ``grows``: removing from it is what one wants to do then.
    """
    parent = path.parent
    if not parent.is_dir():
        raise StoreUnusable(f"store {shown(path)} cannot be created: {shown(parent)} is no directory; create it first")
    refuse_irregular(path)
    _refuse_long_name(path)
    if path.exists() and not os.access(path, os.R_OK):
        raise StoreUnusable(
            f"store {shown(path)} cannot be opened (Permission denied): it and its directory must be readable and writable"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreUnusable(f"store {shown(path)} is read-only: make it writable or choose another with store.url=PATH")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise StoreUnusable(f"store {shown(path)} cannot be written: {shown(parent)} is not writable; choose store.url=PATH")
    space = shutil.disk_usage(parent)
    if grows and space.total and space.free < LEAST_FREE_BYTES:
        raise StoreUnusable(f"store {shown(path)} cannot grow: {space.free} bytes are free on its disk; free at least 1 MiB")


def _refuse_long_name(path: Path) -> None:
    longest = os.pathconf(path.parent, "PC_NAME_MAX") - len(LONGEST_COMPANION)
    length = len(os.fsencode(path.name))
    if length > longest:
        raise StoreUnusable(
            f"the name of store {shown(path)} has {length} bytes, and the files beside it leave it {longest}: "
            "choose a shorter one with store.url=PATH"
        )


def refuse_irregular(path: Path) -> None:
    """``StoreUnusable`` for a device, a pipe or a socket: opening one could block or destroy."""
    if path.exists() and not path.is_file():
        raise StoreUnusable(f"store {shown(path)} is not a regular file: choose another with store.url=PATH")


def on_network(path: Path) -> bool:
    """Whether the file lies on a network file system, as far as the system's mount table tells."""
    try:
        mounts = MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return False  # no such table on this system: nothing says that it is
    return file_system(path, mounts) in NETWORK_FILE_SYSTEMS


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system that holds ``path``, from the text of ``/proc/self/mountinfo``; empty when not found."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, tail = line.partition(" - ")
        mount = Path(_unescaped(fields.split(" ")[4]))
        if path.is_relative_to(mount) and len(mount.parts) >= best:  # a later mount on the same point hides the earlier
            best, kind = len(mount.parts), tail.split(" ")[0]
    return kind


def _database(url: str) -> str | None:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreUnusable(f"store.url={url!r} is no URL: give a path or sqlite:///PATH") from error
    if parsed.get_backend_name() != "sqlite" or parsed.query or parsed.host:
        raise StoreUnusable(f"store.url={_masked(parsed)} names no SQLite file: give a path or sqlite:///PATH")
    if parsed.database and url != f"{SQLITE}{parsed.database}":
        given, meant = _masked(parsed) if parsed.password else url, shown(Path(parsed.database))
        raise StoreUnusable(f"store.url={given!r} is not written as roofbench reads it: give {meant} or sqlite:///PATH")
    return parsed.database


def _masked(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _mode(path: Path, url: str) -> int | None:
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # a name too long, a loop of links, a folder that may not be searched
        raise StoreUnusable(f"store.url={url!r} cannot be used: {error.strerror}; choose another path") from error


def _unescaped(mount: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        mount = mount.replace(code, character)
    return mount
