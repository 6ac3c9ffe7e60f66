# SPDX-License-Identifier: MIT
"""The server of object storage of `tokmap-bench compare remote`: ranges, lists, the latency, the link, and its log.
Skipped without nginx and its module for Lua."""
import http.client
import os
import re
import sys
import time
import unittest
import urllib.parse

from support import TOP, new_folder

sys.path.insert(0, os.path.join(TOP, "bench", "peers", "compare"))
from remote import server
from report import Absent
sys.path.pop(0)


def missing():
    try:
        server.program()
        server.modules_folder()
    except Absent as problem:
        return str(problem)
    return None


@unittest.skipIf(missing(), missing())
class Served(unittest.TestCase):
    def start(self, *arguments):
        folder = new_folder()
        root = os.path.join(folder, "root")
        os.makedirs(os.path.join(root, "bucket", "d"))
        self.content = bytes(range(256)) * 20000
        for name, content in (("d/a b&c.bin", self.content), ("d/empty", b""), *((f"n/{i:04}", b"x") for i in range(1201))):
            os.makedirs(os.path.dirname(os.path.join(root, "bucket", name)), exist_ok=True)
            with open(os.path.join(root, "bucket", name), "wb") as file:
                file.write(content)
        try:
            found = server.Server(os.path.join(folder, "server"), root, *arguments)
        except Absent as problem:
            self.skipTest(str(problem))
        self.addCleanup(found.stop)
        self.connection = http.client.HTTPConnection(found.url.split("//")[1], timeout=60)
        self.addCleanup(self.connection.close)
        return found

    def ask(self, path, method="GET", **headers):
        self.connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        answer = self.connection.getresponse()
        return answer, answer.read()

    def test_objects_and_counts(self):
        served = self.start(0, 10**12)
        size, path = len(self.content), "/bucket/d/a%20b%26c.bin"
        for text, first, end in (("bytes=5-99", 5, 99), ("bytes=-7", size - 7, size - 1), ("bytes=9-", 9, size - 1)):
            answer, body = self.ask(path, Range=text)
            self.assertEqual((answer.status, body), (206, self.content[first:end + 1]))
        tag = answer.getheader("ETag")
        self.assertEqual(self.ask(path, If_Match=tag)[1], self.content)
        self.assertEqual(self.ask(path, If_Match='"x"')[0].status, 412)
        self.connection.close()  # as nginx does
        self.assertEqual(self.ask(path, "HEAD")[0].getheader("Content-Length"), str(size))
        self.assertEqual(self.ask("/bucket/d/empty")[1], b"")
        self.assertEqual(self.ask("/bucket/none")[0].status, 404)
        counts = served.counts()
        self.assertEqual((counts["requests"], counts["HEAD"], counts["refused"]), (8, 1, 2))
        self.assertGreaterEqual(counts["bytes"], 95 + 7 + size - 9 + size)

    def test_lists(self):
        self.start(0, 10**12)

        def pages(query):
            found, token = [], ""
            while True:
                text = self.ask(f"/bucket?list-type=2&encoding-type=url&{query}{token}")[1].decode()
                found.append([urllib.parse.unquote(key) for key in re.findall("<(?:Key|Prefix)>(.*?)</", text)][1:])
                more = re.search("<NextContinuationToken>(.*?)</", text)
                self.assertEqual("<IsTruncated>true" in text, more is not None)
                if not more:
                    return found
                token = "&continuation-token=" + more[1]
        self.assertEqual(pages("prefix=d%2F"), [["d/a b&c.bin", "d/empty"]])
        self.assertEqual(list(map(len, pages("prefix=n%2F"))), [1000, 201])
        self.assertEqual(pages("delimiter=%2F"), [["d/", "n/"]])
        self.assertEqual(pages("prefix=none"), [[]])
        self.assertEqual(self.ask("/other?list-type=2")[0].status, 404)

    def test_the_latency_and_the_link(self):
        self.start(0.05, 10**7)
        began = time.monotonic()
        self.ask("/bucket/d/empty")
        self.assertGreaterEqual(time.monotonic() - began, 0.049)
        began = time.monotonic()
        for _ in range(2):
            self.ask("/bucket/d/a%20b%26c.bin")
        self.assertGreaterEqual(time.monotonic() - began, 0.1 + 2 * len(self.content) / 10**7 - 0.01)


if __name__ == "__main__":
    unittest.main()
