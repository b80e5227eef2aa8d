"""The power fails at any instant: does what is on the disk then continue to the same result?

usage: python -m benchmarks.powerloss N

The system calls of a training, and of a bulk translation by two processes, are traced (strace). After each of them the
disk may be in several states: what was flushed (fsync) before is there; of the other changes of folders (a file made,
renamed, removed) any subset is, as POSIX allows and file systems that reorder them do; of the other writes to a file
nothing, all, a half, or zeros in their place.

checkpoints: for every state after each call, the newest checkpoint that is found is intact, and not older than the last
one whose writing had ended.
continued: from N of these states, the same command goes on: its result, by SHA-256, is that of an unbroken run.
"""

import ast
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.killtest import SIZES, commands, digest, errors_of, finish, start, write_corpus
from benchmarks.machine import save
from glassformer import checkpoint
from glassformer.errors import UserError

CALLS = (
    "openat,write,pwrite64,ftruncate,truncate,fsync,fdatasync,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,"
    "rmdir"
)
"""System calls that change files."""
MAX_SUBSETS = 64
"""Number of subsets of the changes of folders that were not flushed that are tried after each call; if there are more,
a random choice of them."""
CALL = re.compile(rb"^([\d.]+) (\w+)\((.*)\) += (\d+)(?:<.*>)?(?: \(.*\))?$", re.DOTALL)
STRING = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"')
DESCRIPTOR = re.compile(rb"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2}|[^>])*)>")


@dataclass
class Node:
    """A file or folder."""

    is_folder: bool
    data: bytes = b""
    """Content of a file in memory."""
    flushed: bytes = b""
    """Its content on the disk."""


@dataclass(frozen=True)
class Change:
    """A change of folders that is on the disk as a whole or not at all: (folder, name) -> what is there."""

    entries: tuple[tuple[tuple[int, bytes], int | None], ...]

    def is_in(self, folder):
        return any(key[0] == folder for key, _ in self.entries)


