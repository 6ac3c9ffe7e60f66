# SPDX-License-Identifier: MIT
"""A folder whose reads and writes fail on request: a FUSE file system that passes everything through to another folder.

    python fuse.py FOLDER MOUNTPOINT

It reaches every program, also those that map a file, whose loads become reads of this file system. It talks to
/dev/fuse directly, so it needs no package: root mounts it with mount(2), others with the command fusermount.

Commands are lines of JSON on standard input; each is answered with a line. At the end of the input the folder is
unmounted. {"rule": null} ends the fault, and {"rule": {"kind": ..., "name": NAME, "from": A, "to": B}} begins one in
reads of bytes A to B of the files called NAME:

    eio     the read fails with EIO
    stall   the first such read is answered after "seconds"
    short   every read of more than one byte returns half of what was asked for. A mapping is refused meanwhile, as the
            kernel does it for files that it does not cache; "from" and "to" are not used
    enospc  after "bytes" more bytes all writes fail with ENOSPC, whatever the file

The answer is {"hits": H, "written": W}: how often the rule that ends with this command has struck, and how many bytes
were written since it began.
"""

from __future__ import annotations

import array
import ctypes
import errno
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import threading
import time

LOOKUP, FORGET, GETATTR, SETATTR, READLINK, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, OPEN, READ, WRITE, \
    STATFS, RELEASE = 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, ACCESS, CREATE, INTERRUPT, DESTROY, BATCH_FORGET, \
    RENAME2 = 20, 25, 26, 27, 28, 29, 30, 34, 35, 36, 38, 42, 45
DIRECT_IO = 1  # in the reply to OPEN: the kernel does not cache this file, and passes reads on as they are
SET_MODE, SET_SIZE, SET_MTIME, SET_MTIME_NOW = 1, 8, 32, 256
BUFFER = 1 << 20
MOST = 1 << 17  # bytes of a read or write
PAGE = 4096
NO_SUID, NO_DEV, DETACH = 2, 4, 2


