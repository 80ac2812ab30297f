"""Who lives, by the operating system: one locked file for each owner, beside the database.

``flock`` and not ``lockf``: a POSIX lock is lost as soon as any other descriptor of the file is closed. The
system frees the lock when the process ends, however it ends; nothing waits and nothing is renewed.

Source: semantics C4, C11.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from corrobo_core.ledgers._shared import new_owner_key

__all__ = ["Owner", "OwnerFile", "lives", "network_filesystem", "remove_stale"]

_MODE = 0o666  # less the umask, like the database itself: several users may share it
_NETWORK = frozenset(
    [
        "9p",
        "afs",
        "afp_fs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "fuse.ceph",
        "fuse.cephfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncp",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "smb2",
        "smb3",
        "smbfs",
    ]
)


class OwnerFile:
    """One incarnation of one process: a random key, and the lock that says it lives."""

    def __init__(self, path: Path, key: int, descriptor: int) -> None:
        self.path, self.key = path, key
        self._descriptor = descriptor
        self._inode = _inode(os.fstat(descriptor))

    @classmethod
    def take(cls, folder: Path) -> OwnerFile:
        """Make a file named by a new key and lock it.

        Raises:
            OSError: the folder cannot be written.
        """
        folder.mkdir(exist_ok=True)
        while True:
            key = new_owner_key()
            path = _path(folder, key)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                owner = cls(path, key, descriptor)
                # Between creation and lock it looked stale, and somebody may have removed it.
                if owner.stands():
                    return owner
            except BlockingIOError:
                pass
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def stands(self) -> bool:
        """Whether others can still see that this owner lives."""
        try:
            return _inode(self.path.stat()) == self._inode
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give up the lock and remove the file."""
        if self.stands():
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        self.forget()

    def forget(self) -> None:
        """Close the descriptor only. In a forked child the parent's lock stays; unlocking would free it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Owner:
    """This process's owner, taken when it is first needed.

    Args:
        folder: of the owners' files.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file: OwnerFile | None = None

    @property
    def key(self) -> int | None:
        """The key now, if there is one."""
        file = self._file
        return file.key if file else None

    def standing(self) -> int:
        """A key whose lock stands: the one of before, or a new one if somebody removed its file (C11).

        Raises:
            OSError: the folder cannot be written.
        """
        with self._lock:
            if self._file is None or not self._file.stands():
                self._drop()
                folder = self._folder()
                self._file = OwnerFile.take(folder)
                remove_stale(folder)
            return self._file.key

    def lives(self, key: int) -> bool:
        """Whether another owner lives."""
        return lives(self._folder(), key)

    def release(self) -> None:
        """Give it up: what it reserved and did not record is free for others."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file:
            file.release()

    def after_fork_in_child(self) -> None:
        """Own nothing. The descriptor is closed, and the parent's lock stays as it is."""
        file, self._file = self._file, None
        self._lock = threading.Lock()
        if file:
            file.forget()


def lives(folder: Path, key: int) -> bool:
    """Whether the process that took ``key`` still holds its lock. In doubt, yes.

    A wrong yes costs a wait; a wrong no costs one read (C5).
    """
    try:
        descriptor = os.open(_path(folder, key), os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        # Shared, so that two that ask at once do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_stale(folder: Path) -> None:
    """Remove the files of owners that are dead. What cannot be removed stays; nothing depends on it."""
    for path in _files(folder):
        with contextlib.suppress(OSError):
            _remove_if_stale(path)


def _remove_if_stale(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Held while unlinking: an owner that is just being made finds its file locked or gone, and makes another.
        if _inode(path.stat()) == _inode(os.fstat(descriptor)):
            path.unlink()
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        yield from folder.glob("*.owner")


def _path(folder: Path, key: int) -> Path:
    return folder / f"{key % (1 << 64):016x}.owner"


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def network_filesystem(path: Path, mountinfo: str | None = None) -> str | None:
    """The type of the network file system that holds ``path``, or None.

    Neither ``flock`` nor SQLite's WAL work between hosts. Known on Linux only; elsewhere the answer is None.

    Args:
        path: absolute, without symbolic links.
        mountinfo: text like ``/proc/self/mountinfo``, which is read if None.

    Source: semantics C11.
    """
    if mountinfo is None:
        try:
            mountinfo = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
        except OSError:
            return None
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        mounted = Path(_unescaped(fields.split(" ")[4]))
        if path.is_relative_to(mounted) and len(mounted.parts) >= best:  # a later mount hides an earlier one
            best, kind = len(mounted.parts), rest.split(" ")[0]
    return kind if kind in _NETWORK else None


def _unescaped(text: str) -> str:
    for code, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(code, char)
    return text