@dataclass
class Disk:
    """Files below a folder: as processes see them, and as they are on the disk."""

    root: bytes
    nodes: list[Node] = field(default_factory=lambda: [Node(is_folder=True)])
    entries: dict = field(default_factory=dict)
    """(folder, name) -> node, as processes see them."""
    flushed: dict = field(default_factory=dict)
    """The same on the disk."""
    pending: list[Change] = field(default_factory=list)
    """Changes of folders that are perhaps on the disk."""

    def find(self, path):
        """Folder and name of a path below the root, and what is there; None for other paths."""
        path = os.path.normpath(path)
        if path == self.root:
            return 0, b"", 0
        if not path.startswith(self.root + b"/"):
            return None
        *parents, name = path[len(self.root) + 1 :].split(b"/")
        folder = 0
        for parent in parents:
            folder = self.entries.get((folder, parent))
            if folder is None:
                return None
        return folder, name, self.entries.get((folder, name))

    def change(self, *entries):
        for key, node in entries:
            if node is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = node
        self.pending.append(Change(entries))

    def new(self, folder, name, *, is_folder):
        self.nodes.append(Node(is_folder))
        self.change(((folder, name), len(self.nodes) - 1))

    def flush(self, number):
        """fsync of a file or folder."""
        node = self.nodes[number]
        if not node.is_folder:
            node.flushed = node.data
            return
        for change in self.pending:
            if change.is_in(number):
                apply(self.flushed, change)
        self.pending = [change for change in self.pending if not change.is_in(number)]

    def call(self, name, arguments, result):
        """Do a system call. Returns whether it changed anything."""
        folders = [unescape(found) for found in DESCRIPTOR.findall(arguments)]
        paths = [unescape(found) for found in STRING.findall(arguments)]
        if name in ("write", "pwrite64", "ftruncate", "fsync", "fdatasync"):
            found = self.find(folders[0]) if folders else None
            if found is None or found[2] is None:
                return False
            node = self.nodes[found[2]]
            if name in ("fsync", "fdatasync"):
                self.flush(found[2])
            elif name == "write":
                node.data += paths[0][:result]  # all files are written from their beginning to their end
            elif name == "ftruncate":
                node.data = node.data[: int(arguments.rsplit(b",", 1)[1])]
            else:
                raise NotImplementedError(name)
            return True
        if name.endswith("at") or name == "renameat2":
            paths = [os.path.join(folder, path) for folder, path in zip(folders, paths, strict=False)]
        found = self.find(paths[0])
        if found is None:
            return False
        folder, base, node = found
        if name == "openat":
            if b"O_CREAT" in arguments and node is None:
                self.new(folder, base, is_folder=False)
                return True
            if b"O_TRUNC" in arguments:
                self.nodes[node].data = b""
                return True
            return False
        if name in ("mkdir", "mkdirat"):
            self.new(folder, base, is_folder=True)
        elif name == "truncate":
            self.nodes[node].data = self.nodes[node].data[: int(arguments.rsplit(b",", 1)[1])]
        elif name.startswith("rename"):
            to = self.find(paths[1])
            self.change((to[:2], node), ((folder, base), None))
        else:  # unlink, rmdir
            self.change(((folder, base), None))
        return True

    def states(self, rng, part):
        """States of a folder if the power fails now: path -> content of a file, or None for a folder."""
        pending = self.pending
        if 1 << len(pending) <= MAX_SUBSETS:
            subsets = itertools.product((False, True), repeat=len(pending))
        else:
            chances = [0, 1, *(rng.random() for _ in range(MAX_SUBSETS - 2))]
            subsets = ([chance > rng.random() for _ in pending] for chance in chances)
        for subset in subsets:
            entries = dict(self.flushed)
            for change in itertools.compress(pending, subset):
                apply(entries, change)
            below = {}
            for (folder, name), number in entries.items():
                below.setdefault(folder, []).append((name, number))
            folder, path = 0, b""
            for name in part:
                folder, path = entries.get((folder, name), -1), os.path.join(path, name)
            for how in ("nothing", "all", "half", "zeros"):
                yield self.tree(below, how, folder, path)

    def tree(self, below, how, folder, path):
        found = {}
        for name, number in below.get(folder, ()):
            node, inside = self.nodes[number], os.path.join(path, name)
            found[inside] = None if node.is_folder else content(node, how)
            if node.is_folder:
                found |= self.tree(below, how, number, inside)
        return found