class Server:
    """Answers the kernel's requests, one at a time; a stalled answer is left to a thread."""

    def __init__(self, folder, device):
        self.folder, self.device = folder, device
        self.paths, self.nodes = {1: ""}, {"": 1}
        self.files, self.next_file = {}, 1
        self.rule, self.hits, self.written = None, 0, 0
        self.lock = threading.Lock()

    # ---- commands ----

    def commands(self, lines):
        for line in lines:
            with self.lock:
                answer = {"hits": self.hits, "written": self.written}
                self.rule, self.hits, self.written = json.loads(line)["rule"], 0, 0
            print(json.dumps(answer), flush=True)

    def fault(self, kind, node, begin=0, end=1):
        """Returns the rule if it is of this kind and strikes these bytes."""
        rule = self.rule
        if not rule or rule["kind"] != kind:
            return None
        if kind != "enospc" and os.path.basename(self.paths.get(node, "")) != rule["name"]:
            return None
        if "from" in rule and not (begin < rule["to"] and end > rule["from"]):
            return None
        return rule

    def strike(self):
        with self.lock:
            self.hits += 1
            return self.hits

    # ---- names ----

    def path(self, node, name=None):
        """The path below self.folder of a node, or of a name in it."""
        own = self.paths[node]
        if name is not None:
            own = os.path.join(own, name) if own else name
        return own

    def real(self, node, name=None):
        return os.path.join(self.folder, self.path(node, name))

    def node(self, path):
        if path not in self.nodes:
            self.nodes[path] = number = max(self.paths) + 1
            self.paths[number] = path
        return self.nodes[path]

    def moved(self, old, new):
        """A path and all below it have another name. What had that name is gone."""
        for path in [p for p in self.nodes if p == new or p.startswith(new + "/")]:
            self.nodes.pop(path)
        for path in [p for p in self.nodes if p == old or p.startswith(old + "/")]:
            number = self.nodes.pop(path)
            self.nodes[new + path[len(old):]] = number
            self.paths[number] = new + path[len(old):]

    # ---- answers ----

    def attributes(self, path):
        s = os.lstat(os.path.join(self.folder, path))
        return struct.pack("<6Q10I", s.st_ino, s.st_size, s.st_blocks, int(s.st_atime), int(s.st_mtime),
                           int(s.st_ctime), s.st_atime_ns % 10**9, s.st_mtime_ns % 10**9, s.st_ctime_ns % 10**9,
                           s.st_mode, s.st_nlink, s.st_uid, s.st_gid, 0, PAGE, 0)

    def entry(self, path):
        """Names and attributes are not cached (they are valid for 0 seconds), so a file that changes is seen."""
        attributes = self.attributes(path)
        return struct.pack("<4Q2I", self.node(path), 0, 0, 0, 0, 0) + attributes

    def opened(self, descriptor, node):
        number, self.next_file = self.next_file, self.next_file + 1
        self.files[number] = descriptor
        return struct.pack("<Q2I", number, DIRECT_IO if self.fault("short", node) else 0, 0)

    def reply(self, unique, error, data=b""):
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        except OSError as problem:
            if problem.errno != errno.ENOENT:  # the request was interrupted
                raise

    def serve(self):
        while True:
            try:
                request = os.read(self.device, BUFFER)
            except OSError as problem:
                if problem.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                if problem.errno == errno.ENODEV:  # unmounted
                    return
                raise
            _, code, unique, node = struct.unpack_from("<IIQQ", request)
            if code in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            delay = 0
            try:
                data = self.answer(code, node, request[40:])
                if isinstance(data, tuple):
                    delay, data = data
                error = 0
            except OSError as problem:
                data, error = b"", problem.errno or errno.EIO
            except KeyError:
                data, error = b"", errno.ENOENT
            if delay:
                threading.Thread(target=self.late, args=(delay, unique, data), daemon=True).start()
            else:
                self.reply(unique, error, data)

    def late(self, delay, unique, data):
        time.sleep(delay)
        self.reply(unique, 0, data)

    def answer(self, code, node, body):
        """The data of the answer to a request, or (delay, data)."""
        handler = self.HANDLERS.get(code)
        if handler is None:
            raise OSError(errno.ENOSYS, "not served")
        return handler(self, node, body)

    # ---- requests ----

    def init(self, _, body):
        major, minor, ahead = struct.unpack_from("<3I", body)
        if major < 7:
            raise OSError(errno.EPROTO, "an old kernel")
        return struct.pack("<4I2H2I2H2I6I", 7, min(minor, 31), min(ahead, MOST), 0, 16, 12, MOST, 1, 0, 0, 0, 0,
                           *[0] * 6)

    def lookup(self, node, body):
        return self.entry(self.path(node, _text(body)))

    def getattr(self, node, _):
        return struct.pack("<Q2I", 0, 0, 0) + self.attributes(self.path(node))

    def setattr(self, node, body):
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        mtime, = struct.unpack_from("<Q", body, 40)
        mode, = struct.unpack_from("<I", body, 68)
        path = self.real(node)
        if valid & SET_MODE:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & SET_SIZE:
            os.truncate(path, size)
        if valid & (SET_MTIME | SET_MTIME_NOW):
            now = time.time() if valid & SET_MTIME_NOW else mtime
            os.utime(path, (now, now))
        return self.getattr(node, body)

    def readlink(self, node, _):
        return os.fsencode(os.readlink(self.real(node)))

    def symlink(self, node, body):
        name, target = body.split(b"\0")[:2]
        os.symlink(target, os.fsencode(self.real(node, os.fsdecode(name))))
        return self.entry(self.path(node, os.fsdecode(name)))

    def link(self, node, body):
        old, = struct.unpack_from("<Q", body)
        os.link(self.real(old), self.real(node, _text(body[8:])))
        return self.entry(self.path(node, _text(body[8:])))

    def mkdir(self, node, body):
        mode, _ = struct.unpack_from("<2I", body)
        os.mkdir(self.real(node, _text(body[8:])), stat.S_IMODE(mode))
        return self.entry(self.path(node, _text(body[8:])))

    def remove(self, node, body):
        path = self.path(node, _text(body))
        real = os.path.join(self.folder, path)
        (os.rmdir if os.path.isdir(real) and not os.path.islink(real) else os.unlink)(real)
        self.nodes.pop(path, None)
        return b""

    def rename(self, node, body, skip=8):
        folder, = struct.unpack_from("<Q", body)
        old, new = (os.fsdecode(part) for part in body[skip:].split(b"\0")[:2])
        os.rename(self.real(node, old), self.real(folder, new))
        self.moved(self.path(node, old), self.path(folder, new))
        return b""

    def rename2(self, node, body):
        if struct.unpack_from("<I", body, 8)[0]:
            raise OSError(errno.EINVAL, "flags")
        return self.rename(node, body, 16)

    def open(self, node, body):
        flags, = struct.unpack_from("<I", body)
        flags &= os.O_ACCMODE | os.O_TRUNC | os.O_APPEND
        return self.opened(os.open(self.real(node), flags & ~os.O_APPEND), node)

    def create(self, node, body):
        flags, mode = struct.unpack_from("<2I", body)
        path = self.path(node, _text(body[16:]))
        flags = flags & (os.O_ACCMODE | os.O_TRUNC | os.O_EXCL) | os.O_CREAT
        descriptor = os.open(os.path.join(self.folder, path), flags, stat.S_IMODE(mode))
        return self.entry(path) + self.opened(descriptor, self.node(path))

    def read(self, node, body):
        number, offset, size = struct.unpack_from("<QQI", body)
        if self.fault("eio", node, offset, offset + size):
            self.strike()
            raise OSError(errno.EIO, "injected")
        if size > 1 and self.fault("short", node):
            self.strike()
            size //= 2
        data = os.pread(self.files[number], size, offset)
        stall = self.fault("stall", node, offset, offset + size)
        return (stall["seconds"], data) if stall and self.strike() == 1 else data

    def write(self, node, body):
        number, offset, size = struct.unpack_from("<QQI", body)
        data = body[40:40 + size]
        full = self.fault("enospc", node)
        if full:
            if len(data) > full["bytes"]:
                self.strike()
            data = data[:full["bytes"]]
            full["bytes"] -= len(data)
            if size and not data:
                raise OSError(errno.ENOSPC, "injected")
        done = os.pwrite(self.files[number], data, offset)
        self.written += done
        return struct.pack("<2I", done, 0)

    def release(self, _, body):
        os.close(self.files.pop(struct.unpack_from("<Q", body)[0]))
        return b""

    def statfs(self, _, __):
        s = os.statvfs(self.folder)
        return struct.pack("<5Q4I6I", s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree, s.f_bsize, 255,
                           s.f_frsize, 0, *[0] * 6)

    def opendir(self, _, __):
        return struct.pack("<Q2I", 0, 0, 0)

    def readdir(self, node, body):
        _, offset, size = struct.unpack_from("<QQI", body)
        reply = b""
        for number, name in enumerate(sorted([".", ".."] + os.listdir(self.real(node)))):
            raw = os.fsencode(name)
            record = struct.pack("<2Q2I", number + 1, number + 1, len(raw), 0) + raw
            record += bytes(-len(record) % 8)
            if number >= offset:
                if len(reply) + len(record) > size:
                    break
                reply += record
        return reply

    def nothing(self, _, __):
        return b""

    HANDLERS = {
        INIT: init, LOOKUP: lookup, GETATTR: getattr, SETATTR: setattr, READLINK: readlink, SYMLINK: symlink,
        LINK: link, MKDIR: mkdir, UNLINK: remove, RMDIR: remove, RENAME: rename, RENAME2: rename2, OPEN: open,
        CREATE: create, READ: read, WRITE: write, RELEASE: release, STATFS: statfs, OPENDIR: opendir,
        READDIR: readdir, RELEASEDIR: nothing, FSYNC: nothing, FLUSH: nothing, FSYNCDIR: nothing, ACCESS: nothing,
        DESTROY: nothing}


