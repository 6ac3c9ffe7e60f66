#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""object_server.py: a server of objects on this machine that injects faults.

    python3 object_server.py FOLDER [--log FILE] [--set JSON] [--port N]

serves the files below FOLDER as objects: http://HOST/BUCKET/KEY is FOLDER/BUCKET/KEY. It prints one line, the beginning
of its URLs and that of a second host, and serves until it is killed or its parent ends. The second host has the same
objects; redirections lead to it. Both understand GET and HEAD with ranges (also of the last bytes), If-Match and
If-None-Match, ListObjectsV2, and PUT, POST, and DELETE of objects and of uploads in parts.

While it runs, GET /-/counts answers what has happened, as JSON, and PUT /-/settings changes settings (SETTINGS below
has their names). Each request is a line of the log:

    GET /bucket/key range=0-99 status=206 sent=100 fault=none host=main secret=no

secret=yes: the request has credentials. Faults are drawn for a request from `seed`, its method, path, and end of range,
and how often the same was asked, so the order in which clients come does not matter. At most `most` requests for one
end of a range fail one after the other, and a corrupt answer is followed by a sound one, so that a client that tries
again gets the bytes in the end. A rule, {"path": PATTERN, "fault": NAME, "times": N}, makes the next N requests (all
without "times") whose method and path match fail in this way; the first rule that matches decides.

