# SPDX-License-Identifier: MIT
"""The server of objects does what its page says: what a client sees of each fault, and that all of it is counted."""
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import object_server
from object_server import FINAL, TRANSIENT, ObjectServer

CONTENT = bytes(range(251)) * 3000
RANGE = "bytes=1000-300999"
PART = CONTENT[1000:301000]


class Answer:
    """What a client got: status, headers, and body; or error, if it got no whole answer."""

    def __init__(self, url, method, path, body, headers):
        self.error, self.body, self.status, self.headers = None, b"", 0, {}
        connection = http.client.HTTPConnection(url.split("//")[1], timeout=20)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            self.status, self.headers = answer.status, {name.lower(): value for name, value in answer.getheaders()}
            while part := answer.read1(1 << 20):
                self.body += part
            if method != "HEAD" and len(self.body) != int(self.headers.get("content-length", len(self.body))):
                self.error = "short"
        except (OSError, http.client.HTTPException) as problem:
            self.error = type(problem).__name__
        finally:
            connection.close()


class Objects(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="a folder ", dir=os.environ.get("TMPDIR"))
        os.makedirs(os.path.join(self.folder, "top", "b", "d"))
        self.file("d/a.bin", CONTENT)
        self.server = ObjectServer(os.path.join(self.folder, "top"), log=os.path.join(self.folder, "log"))
        self.addCleanup(self.server.stop)

    def file(self, key, content):
        with open(os.path.join(self.folder, "top", "b", key), "wb") as file:
            file.write(content)

    def ask(self, path="/b/d/a.bin", method="GET", body=None, url=None, **headers):
        return Answer(url or self.server.url, method, path, body,
                      {name.replace("_", "-"): value for name, value in headers.items()})

    def with_fault(self, fault, path="/b/d/a.bin", **more):
        self.server.set(rules=[{"path": "", "fault": fault, "times": 1}])
        return self.ask(path, **{"Range": RANGE, **more})

    # ---- without faults ----

    def test_ranges(self):
        size = len(CONTENT)
        for text, first, end in ((RANGE, 1000, 300999), ("bytes=5-", 5, size - 1), ("bytes=-7", size - 7, size - 1),
                                 (f"bytes=-{size + 9}", 0, size - 1), (f"bytes=9-{size + 9}", 9, size - 1),
                                 ("bytes=0-0", 0, 0)):
            found = self.ask(Range=text)
            self.assertEqual((found.status, found.body), (206, CONTENT[first:end + 1]), text)
            self.assertEqual(found.headers["content-range"], f"bytes {first}-{end}/{size}")
            head = self.ask(method="HEAD", Range=text)
            self.assertEqual((head.status, head.body, head.headers["content-length"]), (206, b"", str(end + 1 - first)))
        for text in (f"bytes={size}-", "bytes=-0", f"bytes={size + 5}-{size + 9}"):
            found = self.ask(Range=text)
            self.assertEqual((found.status, found.headers["content-range"]), (416, f"bytes */{size}"), text)
        for text in ("bytes=-", "bytes=9-5", "bytes=1-2,4-5", "lines=1-2"):
            self.assertEqual((self.ask(Range=text).status, self.ask(Range=text).body), (200, CONTENT), text)

    def test_conditions(self):
        tag = self.ask().headers["etag"]
        self.assertEqual(self.ask(If_Match=tag).status, 200)
        self.assertEqual(self.ask(If_Match='"x"', Range=RANGE).status, 412)
        unchanged = self.ask(If_None_Match=tag)
        self.assertEqual((unchanged.status, unchanged.body, unchanged.error), (304, b"", None))
        self.assertEqual(self.ask(If_None_Match='"x"').status, 200)
        self.file("d/a.bin", CONTENT[::-1])
        self.assertNotEqual(self.ask().headers["etag"], tag)

    def test_names(self):
        self.file("d/ä #?%.bin", b"odd")
        self.assertEqual(self.ask("/b/" + urllib.parse.quote("d/ä #?%.bin")).body, b"odd")
        self.file("../../secret", b"outside")
        for path in ("/b/none", "/b/d", "/../secret", "/b/%2e%2e/%2e%2e/secret", "/none/x", "/b/d/a.bin/"):
            self.assertEqual(self.ask(path).status, 404, path)

    def test_one_connection_serves_many_requests(self):
        connection = http.client.HTTPConnection(self.server.url.split("//")[1])
        for i in range(50):
            connection.request("GET", "/b/d/a.bin", headers={"Range": f"bytes={i}-{i + 99999}"})
            self.assertEqual(connection.getresponse().read(), CONTENT[i:i + 100000])
        connection.close()

    def test_lists(self):
        keys = ["d/%03d &<'é" % i for i in range(25)] + ["d/a.bin"]
        for key in keys[:-1]:
            self.file(key, b"x")

        def pages():
            found, token = [], ""
            while True:
                text = self.ask(f"/b?list-type=2&prefix=d%2F&encoding-type=url{token}").body.decode()
                found.append([urllib.parse.unquote_plus(key) for key in re.findall("<Key>(.*?)</Key>", text)])
                if "<IsTruncated>false" in text:
                    return found
                token = "&continuation-token=" + urllib.parse.quote(
                    re.search("<NextContinuationToken>(.*?)</", text)[1].replace("&lt;", "<").replace("&amp;", "&"))
        self.server.set(page=10)
        self.assertEqual(pages(), [keys[:10], keys[10:20], keys[20:]])
        self.assertIn("<CommonPrefixes><Prefix>d/</Prefix>", self.ask("/b?list-type=2&delimiter=/").body.decode())
        for fault, second in (("list_repeat", [keys[9], *keys[10:20]]), ("list_vanish", keys[11:20]),
                              ("list_ghost", [keys[10] + "~", *keys[11:20]]), ("list_unsorted", keys[10:20][::-1])):
            self.server.set(rules=[{"path": "token", "fault": fault, "times": 1}])
            self.assertEqual(pages(), [keys[:10], second, keys[20:]], fault)
        self.server.set(rules=[{"path": "token", "fault": "list_loop", "times": 1}])
        self.assertEqual(pages(), [keys[:10], keys[10:20], keys[10:20], keys[20:]])
        self.server.set(ghosts=["d/0"])
        self.assertEqual(pages()[0], ["d/0", *keys[:9]])
        self.assertEqual(self.ask("/b?location").status, 200)

    def test_writing(self):
        self.assertEqual(self.ask("/b/new/x", "PUT", b"abc").headers["etag"], f'"{hashlib.md5(b"abc").hexdigest()}"')
        self.assertEqual(self.ask("/b/new/x").body, b"abc")
        self.assertEqual(self.ask("/b/new/x", "PUT", b"d", If_None_Match="*").status, 412)
        self.assertEqual(self.ask("/b/new/x", "PUT", b"d", x_amz_content_sha256="0" * 64).status, 400)
        self.assertEqual(self.ask("/b/new/x").body, b"abc")
        self.assertEqual(self.ask("/b/new/x", "DELETE").status, 204)
        self.assertEqual(self.ask("/b/new/x").status, 404)

    def upload(self, sizes, order=None):
        """Writes an object in parts; returns the query of the upload and the body that completes it."""
        text = self.ask("/b/new/u?uploads", "POST").body.decode()
        number = re.search("<UploadId>(.*?)</", text)[1]
        tags = [self.ask(f"/b/new/u?partNumber={i + 1}&uploadId={number}", "PUT",
                         CONTENT[:1] * size).headers["etag"] for i, size in enumerate(sizes)]
        parts = "".join(f"<Part><ETag>{tags[i]}</ETag><PartNumber>{i + 1}</PartNumber></Part>"
                        for i in order or range(len(sizes)))
        return f"/b/new/u?uploadId={number}", f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()

    def test_uploads(self):
        path, body = self.upload([5 << 20, 3])
        self.assertEqual(self.ask("/b/new/u").status, 404)
        self.assertIn(path.split("=")[1], self.ask("/b?uploads").body.decode())
        self.assertIn("-2&quot;", self.ask(path, "POST", body).body.decode())
        self.assertEqual(len(self.ask("/b/new/u").body), (5 << 20) + 3)
        self.assertTrue(self.ask("/b/new/u").headers["etag"].endswith('-2"'))
        self.assertEqual(self.ask(path, "POST", body).status, 404)  # it has been completed
        for sizes, order, code in (([3, 3], None, "EntityTooSmall"), ([5 << 20, 3], [1, 0], "InvalidPartOrder")):
            path, body = self.upload(sizes, order)
            answer = self.ask(path, "POST", body)
            self.assertEqual((answer.status, code in answer.body.decode()), (400, True), code)
            self.assertEqual(self.ask(path, "DELETE").status, 204)
        self.assertNotIn("<Upload>", self.ask("/b?uploads").body.decode())

    # ---- with faults ----

    def test_faults_of_connections(self):
        for fault, error in (("reset_head", {"ConnectionResetError"}), ("garbage", {"BadStatusLine", "LineTooLong"}),
                             ("reset_body", {"ConnectionResetError", "short"}), ("hang", {"ConnectionResetError",
                                                                                          "short"})):
            found = self.with_fault(fault)
            self.assertIn(found.error, error, fault)
            self.assertTrue(PART.startswith(found.body), fault)
        found = self.with_fault("short")
        self.assertEqual((found.status, found.headers["content-length"], found.error), (206, "300000", "short"))
        self.assertTrue(PART.startswith(found.body))
        began = time.monotonic()
        self.assertEqual(self.with_fault("drip").body, PART)
        self.assertGreater(time.monotonic() - began, 0.4)

    def test_faults_of_answers(self):
        less = self.with_fault("less")
        self.assertTrue(PART.startswith(less.body) and 0 < len(less.body) < len(PART) and less.error is None)
        self.assertEqual(less.headers["content-range"], f"bytes 1000-{999 + len(less.body)}/{len(CONTENT)}")
        self.assertIn("bytes 1005-", self.with_fault("wrong_range").headers["content-range"])
        whole = self.with_fault("whole")
        self.assertEqual((whole.status, whole.body, "content-range" in whole.headers), (200, CONTENT, False))
        flip = self.with_fault("flip").body
        self.assertEqual(sum(bin(a ^ b).count("1") for a, b in zip(flip, PART)), 1)
        shifted = self.with_fault("shifted")
        self.assertTrue(shifted.body != PART and len(shifted.body) == len(PART) and shifted.status == 206)
        self.assertTrue(self.with_fault("wrong_total").headers["content-range"].endswith(f"/{len(CONTENT) + 7}"))
        for fault in ("403", "404", "416", "429", "500", "503"):
            self.assertEqual(self.with_fault(fault).status, int(fault))
        self.server.set(retry_after=3)
        self.assertEqual(self.with_fault("503").headers["retry-after"], "3")
        tag = self.ask().headers["etag"]
        self.assertEqual(self.with_fault("other_tag", If_Match=tag).headers["etag"], '"another"')
        self.assertEqual(self.with_fault("replaced", If_Match=tag).status, 412)
        self.assertEqual(self.ask(If_Match=tag).status, 412)  # from now on
        self.assertEqual(self.ask().body, CONTENT)

    def test_faults_of_changes(self):
        self.assertEqual(self.with_fault("lost", method="PUT", body=b"abc").error, "ConnectionResetError")
        self.assertEqual(self.ask().body, b"abc")
        self.assertEqual(self.with_fault("reset_head", method="PUT", body=b"d").error, "ConnectionResetError")
        self.assertEqual(self.ask().body, b"abc")
        digest = hashlib.sha256(b"new").hexdigest()
        self.assertEqual(self.with_fault("flip", method="PUT", body=b"new", x_amz_content_sha256=digest).status, 400)
        path, body = self.upload([3])
        answer = self.with_fault("late_error", path, method="POST", body=body)
        self.assertEqual((answer.status, b"<Error>" in answer.body), (200, True))

    def test_redirections_and_secrets(self):
        found = self.with_fault("redirect", Authorization="secret")
        self.assertEqual((found.status, found.headers["location"]), (307, self.server.other + "/b/d/a.bin"))
        self.assertEqual(self.server.counts()["secrets elsewhere"], 0)
        self.assertEqual(self.ask(url=self.server.other).body, CONTENT)
        self.assertEqual(self.server.counts()["secrets elsewhere"], 0)
        self.ask(url=self.server.other, Authorization="secret")
        self.ask("/b/d/a.bin?X-Amz-Signature=1", url=self.server.other)
        self.assertEqual(self.server.counts()["secrets elsewhere"], 2)
        self.assertEqual(sum("host=other secret=yes" in line for line in self.server.log()), 2)

    def test_signatures(self):
        self.server.set(accounts={"key": "secret"})
        self.assertEqual((self.ask().status, b"AccessDenied" in self.ask().body), (403, True))
        self.assertIn(b"AuthorizationHeaderMalformed", self.ask(Authorization="x").body)

    def test_chance(self):
        """Faults come at the rate, of all kinds, never more than `most` in a row, and again in the same way."""
        seen = []
        for _ in range(2):
            server = ObjectServer(os.path.join(self.folder, "top"), log=os.path.join(self.folder, "chance"), rate=0.4,
                                  kinds=TRANSIENT + FINAL, most=2, slow=0.001, seed=9)
            with server:
                for i in range(30):
                    good = 0
                    for _ in range(20):
                        found = self.ask(url=server.url, Range=f"bytes={i}-{i + 99}")
                        good = 0 if found.body == CONTENT[i:i + 100] and found.status == 206 and not found.error \
                            else good + 1
                        self.assertLess(good, 4)
                limit = time.monotonic() + 10  # the last one counts when it has ended, which its client does not see
                while server.counts()["requests"] < 600 and time.monotonic() < limit:
                    time.sleep(0.01)
                counts, lines = server.counts(), server.log()
            os.unlink(server.path)
            seen.append(sorted(lines))  # a request whose client went away is logged when its thread notices
            self.assertEqual(counts["requests"], 600)
            self.assertEqual(len(lines), 600)
            for name in ("none", *TRANSIENT, *FINAL):
                self.assertEqual(counts["fault " + name], sum(f" fault={name} " in line for line in lines), name)
                self.assertGreater(counts["fault " + name], 0, name)
            self.assertEqual(counts["faults"], 600 - counts["fault none"])
            self.assertLess(abs(counts["faults"] - 200), 50)
        self.assertEqual(*seen)

    def test_requests_that_run_change_no_others(self):
        """What is cut of an answer is the same whether the request before it has ended or still drips."""
        seen = []
        for slow, wanted in ((0.01, "fault drip"), (10, "begun drip")):
            with ObjectServer(os.path.join(self.folder, "top")) as server:
                server.set(slow=slow, rules=[{"path": "", "fault": fault, "times": 1} for fault in ("drip", "short")])
                first = threading.Thread(target=self.ask, kwargs={"url": server.url})
                first.start()
                limit = time.monotonic() + 10
                while not server.counts()[wanted] and time.monotonic() < limit:
                    time.sleep(0.01)
                found = self.ask(url=server.url, Range=RANGE)
                self.assertEqual(server.counts()["fault drip"], wanted == "fault drip")
                self.assertTrue(found.error)
                seen.append(found.body)
            first.join()
        self.assertEqual(seen[0], PART[:len(seen[0])])
        self.assertEqual(len(seen[0]), len(seen[1]))

    def test_settings(self):
        self.assertEqual(self.ask("/-/settings", "PUT", json.dumps({"no": 1}).encode()).status, 400)
        self.assertEqual(self.ask("/-/none").status, 404)
        self.server.set(rate=1.0, most=10**9, kinds=["404"], path="other")
        self.assertEqual(self.ask().status, 200)
        self.server.set(path="a[.]bin$")
        self.assertEqual([self.ask().status for _ in range(20)], [404] * 20)
        self.server.set(rate=0, delay=0.2, ahead=7200)
        began = time.monotonic()
        when = self.ask().headers["date"]
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        self.assertAlmostEqual(object_server.email.utils.parsedate_to_datetime(when).timestamp() - time.time(), 7200,
                               delta=60)

    def test_it_ends_with_its_parent(self):
        code = ("import os, sys; sys.path.insert(0, sys.argv[1]); import object_server; "
                "server = object_server.ObjectServer(sys.argv[2]); print(server.process.pid); sys.stdout.flush(); "
                "os._exit(0)")
        place = os.path.dirname(os.path.abspath(object_server.__file__))
        pid = int(subprocess.run([sys.executable, "-c", code, place, self.folder], check=True,
                                 capture_output=True).stdout)
        until = time.monotonic() + 20
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if ") Z" in file.read():
                    break
            time.sleep(0.05)
        self.assertLess(time.monotonic(), until)


if __name__ == "__main__":
    unittest.main()
