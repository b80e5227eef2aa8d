"""The lock of a folder."""

import os
import sys
from types import SimpleNamespace

import pytest

from glassformer import lock
from glassformer.errors import UserError


class Windows:
    """Locks bytes of files as Windows does: from the position of the descriptor on, for all others."""

    LK_NBLCK = 2

    def __init__(self):
        self.locked = set()

    def locking(self, descriptor, mode, n):
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        if at in self.locked:
            raise PermissionError(13, "Permission denied")
        self.locked.add(at)


@pytest.mark.parametrize("system", ["posix", "nt"])
@pytest.mark.parametrize("before", ["", "pid 1", "pid 123456"])
def test_one_process_has_the_lock_and_the_others_name_it(tmp_path, monkeypatch, system, before):
    if system == "nt":
        monkeypatch.setitem(sys.modules, "msvcrt", Windows())
        names = {name: getattr(os, name) for name in ("lseek", "SEEK_SET", "getpid")}
        monkeypatch.setattr(lock, "os", SimpleNamespace(name="nt", **names))
    (tmp_path / ".lock").write_text(before)
    refused = rf"another process \(pid {os.getpid()}\) is training in this folder"
    with lock.locked(tmp_path), pytest.raises(UserError, match=refused), lock.locked(tmp_path):
        pass
    assert (tmp_path / ".lock").read_text() == f"pid {os.getpid()}"