In Python: with ObjectServer(folder, rate=0.1) as server: server.url, server.set(rate=0), server.counts(), server.log().
"""
import argparse
import asyncio
import collections
import ctypes
import email.utils
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
import urllib.parse
from xml.sax.saxutils import escape

# A client can survive these by asking again.
TRANSIENT = ("reset_head", "reset_body", "short", "less", "wrong_range", "whole", "flip", "shifted", "garbage", "drip",
             "hang", "429", "500", "503")
# These are answers that a client reports. `redirect` is followed without credentials, and "lost" is only for changes:
# they are made, and the answer does not arrive.
FINAL = ("403", "404", "416", "replaced", "other_tag", "wrong_total", "redirect",
         "no_ranges")
LISTS = ("list_repeat", "list_vanish", "list_ghost", "list_loop", "list_unsorted")
CHANGES = ("lost", "late_error", "reset_head", "flip", "403", "429", "500", "503")
CORRUPT = ("flip", "shifted")
STALLS = ("stall", "dribble")  # no answer ever comes, and a byte of a header now and then
# Others that are only for rules: "half" sends half of a body and no more, and "cut" breaks off after half of it.

SETTINGS = {
    "seed": 1,
    "rate": 0.0,              # of the requests that fail
    "kinds": TRANSIENT,       # drawn with equal chances
    "most": 3,                # faults one after the other
    "rules": [],
    "path": "",               # a pattern: where faults are drawn
    "corrupt": r"\.(bin|tmx|mask)(\.zst)?$",  # a pattern: where faults that change bytes are drawn
    "delay": 0.0,             # seconds before each answer
    "slow": 0.5,              # seconds that "drip" and "hang" take
    "page": 1000,             # keys in a page of a list
    "ahead": 0,               # seconds by which the clock is ahead
    "keyed": False,           # ETags are no MD5, as where objects are encrypted with keys of a service
    "loose": False,           # ranges have status 200, and a list of no uploads is an error 404, as with rclone
    "retry_after": None,      # seconds that 429 and 503 ask for
    "accounts": None,         # {key: secret}: all signatures are checked
    "ghosts": [],             # keys that lists have and that do not exist
}


def draw(*words):
    """A number from 0 to 1 that depends on the words."""
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=7).digest(), "big") / 2**56


class Stop(Exception):
    """The connection ends."""


class Request:
    __slots__ = ("method", "path", "query", "headers", "target", "body", "host", "sock", "status", "sent", "fault",
                 "first", "end", "number")

    def __init__(self, head, host, sock):
        lines = head.decode("latin-1").split("\r\n")
        try:
            self.method, self.target, _ = lines[0].split(" ")
        except ValueError:
            raise Stop from None
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        path, _, query = self.target.partition("?")
        self.path = urllib.parse.unquote(path, errors="surrogateescape")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True)) if query else {}
        self.body, self.host, self.sock, self.status, self.sent, self.fault = b"", host, sock, 0, 0, "none"
        self.first = self.end = self.number = None


class Server:
    def __init__(self, folder, log=None):
        self.folder, self.log = os.path.abspath(folder), log
        self.set = types.SimpleNamespace(**SETTINGS)
        self.counters = collections.Counter()
        self.asked, self.row = collections.Counter(), {}
        self.running = self.arrived = 0
        self.tags, self.versions, self.uploads = {}, collections.Counter(), {}
        self.parts = tempfile.mkdtemp(prefix="parts ", dir=os.environ.get("TMPDIR"))
        self.other = ""

    # ---- which fault ----

    def choose(self, request):
        for rule in self.set.rules:
            if rule.get("times", 1) > 0 and re.search(rule.get("path", ""), request.target) and \
                    re.fullmatch(rule.get("method", ".*"), request.method):
                if "times" in rule:
                    rule["times"] -= 1
                return rule["fault"]
        if not self.set.rate:
            return "none"
        if request.method in ("GET", "HEAD"):
            kinds = [kind for kind in self.set.kinds if ("list-type" in request.query or kind not in LISTS) and
                     kind not in ("lost", "late_error")]
            if not re.search(self.set.corrupt, request.path):
                kinds = [kind for kind in kinds if kind not in CORRUPT]
        else:
            kinds = [kind for kind in self.set.kinds if kind in CHANGES]
        if not kinds or not re.search(self.set.path, request.path):
            return "none"
        key = (request.method, request.target, request.end)
        self.asked[key] += 1
        row = self.row.get(key, 0)
        if row < self.set.most and draw(self.set.seed, key, self.asked[key]) < self.set.rate:
            kind = kinds[int(draw(self.set.seed, key, self.asked[key], "kind") * len(kinds))]
            self.row[key] = row + 1 if kind not in CORRUPT else self.set.most
            return kind
        self.row.pop(key, None)
        return "none"

    # ---- connections ----

    async def serve(self, listener, host):
        loop = asyncio.get_running_loop()
        while True:
            sock, _ = await loop.sock_accept(listener)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = loop.create_task(self.connection(sock, host))
            task.add_done_callback(lambda done: done.cancelled() or done.exception() and print(
                f"the server failed: {done.exception()!r}", file=sys.stderr))

    async def connection(self, sock, host):
        buffer = b""
        loop = asyncio.get_running_loop()
        try:
            while True:
                while (at := buffer.find(b"\r\n\r\n")) < 0:
                    more = await loop.sock_recv(sock, 65536)
                    if not more or len(buffer) > 1 << 20:
                        raise Stop
                    buffer += more
                request = Request(buffer[:at], host, sock)
                buffer = await self.read_body(request, buffer[at + 4:])
                self.running += 1
                self.arrived += not request.path.startswith("/-/")
                request.number = self.arrived  # the counters would depend on when an earlier one is seen to have ended
                self.counters["at once"] = max(self.counters["at once"], self.running)
                try:
                    await self.answer_one(request)
                finally:
                    self.running -= 1
                    self.note(request)
                if request.headers.get("connection", "").lower() == "close":
                    raise Stop
        except (Stop, OSError):
            pass
        finally:
            sock.close()

    async def read_body(self, request, buffer):
        loop = asyncio.get_running_loop()

        async def more():
            got = await loop.sock_recv(request.sock, 1 << 20)
            if not got:
                raise Stop
            return got
        if request.headers.get("expect", "").lower() == "100-continue":
            await loop.sock_sendall(request.sock, b"HTTP/1.1 100 Continue\r\n\r\n")
        length = int(request.headers.get("content-length") or 0)
        parts, have = [buffer], len(buffer)
        while have < length:
            parts.append(await more())
            have += len(parts[-1])
        buffer = b"".join(parts)
        request.body, buffer = buffer[:length], buffer[length:]
        if request.headers.get("transfer-encoding", "").lower() == "chunked":
            request.body, buffer = await self.unchunk(buffer, more)
        if "aws-chunked" in request.headers.get("content-encoding", ""):
            request.body, _ = await self.unchunk(request.body + b"\r\n", more)
        return buffer

    @staticmethod
    async def unchunk(buffer, more):
        body = []
        while True:
            while (at := buffer.find(b"\r\n")) < 0:
                buffer += await more()
            size = int(buffer[:at].split(b";")[0], 16)
            while len(buffer) < at + 4 + size:
                buffer += await more()
            body.append(buffer[at + 2:at + 2 + size])
            buffer = buffer[at + 4 + size:]
            if not size:
                return b"".join(body), buffer

    def note(self, request):
        secret = "authorization" in request.headers or "x-amz-security-token" in request.headers or \
            "X-Amz-Signature" in request.query
        if request.path.startswith("/-/"):
            return
        counters = self.counters
        counters["requests"] += 1
        counters["requests " + request.method] += 1
        counters["bytes"] += request.sent
        counters[f"status {request.status}"] += 1
        counters["fault " + request.fault] += 1
        counters["faults"] += request.fault != "none"
        counters["secrets elsewhere"] += secret and request.host == "other"
        if self.log:
            span = f"{request.first}-{request.end}" if request.first is not None else "all"
            self.log.write(f"{request.method} {request.target} range={span} status={request.status} "
                           f"sent={request.sent} fault={request.fault} host={request.host} "
                           f"secret={'yes' if secret else 'no'}\n")

    # ---- answers ----

    async def send(self, request, status, body=b"", length=None, **headers):
        """Sends a head, and a body that is at hand. length: the Content-Length if it is not that of the body."""
        request.status = status
        if self.set.keyed:
            headers["x-amz-server-side-encryption"] = "aws:kms"
        headers = {"Date": email.utils.formatdate(time.time() + self.set.ahead, usegmt=True),
                   "Content-Length": len(body) if length is None else length, **headers}
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()
                       if value is not None)
        data = f"HTTP/1.1 {status} {'OK' if status < 300 else 'No'}\r\n{head}\r\n".encode("latin-1")
        if request.method != "HEAD":
            data += body
            request.sent += len(body)
        await asyncio.get_running_loop().sock_sendall(request.sock, data)

    async def refuse(self, request, status, code, **headers):
        body = f"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code></Error>".encode()
        await self.send(request, status, b"" if request.method == "HEAD" else body, Content_Type="application/xml",
                        **headers)

    @staticmethod
    def reset(request):
        request.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Stop

    async def answer_one(self, request):
        if request.path.startswith("/-/"):
            return await self.control(request)
        if self.set.delay:
            await asyncio.sleep(self.set.delay)
        file_path, size = self.find(request)
        self.find_range(request, size)
        fault = request.fault = self.choose(request)
        self.counters["begun " + fault] += 1
        if fault == "dribble":
            await asyncio.get_running_loop().sock_sendall(request.sock, b"HTTP/1.1 206 OK\r\n")
            while True:
                await asyncio.get_running_loop().sock_sendall(request.sock, b"X: y\r\n")
                await asyncio.sleep(0.05)
        if fault == "stall":
            await asyncio.sleep(1000000)
        if fault == "reset_head":
            self.reset(request)
        if fault == "garbage":
            await asyncio.get_running_loop().sock_sendall(request.sock, b"\x00\xff" * 3000)
            raise Stop
        if fault in ("400", "403", "404", "429", "500", "503"):
            code = {"400": "BadRequest", "403": "AccessDenied", "404": "NoSuchKey", "429": "TooManyRequests",
                    "500": "InternalError", "503": "SlowDown"}[fault]
            return await self.refuse(request, int(fault), code, Retry_After=self.set.retry_after
                                     if fault in ("429", "503") else None)
        if fault in ("QuotaExceeded", "ExpiredToken"):
            return await self.refuse(request, 403, fault)
        if fault == "redirect":
            if request.host == "main":
                return await self.refuse(request, 307, "TemporaryRedirect", Location=self.other + request.target)
            request.fault = fault = "none"
        wrong = self.unsigned(request)
        if wrong:
            return await self.refuse(request, 403, wrong)
        if request.method in ("PUT", "POST", "DELETE"):
            return await self.change(request, file_path)
        if "uploads" in request.query or "uploadId" in request.query:
            return await self.list_uploads(request, file_path)
        if "/" not in request.path[1:].rstrip("/") and (request.query or request.path.endswith("/")):
            return await self.list(request)
        if size is None:
            return await self.refuse(request, 404, "NoSuchKey")
        await self.get(request, file_path, size)

    def unsigned(self, request):
        """Why a request is not signed well, as an S3 code."""
        if not self.set.accounts:
            return None
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
        import remote_bucket
        sys.path.pop(0)
        remote_bucket.SECRETS, remote_bucket.AHEAD = self.set.accounts, self.set.ahead
        names = {"host": "Host"}
        headers = remote_bucket.http.client.HTTPMessage()
        for name, value in request.headers.items():
            headers[names.get(name, name)] = value
        return remote_bucket.Handler.fault(types.SimpleNamespace(headers=headers, command=request.method,
                                                                 path=request.target))

    def find(self, request):
        """The path of the file of an object, and its size: None without such a file."""
        path = os.path.normpath(self.folder + request.path)
        if not path.startswith(self.folder + os.sep) or "\0" in path or request.path.endswith("/"):
            return path, None
        try:
            found = os.stat(path)
        except OSError:
            return path, None
        return path, found.st_size if os.path.isfile(path) else None

    @staticmethod
    def find_range(request, size):
        """Sets the first and the last byte of the range. A range after the end of the object has first = size."""
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if not found or size is None or found[0] == "bytes=-":
            return
        if found[1]:
            first, end = int(found[1]), min(int(found[2]), size - 1) if found[2] else size - 1
            if found[2] and int(found[2]) < first:
                return
        else:
            first, end = max(size - int(found[2]), 0), size - 1
        request.first, request.end = min(first, size), end

    def tag(self, path):
        found = os.stat(path)
        key = (found.st_ino, found.st_size, found.st_mtime_ns)
        known = self.tags.get(path)
        if not known or known[0] != key:
            known = self.tags[path] = key, hashlib.md5(repr(key).encode()).hexdigest()
        version = self.versions.get(path)
        return f'"{known[1]}-{version}"' if version else f'"{known[1]}"'

    async def get(self, request, path, size):
        fault = request.fault
        if fault == "replaced":
            self.versions[path] += 1
        tag = self.tag(path)
        headers = {"ETag": tag, "Last_Modified": email.utils.formatdate(os.stat(path).st_mtime, usegmt=True),
                   "Accept_Ranges": "bytes"}
        wanted, unwanted = request.headers.get("if-match"), request.headers.get("if-none-match")
        if wanted not in (None, "*", tag):
            return await self.refuse(request, 412, "PreconditionFailed")
        if unwanted in ("*", tag):
            request.status = 304
            return await self.send(request, 304, length=None, ETag=tag, Content_Length=None)
        ranged = request.first is not None
        if ranged and (request.first >= size or fault == "416"):
            return await self.refuse(request, 416, "InvalidRange", Content_Range=f"bytes */{size}")
        first, count = (request.first, request.end + 1 - request.first) if ranged else (0, size)
        status = 206 if ranged else 200
        if ranged:
            total = size + 7 if fault == "wrong_total" else size
            if fault in ("whole", "no_ranges"):
                first, count, status = 0, size, 200
                if fault == "no_ranges":
                    del headers["Accept_Ranges"]
            elif fault == "less" and count > 1:
                count = 1 + int(draw(path, count, request.number) * (count - 1))
            at = first + 5 if fault == "wrong_range" else first
            if status == 206:
                headers["Content_Range"] = f"bytes {at}-{at + count - 1}/{total}"
                status = 200 if self.set.loose else 206
        if fault == "other_tag":
            headers["ETag"] = '"another"'
        if request.method == "HEAD":
            return await self.send(request, status, length=count, **headers)
        await self.send_body(request, status, path, first, count, size, headers)

    async def send_body(self, request, status, path, first, count, size, headers):
        loop, fault = asyncio.get_running_loop(), request.fault
        with open(path, "rb", buffering=0) as file:
            if not count or fault in ("none", "whole", "no_ranges", "less", "wrong_range", "wrong_total", "other_tag",
                                      "replaced"):
                if count <= 65536:
                    return await self.send(request, status, os.pread(file.fileno(), count, first), **headers)
                await self.send(request, status, length=count, **headers)
                request.sent += await loop.sock_sendfile(request.sock, file, first, count)
                return
            if fault == "shifted":
                first = (first + 4096) % max(size - count + 1, 1)
            body = bytearray(os.pread(file.fileno(), count, first))
        if fault == "flip":
            at = int(draw(path, first, request.number) * count)
            body[at] ^= 1 << int(draw(request.number) * 8)
        if fault in ("flip", "shifted"):
            return await self.send(request, status, bytes(body), **headers)
        part = int(draw(path, first, request.number) * count)
        part = count // 2 if fault in ("cut", "half") else part
        await self.send(request, status, length=count, **headers)
        if fault == "drip":
            piece = -(-count // 50)
            for at in range(0, count, piece):
                await loop.sock_sendall(request.sock, body[at:at + piece])
                request.sent += len(body[at:at + piece])
                await asyncio.sleep(self.set.slow / 50)
            return
        await loop.sock_sendall(request.sock, body[:part])
        request.sent += part
        if fault in ("hang", "half"):
            await asyncio.sleep(self.set.slow if fault == "hang" else 1000000)
        if fault == "short":
            raise Stop
        self.reset(request)

    # ---- lists ----

    def keys(self, bucket):
        top = os.path.join(self.folder, bucket)
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                yield os.path.relpath(path, top), path

    async def list(self, request):
        query, bucket = request.query, request.path.strip("/")
        if not bucket or not os.path.isdir(os.path.join(self.folder, bucket)):
            return await self.refuse(request, 404, "NoSuchBucket")
        if "location" in query:
            return await self.send(request, 200, b"<LocationConstraint>us-east-1</LocationConstraint>")
        if "uploads" in query:
            uploads = "".join(f"<Upload><Key>{escape(upload['key'])}</Key><UploadId>{number}</UploadId></Upload>"
                              for number, upload in self.uploads.items())
            return await self.send(request, 200, f"<ListMultipartUploadsResult>{uploads}<IsTruncated>false"
                                   "</IsTruncated></ListMultipartUploadsResult>".encode())
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        names = {}
        for key, path in [*self.keys(bucket), *((key, None) for key in self.set.ghosts)]:
            if key.startswith(prefix):
                at = key.find(delimiter, len(prefix)) if delimiter else -1
                names[key if at < 0 else key[:at + len(delimiter)]] = path if at < 0 else ""
        after = query.get("continuation-token", query.get("start-after", ""))
        after = after[1:] if "continuation-token" in query else after
        names = sorted(item for item in names.items() if item[0] > after)
        page = min(self.set.page, int(query.get("max-keys") or 1000))
        names, more = names[:page], len(names) > page
        await self.send(request, 200, self.page_of(request, names, more, after), Content_Type="application/xml")

    def page_of(self, request, names, more, after):
        """A page of a list. A list changes after its first page."""
        fault, token = request.fault, "t" + names[-1][0] if names else ""
        if after and names:
            if fault == "list_repeat":
                names = [(after, names[0][1]), *names]
            elif fault == "list_vanish":
                names = names[1:]
            elif fault == "list_ghost":
                names = [(names[0][0] + "~", None), *names[1:]]
            elif fault == "list_loop":
                more, token = True, "t" + after
            elif fault == "list_unsorted":
                names = names[::-1]
        coded = request.query.get("encoding-type") == "url"
        text = lambda key: escape(urllib.parse.quote_plus(key, safe="/") if coded else key)
        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult '
               'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
               f"<Name>{escape(request.path.strip('/'))}</Name><Prefix>{text(request.query.get('prefix', ''))}</Prefix>"
               f"<KeyCount>{len(names)}</KeyCount><MaxKeys>{self.set.page}</MaxKeys>",
               "<EncodingType>url</EncodingType>" if coded else "",
               f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"]
        for key, path in names:
            if path == "":
                out.append(f"<CommonPrefixes><Prefix>{text(key)}</Prefix></CommonPrefixes>")
                continue
            tag, size, when = (self.tag(path), os.path.getsize(path), os.path.getmtime(path)) if path else ('"0"', 1, 0)
            out.append(f"<Contents><Key>{text(key)}</Key><LastModified>"
                       f"{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(when))}</LastModified>"
                       f"<ETag>{escape(tag, {chr(34): '&quot;'})}</ETag><Size>{size}</Size>"
                       "<StorageClass>STANDARD</StorageClass></Contents>")
        if more:
            out.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        return "".join(out + ["</ListBucketResult>"]).encode()

    async def list_uploads(self, request, path):
        """The uploads of a bucket, or the parts of one, in pages."""
        query, page = request.query, self.set.page
        number = query.get("uploadId")
        if number is not None:
            if self.uploads.get(number, {}).get("path") != path:
                return await self.refuse(request, 404, "NoSuchUpload")
            after = int(query.get("part-number-marker", 0))
            items = sorted((key, value) for key, value in self.uploads[number]["parts"].items() if key > after)
            more, items = len(items) > page, items[:page]
            out = [f"<Part><PartNumber>{part}</PartNumber><Size>{size}</Size><ETag>&quot;{tag}&quot;</ETag></Part>"
                   for part, (_, tag, size) in items]
            out += [f"<NextPartNumberMarker>{items[-1][0]}</NextPartNumberMarker>"] if more else []
        else:
            after = query.get("key-marker", ""), query.get("upload-id-marker", "")
            items = sorted((upload["key"], number) for number, upload in self.uploads.items()
                           if upload["path"].startswith(path.rstrip("/") + "/") and
                           upload["key"].startswith(query.get("prefix", "")) and (upload["key"], number) > after)
            if self.set.loose and not items:
                return await self.refuse(request, 404, "NoSuchUpload")
            more, items = len(items) > page, items[:page]
            out = [f"<Upload><Key>{escape(key)}</Key><UploadId>{number}</UploadId></Upload>" for key, number in items]
            out += [f"<NextKeyMarker>{escape(items[-1][0])}</NextKeyMarker>"
                    f"<NextUploadIdMarker>{items[-1][1]}</NextUploadIdMarker>"] if more else []
        more = more or request.fault == "list_loop"
        name = "ListPartsResult" if number else "ListMultipartUploadsResult"
        text = f"<{name}><IsTruncated>{str(more).lower()}</IsTruncated>{''.join(out)}</{name}>"
        await self.send(request, 200, text.encode(errors="surrogateescape"), Content_Type="application/xml")

    # ---- changes ----

    async def change(self, request, path):
        fault = request.fault
        if fault == "flip" and request.body:
            body = bytearray(request.body)
            body[int(draw(path, request.number) * len(body))] ^= 1
            request.body = bytes(body)
        given = request.headers.get("x-amz-content-sha256", "")
        if re.fullmatch("[0-9a-f]{64}", given) and hashlib.sha256(request.body).hexdigest() != given:
            return await self.refuse(request, 400, "XAmzContentSHA256Mismatch")
        if "content-md5" in request.headers and \
                __import__("base64").b64encode(hashlib.md5(request.body).digest()).decode() != \
                request.headers["content-md5"]:
            return await self.refuse(request, 400, "BadDigest")
        status, body, tag = self.changed(request, path)
        if fault == "lost":
            self.reset(request)
        if status >= 400:
            return await self.refuse(request, status, body)
        if fault == "late_error" and request.method == "POST":
            body = "<Error><Code>InternalError</Code></Error>"
        body = body.encode(errors="surrogateescape")
        await self.send(request, status, body, ETag=tag, Content_Length=None if status == 204 else len(body))

    def changed(self, request, path):
        """Makes a change. Returns a status, a body or a code, and an ETag."""
        number = request.query.get("uploadId")
        upload = self.uploads.get(number)
        if number is not None and (not upload or upload["path"] != path):
            return 404, "NoSuchUpload", None
        if request.headers.get("if-none-match") == "*" and os.path.exists(path):
            return 412, "PreconditionFailed", None
        if request.method == "DELETE":
            if number is not None:
                for part in self.uploads.pop(number)["parts"].values():
                    os.unlink(part[0])
            elif os.path.isfile(path):
                os.unlink(path)
            return 204, "", None
        if request.method == "POST" and "uploads" in request.query:
            number = hashlib.md5(f"{path} {request.number}".encode()).hexdigest()
            key = request.path[1:].partition("/")[2]
            self.uploads[number] = {"path": path, "key": key, "parts": {}}
            return 200, ("<InitiateMultipartUploadResult>"
                         f"<Key>{escape(key)}</Key><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"), None
        if request.method == "POST":
            return self.complete(request, path, number)
        tag = hashlib.md5(b"key" * self.set.keyed + request.body).hexdigest()
        if number is None:
            self.write(path, [request.body], tag)
        else:
            part = int(request.query["partNumber"])
            name = os.path.join(self.parts, f"{number}-{part}")
            with open(name, "wb") as file:
                file.write(request.body)
            upload["parts"][part] = name, tag, len(request.body)
        return 200, "", f'"{tag}"'

    def complete(self, request, path, number):
        if number is None:
            return 400, "InvalidRequest", None
        upload = self.uploads[number]
        wanted = re.findall(rb"<Part\b.*?</Part>", request.body, re.DOTALL)
        parts = []
        for text in wanted:
            part = int(re.search(rb"<PartNumber>\s*(\d+)", text)[1])
            tag = re.search(rb"<ETag>\s*(?:&quot;|\")?([^<&\"]*)", text)[1].decode()
            known = upload["parts"].get(part)
            if not known or known[1] != tag:
                return 400, "InvalidPart", None
            if parts and part <= parts[-1][0]:
                return 400, "InvalidPartOrder", None
            parts.append((part, *known))
        if not parts:
            return 400, "MalformedXML", None
        if any(part[3] < 5 << 20 for part in parts[:-1]):
            return 400, "EntityTooSmall", None
        tag = f"{hashlib.md5(b''.join(bytes.fromhex(part[2]) for part in parts)).hexdigest()}-{len(parts)}"

        def bodies():
            for part in parts:
                with open(part[1], "rb") as file:
                    yield file.read()
        self.write(path, bodies(), tag)
        for part in self.uploads.pop(number)["parts"].values():
            os.unlink(part[0])
        return 200, (f"<CompleteMultipartUploadResult><ETag>&quot;{tag}&quot;</ETag>"
                     "</CompleteMultipartUploadResult>"), None

    def write(self, path, bodies, tag):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = os.path.join(self.parts, "new")
        with open(new, "wb") as file:
            for body in bodies:
                file.write(body)
        shutil.move(new, path + "\x01")
        os.rename(path + "\x01", path)
        found = os.stat(path)
        self.tags[path] = (found.st_ino, found.st_size, found.st_mtime_ns), tag

    # ---- control ----

    async def control(self, request):
        if request.path == "/-/settings" and request.method == "PUT":
            new = json.loads(request.body)
            if set(new) - set(SETTINGS):
                return await self.refuse(request, 400, f"unknown settings {sorted(set(new) - set(SETTINGS))}")
            vars(self.set).update(new)
            self.counters["at once"] = 0
        elif request.path != "/-/counts":
            return await self.refuse(request, 404, "NoSuchControl")
        await self.send(request, 200, json.dumps(self.counters).encode())

    async def run(self, port):
        places = []
        for host, number in (("127.0.0.1", port), ("127.0.0.2", 0)):
            listener = socket.create_server((host, number), backlog=1024)
            listener.setblocking(False)
            places.append((listener, f"http://{host}:{listener.getsockname()[1]}"))
        self.other = places[1][1]
        print(places[0][1], places[1][1], flush=True)
        await asyncio.gather(self.serve(places[0][0], "main"), self.serve(places[1][0], "other"))

    def end(self, *_):
        shutil.rmtree(self.parts, ignore_errors=True)
        os._exit(0)


class ObjectServer:
    """The server in a process of its own. settings: as in SETTINGS."""

    def __init__(self, folder, log=None, **settings):
        self.path = log
        self.process = subprocess.Popen(
            [sys.executable, "-S", os.path.abspath(__file__), folder, "--set", json.dumps(settings),
             *(["--log", log] if log else [])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url, self.other = self.process.stdout.readline().split()
        self.environment = {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                            "AWS_SECRET_ACCESS_KEY": "wJalr+XUtnFEMI/K7MDENG", "AWS_REGION": "us-east-1"}

    def _ask(self, path, data=None):
        import urllib.request  # here, because the server does without it
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self.url + path, data=data, method="PUT" if data else "GET")
        with opener.open(request, timeout=60) as answer:
            return collections.Counter(json.load(answer))

    def counts(self):
        """What has happened: requests, bytes, faults, "fault NAME", "status N", "secrets elsewhere", and the most
        requests "at once" since settings were last changed."""
        return self._ask("/-/counts")

    def set(self, **settings):
        """Changes settings; returns the counts at that moment."""
        return self._ask("/-/settings", json.dumps(settings).encode())

    def log(self):
        """The lines of the log."""
        with open(self.path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def main():
    parser = argparse.ArgumentParser(description="A server of objects that injects faults.")
    parser.add_argument("folder")
    parser.add_argument("--log")
    parser.add_argument("--set", default="{}", metavar="JSON")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    log = open(options.log, "a", buffering=1, encoding="utf-8", errors="surrogateescape") if options.log else None
    server = Server(options.folder, log)
    settings = json.loads(options.set)
    if set(settings) - set(SETTINGS):
        sys.exit(f"--set: unknown settings {sorted(set(settings) - set(SETTINGS))}")
    vars(server.set).update(settings)
    signal.signal(signal.SIGTERM, server.end)
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the parent ends
    asyncio.run(server.run(options.port))


if __name__ == "__main__":
    main()