def _text(body):
    return os.fsdecode(body.split(b"\0", 1)[0])


# ---- mounting ----


def _mount_as_root(point):
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    about = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"tokmap-faults", os.fsencode(point), b"fuse.tokmap", NO_SUID | NO_DEV, about.encode()):
        number = ctypes.get_errno()
        os.close(device)
        raise OSError(number, os.strerror(number), "/dev/fuse")
    return device, lambda: libc.umount2(os.fsencode(point), DETACH)


def _mount_as_user(point):
    program = shutil.which("fusermount3") or shutil.which("fusermount")
    if not program:
        raise OSError(errno.ENOENT, "the command fusermount is not installed")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        subprocess.run([program, "-o", "rw,nosuid,nodev,fsname=tokmap-faults", "--", point], check=True,
                       pass_fds=[theirs.fileno()], env=dict(os.environ, _FUSE_COMMFD=str(theirs.fileno())),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        descriptors = array.array("i")
        _, extra, _, _ = ours.recvmsg(1, socket.CMSG_LEN(4))
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[:4])
    if not descriptors:
        raise OSError(errno.EIO, "fusermount passed no descriptor")
    return descriptors[0], lambda: subprocess.run([program, "-u", "-z", point], check=False)


def main():
    folder, point = sys.argv[1:3]
    try:
        device, unmount = (_mount_as_root if os.geteuid() == 0 else _mount_as_user)(point)
    except (OSError, subprocess.CalledProcessError) as problem:
        print(json.dumps({"absent": f"no FUSE here: {problem}"}), flush=True)
        return
    server = Server(folder, device)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    print(json.dumps({"hits": 0, "written": 0}), flush=True)
    try:
        server.commands(sys.stdin)
    finally:
        unmount()
    thread.join(5)


if __name__ == "__main__":
    main()
