"""Owners of an SQLite ledger: locked files, told dead from alive, removed without a race (C4, C11)."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from corrobo_core.commands import Holder, Load, Open
from corrobo_core.errors import LedgerError
from corrobo_core.ledgers import _sqlite_file
from corrobo_core.ledgers._owner_file import OwnerFile, lives, network_filesystem, remove_stale
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.testing._operations import pass_of, reserving, unsent


def test_an_owner_lives_until_it_is_released(tmp_path: Path) -> None:
    owner = OwnerFile.take(tmp_path / "owners")
    assert owner.stands()
    assert lives(tmp_path / "owners", owner.key)
    owner.release()
    assert not lives(tmp_path / "owners", owner.key)
    assert not owner.path.exists()


def test_asking_twice_at_once_takes_nobody_for_the_owner(tmp_path: Path) -> None:
    owner = OwnerFile.take(tmp_path)
    owner.forget()  # dead, its file still there
    probe = os.open(owner.path, os.O_RDONLY)
    fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)  # somebody else asks just now
    assert not lives(tmp_path, owner.key)
    fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the twin: with an exclusive probe it would
    assert lives(tmp_path, owner.key)
    os.close(probe)


def test_closing_another_descriptor_of_the_file_keeps_the_lock(tmp_path: Path) -> None:
    """The reason for ``flock``: the twin shows what ``lockf`` would do."""
    owner = OwnerFile.take(tmp_path)
    os.close(os.open(owner.path, os.O_RDWR))
    assert lives(tmp_path, owner.key)
    owner.release()

    def free_for_others(path: Path) -> bool:
        take = f"import fcntl; fcntl.lockf(open({str(path)!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        taken = subprocess.run([sys.executable, "-I", "-c", take], check=False, stderr=subprocess.DEVNULL)
        return taken.returncode == 0

    path = tmp_path / "lockf"
    path.touch()
    held = os.open(path, os.O_RDWR)
    fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not free_for_others(path)
    os.close(os.open(path, os.O_RDWR))
    assert free_for_others(path)
    os.close(held)


def test_stale_files_go_and_living_ones_stay(tmp_path: Path) -> None:
    living, dead = OwnerFile.take(tmp_path), OwnerFile.take(tmp_path)
    dead.forget()
    (tmp_path / "a note by somebody").touch()
    remove_stale(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {living.path.name, "a note by somebody"}
    assert lives(tmp_path, living.key)
    living.release()


def _cleaned_up_before_the_lock(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let another process clean up in the worst moment: the new file is there, and not locked yet."""
    flock, times = fcntl.flock, iter(range(100))

    def interrupted(descriptor: int, operation: int) -> Any:
        if next(times) == 0:
            remove_stale(folder)
        return flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", interrupted)


def test_an_owner_whose_file_is_removed_while_it_is_made_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cleaned_up_before_the_lock(monkeypatch, tmp_path)
    owner = OwnerFile.take(tmp_path)
    assert lives(tmp_path, owner.key)
    owner.release()


def test_the_twin_that_does_not_look_again_is_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cleaned_up_before_the_lock(monkeypatch, tmp_path)
    monkeypatch.setattr(OwnerFile, "stands", lambda self: True)
    owner = OwnerFile.take(tmp_path)
    assert not lives(tmp_path, owner.key)
    owner.forget()


def test_owners_that_come_while_others_clean_up_all_live(tmp_path: Path) -> None:
    failures: list[object] = []

    def come_and_go() -> None:
        for _ in range(100):
            owner = OwnerFile.take(tmp_path)
            remove_stale(tmp_path)
            if not (owner.stands() and lives(tmp_path, owner.key)):
                failures.append(owner.path)
            owner.release()

    threads = [threading.Thread(target=come_and_go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_whose_file_was_removed_takes_a_new_key(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    """C11: every reservation checks in passing that its own lock still stands."""
    first = sqlite_ledger.perform(Open(reserving(unsent()))).operation
    shutil.rmtree(sqlite_path.with_name("effects.db-owners"))
    second = reserving(unsent())
    sqlite_ledger.pass_started(pass_of(second))
    opened = sqlite_ledger.perform(Open(second))
    assert opened.holder is Holder.RUNNING
    assert opened.operation.owner not in (None, first.owner)
    with SqliteLedger(sqlite_path) as other:
        assert other.perform(Load(second.key)).holder is Holder.RUNNING
        assert other.perform(Load(first.key)).holder is Holder.GONE


def test_a_ledger_reached_through_a_link_has_the_same_owners(
    sqlite_ledger: SqliteLedger, sqlite_path: Path, tmp_path: Path
) -> None:
    opened = sqlite_ledger.perform(Open(reserving(unsent()))).operation
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "link.db").symlink_to(sqlite_path)
    with SqliteLedger(folder / "link.db") as linked:
        assert linked.perform(Load(opened.key)).holder is Holder.RUNNING
        linked.perform(Open(reserving(unsent())))
    assert [path.name for path in folder.iterdir()] == ["link.db"]


# -- network file systems ----------------------------------------------------------------------------------------

MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /srv/shared rw - nfs4 server:/export rw
31 30 8:2 / /srv/shared/local rw shared:1 - xfs /dev/sdb rw
32 22 0:41 / /mnt/my\\040share rw - cifs //server/share rw
33 22 0:42 / /home rw master:2 - fuse.sshfs host:/home rw
34 22 8:3 / /home rw - btrfs /dev/sdc rw
35 22 0:43 / /srv/sharedness rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/app", None),
        ("/srv/shared", "nfs4"),
        ("/srv/shared/deep/er", "nfs4"),
        ("/srv/shared/local/x", None),
        ("/srv/sharedness", None),
        ("/mnt/my share/x", "cifs"),
        ("/home/app", None),
    ],
    ids=["root", "nfs", "below-nfs", "local-below-nfs", "alike-by-name", "space-in-name", "mounted-over"],
)
def test_the_innermost_and_latest_mount_counts(folder: str, kind: str | None) -> None:
    assert network_filesystem(Path(folder), MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_file, "network_filesystem", lambda folder: "nfs4")
    with pytest.raises(LedgerError, match="nfs4") as caught:
        SqliteLedger(tmp_path / "effects.db").migrate()
    assert not caught.value.retryable
    assert list(tmp_path.iterdir()) == []


def test_the_disk_of_this_machine_is_no_network_file_system(tmp_path: Path) -> None:
    assert network_filesystem(tmp_path.resolve()) is None