def content(node, how):
    """What is on the disk of a file whose last writes were perhaps not flushed."""
    if node.data == node.flushed or how == "nothing":
        return node.flushed
    if how == "all":
        return node.data
    n = next((i for i, (a, b) in enumerate(zip(node.data, node.flushed, strict=False)) if a != b), len(node.flushed))
    if how == "half":
        return node.data[: n + (len(node.data) - n) // 2]
    return node.data[:n] + bytes(len(node.data) - n)


def apply(entries, change):
    for key, node in change.entries:
        if node is None:
            entries.pop(key, None)
        else:
            entries[key] = node


def unescape(text):
    return ast.literal_eval('b"' + text.decode() + '"')


def trace(arguments, root, out):
    """The system calls of a command that change files below a folder: name, arguments and result, in their order."""
    logs = root.with_name("trace")
    logs.mkdir()
    command = [sys.executable, "-m", "glassformer", *(argument.format(out=out) for argument in arguments)]
    strace = ["strace", "-ff", "-ttt", "-y", "-xx", "-s", "1000000000", "-e", f"trace={CALLS}", "-o", logs / "calls"]
    subprocess.run([*strace, *command], check=True)
    calls = []
    mark = "".join(f"\\x{byte:02x}" for byte in os.fsencode(root)).encode()
    for log in logs.glob("calls.*"):
        for line in log.read_bytes().splitlines():
            if (mark in line or os.fsencode(root) in line) and (match := CALL.match(line)):
                calls.append((float(match[1]), match[2].decode(), match[3], int(match[4])))
    shutil.rmtree(logs)
    return [call[1:] for call in sorted(calls)]


def write(state, folder):
    """Make a state of the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, data in state.items():
        target = folder / os.fsdecode(path)
        if data is None:
            target.mkdir()
        else:
            target.write_bytes(data)


def finished(disk, part):
    """Number of updates of the newest checkpoint whose writing has ended: its folder was flushed after its renaming."""
    folder = disk.find(os.path.join(disk.root, *part))
    names = [name for (parent, name) in disk.flushed if folder and parent == folder[2]]
    return max((int(name[5:]) for name in names if name.startswith(b"step-")), default=0)


def all_states(calls, root, part=()):
    """All different states of a folder after each call: number of the call, state, `finished`.

    Args:
        part: names of the folder, from that of `root`.
    """
    disk, seen, rng = Disk(os.fsencode(root)), set(), random.Random(1)
    for i, (name, arguments, result) in enumerate(calls):
        if not disk.call(name, arguments, result):
            continue
        at_least = finished(disk, part)
        for state in disk.states(rng, part):
            key = at_least, hash(frozenset(state.items()))
            if key not in seen:
                seen.add(key)
                yield i, state, at_least


def test_checkpoints(calls, root, out):
    """Open the newest checkpoint of every state of the folder of checkpoints."""
    found = Counter()
    part = os.fsencode(out.name), b"checkpoints"
    for i, state, at_least in all_states(calls, root, part):
        write({out.name.encode(): None, os.path.join(*part): None, **state}, root)
        found["states"] += 1
        try:
            newest = checkpoint.newest(out / "checkpoints", report=lambda message: None)
        except UserError:
            newest = None
        step = int(newest.name[5:]) if newest else 0
        if step < at_least:
            found["lost"] += 1
            print(f"  after call {i}, {calls[i][0]}: step {step} instead of {at_least}", flush=True)
    return {name: found[name] for name in ("states", "lost")}


def test_continued(calls, root, out, arguments, names, expected, n):
    """Continue from N states."""
    states = sum(1 for _ in all_states(calls, root))
    chosen = set(random.Random(1).sample(range(states), min(n, states)))
    found = Counter(states=states)
    for number, (i, state, _) in enumerate(all_states(calls, root)):
        if number not in chosen:
            continue
        write(state, root)
        found["continued"] += 1
        process = start(arguments, out)
        process.join()
        if process.exitcode:
            found["refused"] += 1
            print(f"  after call {i}, {calls[i][0]}: {errors_of(out).read_text()}", flush=True)
        elif digest(out, names) != expected:
            found["different"] += 1
            print(f"  after call {i}, {calls[i][0]}: another result", flush=True)
        if found["continued"] % 20 == 0:
            print(f"  {dict(found)}", flush=True)
    return {name: found[name] for name in ("states", "continued", "refused", "different")}


def main(n):
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder)
        train = ["train", f"{name}/train.en", f"{name}/train.fr", *SIZES, "--steps", "30", "--out", "{out}"]
        finish(start(train, base := folder / "base"), base)
        for kind in ("training", "bulk"):
            arguments, names = commands(folder)[kind]
            root = folder / "disk"
            root.mkdir()
            out = root / "out"
            calls = trace(arguments, root, out)
            expected = digest(out, names)
            print(f"{kind}: {len(calls)} system calls", flush=True)
            found[kind] = {"calls": len(calls)}
            if kind == "training":
                found[kind]["checkpoints"] = test_checkpoints(calls, root, out)
                print(found[kind], flush=True)
            found[kind]["whole"] = test_continued(calls, root, out, arguments, names, expected, n)
            print(found[kind], flush=True)
            shutil.rmtree(root)
    save("powerloss", found, f"python -m benchmarks.powerloss {n}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
