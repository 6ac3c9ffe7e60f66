# SPDX-License-Identifier: MIT
"""`tokmap copy` and `tokmap pack -o s3://...` against a server of objects that fails: what is written is equal, or there
is an error, also after kills."""
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from object_server import CHANGES, TRANSIENT, ObjectServer

TOKMAP = os.path.join(os.environ["BUILD_DIR"], "bin", "tokmap")
ENDINGS = (".bin", ".bin.zst", ".tmx", ".mask", ".values")


def files(folder):
    """{path below the folder: its bytes}"""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Objects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.TemporaryDirectory(prefix="a copy ", dir=os.environ.get("TMPDIR"))
        cls.data = os.path.join(cls.base.name, "data")
        os.mkdir(cls.data)
        words = random.Random(1)
        text = os.path.join(cls.base.name, "text.jsonl")
        with open(text, "w", encoding="ascii") as file:
            for _ in range(60):
                file.write(json.dumps({"text": "".join(words.choices("abcdefgh ", k=200000))}) + "\n")
        cls.pack("web", "--shard-tokens", "5500000", text)  # three parts, three parts, less than a part
        cls.pack("one", "--seal", text)
        ids = os.path.join(cls.base.name, "ids.jsonl")
        with open(ids, "w", encoding="ascii") as file:
            for _ in range(200):
                row = words.choices(range(99), k=words.randrange(1, 900))
                file.write(json.dumps({"ids": row, "mask": [value % 2 for value in row]}) + "\n")
        cls.pack("masked", "--ids-field", "ids", "--mask-field", "mask", "--vocab-size", "100", "--no-eod", ids)
        for name, element, size in (("web", "u8", 1), ("masked", "u16[2]", 4)):
            path = os.path.join(cls.data, name)
            said = subprocess.run([TOKMAP, "info", "--json", path], check=True, capture_output=True)
            raw = os.path.join(cls.base.name, "raw")
            with open(raw, "wb") as file:
                file.write(words.randbytes(size * json.loads(said.stdout)["tokens"]))
            subprocess.run([TOKMAP, "index", "-q", path, "--values", f"v:{element}={raw}"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.base.cleanup()

    @classmethod
    def pack(cls, name, *arguments):
        subprocess.run([TOKMAP, "pack", "-q", "-o", os.path.join(cls.data, name), *arguments], check=True)

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="top ", dir=self.base.name)
        self.bucket = os.path.join(self.top, "bucket")
        os.mkdir(self.bucket)
        self.log = os.path.join(self.base.name, os.path.basename(self.top) + ".log")
        self.server = ObjectServer(self.top, log=self.log)
        self.addCleanup(self.server.stop)
        self.environment = {**os.environ, **self.server.environment}

    def start(self, *arguments, **more):
        return subprocess.Popen([TOKMAP, "copy", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment, **more)

    def copy(self, source, target, *arguments, status=0, **more):
        """Copies. Returns the report, or what was said about a failure."""
        process = self.start(source, target, "--json", "--part-bytes", "5MiB", *arguments, **more)
        out, said = (text.decode(errors="replace") for text in process.communicate(timeout=120))
        self.assertEqual(process.returncode, status, said)
        return said if status else json.loads(out)

    def local(self, name):
        return os.path.join(self.data, name)

    def of_data(self, *names, values=True):
        return {path: content for path, content in files(self.data).items()
                if (values or not path.endswith(".values")) and
                any(path == name or re.fullmatch(name + r"(-\d+)?\.[.a-z]+", path) for name in names)}

    def uploads(self):
        """Whether the server has unfinished uploads."""
        import urllib.request
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.server.url + "/bucket?uploads=", timeout=20) as answer:
            return b"<Upload>" in answer.read()


class Copies(Objects):
    """`tokmap copy`."""

    def test_there_and_back(self):
        back = os.path.join(self.top, "back")
        for name in ("web", "one", "masked"):
            for verify in ("sizes", "full"):
                place = f"s3://bucket/{verify}/"
                self.copy(self.local(name), place, "--verify", verify)
                self.copy(place + name, back + verify + "/", "--verify", verify)
        wanted = self.of_data("web", "one", "masked")
        self.assertEqual(len(wanted), 1 + 3 * 3 + 2 + 4)
        for folder in ("bucket/sizes", "bucket/full", "backsizes", "backfull"):
            self.assertEqual(files(os.path.join(self.top, folder)), wanted)
        said = subprocess.run([TOKMAP, "verify", back + "full/web"], capture_output=True, check=True, text=True)
        self.assertIn("sound", said.stdout)
        self.copy("s3://bucket/full/", "s3://bucket/again", "--verify", "full")
        shards = {path: content for path, content in wanted.items() if path.endswith(ENDINGS)}
        self.assertEqual(files(os.path.join(self.bucket, "again")), shards)
        self.copy("s3://bucket/again", back + "all")
        self.assertEqual(files(back + "all"), shards)
        self.copy("s3://bucket/full/web", "s3://bucket/third/web")
        self.copy(self.local("web"), os.path.join(self.top, "side", "web"), "--verify", "full")
        self.assertEqual(files(os.path.join(self.top, "side")), self.of_data("web"))
        self.assertEqual(files(os.path.join(self.bucket, "third")), self.of_data("web"))
        self.copy(self.server.url + "/bucket/full/web", back + "web/")
        self.assertEqual(files(back + "web"), self.of_data("web", values=False))  # files there cannot be listed
        self.assertFalse(self.uploads())

    def test_values_there(self):
        """info and verify find values in object storage, and compare them as they compare local ones."""
        def run(command, status=0):
            told = subprocess.run([TOKMAP, command, "--json", "s3://bucket/masked"], capture_output=True, text=True,
                                  env={**self.environment, "TOKMAP_CACHE": tempfile.mkdtemp(dir=self.top)})
            self.assertEqual(told.returncode, status, told.stderr)
            return told
        self.copy(self.local("masked"), "s3://bucket/masked")
        local = subprocess.run([TOKMAP, "info", "--json", self.local("masked")], check=True, capture_output=True)
        wanted = {**json.loads(local.stdout)["values"][0], "file": "s3://bucket/masked.v.values"}
        self.assertEqual(json.loads(run("info").stdout)["values"], [wanted])
        run("verify")
        path = os.path.join(self.bucket, "masked.v.values")
        with open(path, "r+b") as file:
            file.seek(4096 + 100000)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes((byte ^ 8,)))
        self.assertIn("masked.v.values", json.loads(run("verify", 1).stdout)["faults"][0]["path"])
        run("info")
        with open(path, "r+b") as file:
            file.write(b"X")
        self.assertIn("masked.v.values", json.loads(run("verify", 1).stdout)["faults"][0]["path"])
        told = run("info")
        self.assertIn("warning: s3://bucket/masked.v.values", told.stderr)
        self.assertNotIn("values", json.loads(told.stdout))

    def test_loose(self):
        """A server that says 200 of ranges, too, and 404 of a bucket without unfinished uploads. What it sends is read,
        copied, and continued after a broken connection."""
        self.server.set(loose=True)
        for name in ("web", "one"):
            self.copy(self.local(name), f"s3://bucket/{name}", "--verify", "full")
            self.copy(f"s3://bucket/{name}", os.path.join(self.top, "back", name))
        self.assertEqual(files(os.path.join(self.top, "back")), self.of_data("web", "one"))
        shutil.copy(os.path.join(self.base.name, "text.jsonl"), self.bucket)
        self.server.set(rules=[{"path": "text.jsonl", "method": "GET", "fault": "reset_body", "times": 3}])
        subprocess.run([TOKMAP, "pack", "-q", "-o", os.path.join(self.top, "again"), "--shard-tokens", "5500000",
                        "s3://bucket/text.jsonl"], env=self.environment, check=True, timeout=120)
        for path, content in self.of_data("web").items():
            if path.endswith(".bin"):
                with open(os.path.join(self.top, path.replace("web", "again")), "rb") as file:
                    self.assertEqual(file.read(), content)

    def test_tls(self):
        """Over TLS the signature has no hash of the body, and the server compares the MD5 in the header."""
        key, certificate = (os.path.join(self.top, name) for name in ("key", "certificate"))
        made = shutil.which("openssl") and subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
             key, "-out", certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
            capture_output=True, check=False).returncode == 0
        if not made:
            self.skipTest("no openssl")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        behind = self.server.url.split("//")[1].split(":")

        def pass_on(source, sink):
            try:
                while data := source.recv(1 << 16):
                    sink.sendall(data)
            except OSError:
                pass
            for end in source, sink:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

        class Proxy(socketserver.BaseRequestHandler):
            def handle(self):
                with context.wrap_socket(self.request, server_side=True) as front, \
                        socket.create_connection((behind[0], int(behind[1]))) as back:
                    other = threading.Thread(target=pass_on, args=(back, front), daemon=True)
                    other.start()
                    pass_on(front, back)
                    other.join()

        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads, allow_reuse_address = True, True

            def handle_error(self, *_):
                pass
        with Threads(("127.0.0.1", 0), Proxy) as proxy:
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            self.environment.update(AWS_ENDPOINT_URL=f"https://127.0.0.1:{proxy.server_address[1]}",
                                    AWS_CA_BUNDLE=certificate)
            self.server.set(accounts={self.environment["AWS_ACCESS_KEY_ID"]: self.environment["AWS_SECRET_ACCESS_KEY"]},
                            rules=[{"path": "web-00000.bin.partNumber=1", "method": "PUT", "fault": "flip", "times": 1}])
            self.copy(self.local("web"), "s3://bucket/web")
            self.copy("s3://bucket/web", os.path.join(self.top, "back/"))
            proxy.shutdown()
        self.assertEqual(files(self.bucket), self.of_data("web"))
        self.assertEqual(files(os.path.join(self.top, "back")), self.of_data("web"))
        self.assertEqual(self.server.counts()["status 400"], 1)

    def test_order(self):
        """Indexes come after all tokens and values, and the manifest after them."""
        self.copy(self.local("web"), "s3://bucket/web")
        with open(self.log, encoding="utf-8") as file:
            made = [line.split()[1] for line in file
                    if re.match(r"POST \S+\?uploadId=|PUT [^?]+ ", line) and " status=200 " in line]
        kinds = ["bin" if ".bin" in path or ".values" in path else "tmx" if ".tmx" in path else "manifest" for path in made]
        self.assertEqual(kinds, ["bin"] * 6 + ["tmx"] * 3 + ["manifest"])

    def test_again(self):
        """What is there is not sent again, and another dataset is not replaced unless that is said."""
        for target in ("s3://bucket/web", os.path.join(self.top, "local", "web")):
            first = self.copy(self.local("web"), target)
            self.assertEqual((first["changed"], first["shards"], first["values"], first["kept"]), (6, 3, 3, 0))
            second = self.copy(self.local("web"), target, "--verify", "full")
            self.assertEqual((second["changed"], second["sent"]), (0, 0))
            folder = self.bucket if target.startswith("s3") else os.path.dirname(target)
            other = os.path.join(self.top, "other" + target[:2], "web")
            subprocess.run([TOKMAP, "pack", "-q", "-o", other, "--shard-tokens", "5500000", "--no-eod",
                            os.path.join(self.base.name, "text.jsonl")], check=True)
            before = files(folder)
            said = self.copy(other, target, status=1)
            self.assertIn("--force", said)
            self.assertEqual(files(folder), before)
            self.copy(other, target, "--force")
            after = {path: content for path, content in files(os.path.dirname(other)).items()}
            self.assertEqual({path: content for path, content in files(folder).items() if path in after}, after)
            self.assertEqual(set(files(folder)) - set(after), {path for path in before if path.endswith(".values")})
        self.assertFalse(self.uploads())

    def test_repair(self):
        """A damaged copy is an error, and --force makes it a sound one."""
        for target in ("s3://bucket/web", os.path.join(self.top, "local", "web")):
            self.copy(self.local("web"), target)
            folder = self.bucket if target.startswith("s3") else os.path.dirname(target)
            path = os.path.join(folder, "web-00001.bin")
            with open(path, "r+b") as file:
                file.seek(7000001)
                file.write(b"\xff")
            self.assertIn("web-00001.bin", self.copy(self.local("web"), target, status=1))
            report = self.copy(self.local("web"), target, "--force")
            self.assertEqual(report["changed"], 1)
            self.assertEqual(files(folder), self.of_data("web"))

    def test_damaged_source(self):
        """A flipped byte at the source is an error that names the file, and nothing is written."""
        bad = os.path.join(self.top, "bad")
        for name in ("web", "one", "masked"):
            self.copy(self.local(name), bad + "/")
        for name, path, place in (("web", "web-00001.bin", 9000000), ("web", "web-00002.tmx", 100),
                                  ("one", "one.bin.zst", 3000000), ("one", "one.bin.zst", -12),
                                  ("masked", "masked.mask", 99), ("masked", "masked.bin", 1001)):
            path = os.path.join(bad, path)
            with open(path, "rb") as file:
                content = bytearray(file.read())
            content[place] ^= 4
            os.rename(path, path + ".good")
            with open(path, "wb") as file:
                file.write(content)
            for target, folder in (("s3://bucket/", self.bucket), (os.path.join(self.top, "new/"), self.top + "/new")):
                said = self.copy(os.path.join(bad, name), target, status=1)
                self.assertIn(os.path.basename(path), said)
                self.assertEqual(files(folder), {})
            self.assertFalse(self.uploads())
            os.rename(path + ".good", path)

    def test_kills(self):
        """A copy that is killed at any moment continues, and sends no part twice that is there."""
        draw = random.Random(2)
        for source, target, folder, wait in (
                (self.local("web"), "s3://bucket/a/web", self.bucket + "/a", 0.35),
                ("s3://bucket/a/web", "s3://bucket/b/web", self.bucket + "/b", 0.5),
                ("s3://bucket/a/web", os.path.join(self.top, "l", "web"), self.top + "/l", 0.2),
                (self.local("web"), os.path.join(self.top, "m", "web"), self.top + "/m", 0.04)):
            kills = 0
            for _ in range(9):
                process = self.start(source, target, "--part-bytes", "5MiB", "-j2")
                time.sleep(draw.random() * wait)
                process.kill()
                process.communicate()
                kills += process.returncode == -signal.SIGKILL
                seen = files(folder)
                if "web" in seen:
                    self.assertEqual({path: seen[path] for path in self.of_data("web")}, self.of_data("web"))
                if process.returncode == 0:  # a fast machine: sooner, from the beginning
                    wait /= 2
                    shutil.rmtree(folder)
            self.copy(source, target)
            self.assertEqual(files(folder), self.of_data("web"))
            self.assertGreater(kills, 2)
        self.assertFalse(self.uploads())

    def test_continues(self):
        """After a failure in the middle, what was sent is kept."""
        self.server.set(rules=[{"path": r"web-00001.bin.partNumber=3", "method": "PUT", "fault": "500"}])
        self.environment["AWS_MAX_ATTEMPTS"] = "2"
        said = self.copy(self.local("web"), "s3://bucket/web", "-j1", status=1)
        self.assertIn("continues", said)
        self.assertEqual(files(self.bucket), {})
        self.server.set(rules=[])
        report = self.copy(self.local("web"), "s3://bucket/web")
        self.assertGreater(report["kept"], 20 << 20)
        self.assertLess(report["sent"], 16 << 20)  # 12 MB of them are values
        self.assertEqual(files(self.bucket), self.of_data("web"))

    def test_faults(self):
        """With a tenth of all requests failing, copies are equal."""
        self.server.set(rate=0.1, kinds=sorted({*TRANSIENT, *CHANGES} - {"403", "hang"}))
        self.copy(self.local("web"), "s3://bucket/web", "-j4")
        self.assertEqual(files(self.bucket), self.of_data("web"))
        self.copy("s3://bucket/web", os.path.join(self.top, "back/"), "-j4")
        self.assertEqual(files(os.path.join(self.top, "back")), self.of_data("web"))
        self.copy("s3://bucket/web", "s3://bucket/other/", "-j4")
        self.assertEqual(files(os.path.join(self.bucket, "other")), self.of_data("web"))
        self.assertGreater(self.server.counts()["faults"], 5)

    def test_end_of_upload(self):
        """The end of an upload whose answer is lost, or is an error with the status 200, or no right, or no room."""
        for number, fault in enumerate(("lost", "late_error", "503")):
            self.server.set(rules=[{"path": r"uploadId", "method": "POST", "fault": fault, "times": 2},
                                   {"path": r"web$", "method": "PUT", "fault": fault, "times": 1}])
            self.copy(self.local("web"), f"s3://bucket/{number}/web")
            self.assertEqual(files(os.path.join(self.bucket, str(number))), self.of_data("web"))
        self.server.set(rules=[{"path": r"uploadId", "method": "POST", "fault": "403"}])
        self.assertIn("403", self.copy(self.local("web"), "s3://bucket/9/web", status=1))
        self.server.set(rules=[{"path": "", "method": "PUT", "fault": "ExpiredToken"}])
        self.assertIn("AWS_SESSION_TOKEN", self.copy(self.local("web"), "s3://bucket/9/web", status=1))
        self.server.set(rules=[{"path": "", "method": "PUT", "fault": "QuotaExceeded"}])
        self.assertIn("403, QuotaExceeded", self.copy(self.local("web"), "s3://bucket/9/web", status=1))

    def test_refused_reads(self):
        """An answer 403 names the server's code, also to HEAD, which has no body."""
        self.copy(self.local("one"), "s3://bucket/web")
        for method, place in ("HEAD|GET", "s3://bucket/other"), ("GET", os.path.join(self.top, "back")):
            source = self.local("one") if method != "GET" else "s3://bucket/web"
            for fault, said in ("403", r"status 403, AccessDenied, region us-east-1\): the key"), \
                    ("QuotaExceeded", "status 403, QuotaExceeded, .* look that code up"):
                self.server.set(rules=[{"path": "", "method": method, "fault": fault}])
                self.assertRegex(self.copy(source, place, status=1), said)

    def test_list_without_end(self):
        """A list of uploads whose pages all say that the same page follows."""
        self.server.set(rules=[{"path": "uploads=.*", "method": "GET", "fault": "list_loop"}])
        self.assertIn("answer about an upload", self.copy(self.local("web"), "s3://bucket/web", status=1))

    def test_keyed(self):
        """A bucket whose objects are encrypted with a key of a service has ETags that are no MD5."""
        self.server.set(keyed=True)
        for again in range(2):
            report = self.copy(self.local("web"), "s3://bucket/web")
            self.assertEqual(files(self.bucket), self.of_data("web"))
        self.assertEqual((report["changed"], report["sent"]), (0, 0))

    def test_replaced_source(self):
        self.copy(self.local("web"), "s3://bucket/web")
        self.server.set(rules=[{"path": r"web-00001.bin", "method": "GET", "fault": "replaced"}])
        said = self.copy("s3://bucket/web", os.path.join(self.top, "new/"), status=1)
        self.assertIn("replaced", said)
        self.assertEqual(files(os.path.join(self.top, "new")), {})

    def test_full_disk(self):
        """A local copy that cannot grow is an error, and continues when it can."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))
        target = os.path.join(self.top, "small", "web")
        said = self.copy(self.local("web"), target, status=1, preexec_fn=limit)
        self.assertIn("web-0000", said)
        self.assertFalse(any(path.endswith((".bin", ".tmx")) or path == "web" for path in files(self.top + "/small")))
        self.copy(self.local("web"), target)
        self.assertEqual(files(self.top + "/small"), self.of_data("web"))

    def test_names(self):
        """Names are bytes: spaces, #, ?, %, and newlines are no escapes."""
        for name in ("a b", "a#b", "a?b", "100%41", "a+b&c=d", "\u00e9t\u00e9", "line\nend", "[x]*"):
            self.copy(self.local("masked"), f"s3://bucket/n/{name}")
            self.copy(f"s3://bucket/n/{name}", os.path.join(self.top, "names", name))
            self.assertIn("n/" + name + ".tmx", files(self.bucket))
        wanted = self.of_data("masked")
        names = files(os.path.join(self.top, "names"))
        self.assertEqual(len(names), 8 * 4)
        for path, content in names.items():
            ending = ".v.values" if path.endswith(".values") else path[path.rindex("."):]
            self.assertEqual(content, wanted["masked" + ending])
        self.copy("s3://bucket/n/", os.path.join(self.top, "all"))
        self.assertEqual(files(os.path.join(self.top, "all")), names)
        self.server.set(ghosts=["n/x/../../../../out.tmx"])
        self.assertIn("'..'", self.copy("s3://bucket/n/", os.path.join(self.top, "hostile"), status=1))

    def test_refused(self):
        for source, target, said in (
                (self.local("web"), "https://example.org/web", "read and not written"),
                (self.local("web") + "#docs=0..5%", "s3://bucket/x", "copied whole"),
                (self.local("nothing"), "s3://bucket/x", "no dataset"),
                ("s3://bucket/nothing", os.path.join(self.top, "x"), "no shard"),
                (self.server.url + "/bucket/", os.path.join(self.top, "x"), "cannot be listed")):
            self.assertIn(said, self.copy(source, target, status=1))
        self.assertEqual(files(self.bucket), {})


class Packs(Objects):
    """`tokmap pack -o s3://...`: the objects are the files of `tokmap pack -o NAME`."""

    def run_pack(self, *arguments, text="text.jsonl", kill=None):
        process = subprocess.Popen([TOKMAP, "pack", "-q", "--checkpoint-seconds", "0.05", *arguments,
                                    os.path.join(self.base.name, text)], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=self.environment, cwd=self.here)
        if kill is not None:
            time.sleep(kill)
            process.kill()
        said = process.communicate(timeout=120)[1].decode(errors="replace")
        return process.returncode, said

    def setUp(self):
        super().setUp()
        self.here = os.path.join(self.top, "here")
        os.mkdir(self.here)

    def wanted(self, *arguments, name="web"):
        place = tempfile.mkdtemp(dir=self.base.name)
        subprocess.run([TOKMAP, "pack", "-q", "-o", name, *arguments, os.path.join(self.base.name, "text.jsonl")],
                       check=True, cwd=place)
        return {path: content for path, content in files(place).items() if not path.endswith(".dropped")}

    def test_objects(self):
        for number, options in enumerate((
                (), ("--seal",), ("--shard-tokens", "4m"), ("--shard-tokens", "4m", "--shuffle", "7"),
                ("--split", "train=0.9,val=0.1"), ("--split", "train=0.999999,val=0.000001", "--shard-tokens", "9m"),
                ("--shard-tokens", "3m", "--unit-bytes", "5m", "--task", "0/1"))):
            status, said = self.run_pack("-o", f"s3://bucket/{number}/web", *options)
            self.assertEqual(status, 0, said)
            self.assertEqual(files(os.path.join(self.bucket, str(number))), self.wanted(*options))
            self.assertEqual(os.listdir(self.here), [])
        status, said = self.run_pack("-o", "s3://bucket/0/web")
        self.assertEqual(status, 1)
        self.assertIn("--force", said)
        status, said = self.run_pack("-o", "s3://bucket/0/web", "--no-eod", "--force")
        self.assertEqual((status, files(os.path.join(self.bucket, "0"))), (0, self.wanted("--no-eod")), said)

    def test_killed(self):
        draw = random.Random(3)
        for number, options in enumerate((("--shard-tokens", "4m"), ("--shard-tokens", "4m", "--shuffle", "7"), ())):
            target = f"s3://bucket/{number}/web"
            kills = 0
            for later in range(1, 11):
                status, said = self.run_pack("-o", target, *options, kill=(0.2 + draw.random()) * 0.08 * later)
                kills += status == -signal.SIGKILL
                if status != -signal.SIGKILL:
                    break
            else:
                status, said = self.run_pack("-o", target, *options)
            # One that was killed after all was sent, while it removed its files here, is finished, too.
            self.assertTrue(status == 0 or "there is a dataset of this name" in said, said)
            self.assertGreater(kills, 0)
            self.assertEqual(files(os.path.join(self.bucket, str(number))), self.wanted(*options))
            if status == 0:
                self.assertEqual(os.listdir(self.here), [])
            shutil.rmtree(os.path.join(self.here, "web.upload"), ignore_errors=True)
        self.assertFalse(self.uploads())

    def test_sending_fails(self):
        """What cannot be sent stays here, and is sent by the same command, and not by one with other options."""
        self.environment["AWS_MAX_ATTEMPTS"] = "2"
        self.server.set(rules=[{"path": r"web-00002.bin.partNumber", "method": "PUT", "fault": "503"}])
        options = ("-o", "s3://bucket/web", "--shard-tokens", "4m", "--work-folder", "work")
        status, said = self.run_pack(*options)
        self.assertEqual(status, 1)
        self.assertIn("same command continues", said)
        self.assertEqual(files(self.bucket), {})
        self.server.set(rules=[])
        status, said = self.run_pack(*options, "--no-eod")
        self.assertEqual(status, 1)
        self.assertRegex(said, "(?i)eod")
        self.assertEqual(files(self.bucket), {})
        status, said = self.run_pack(*options)
        self.assertEqual(status, 0, said)
        self.assertEqual(files(self.bucket), self.wanted("--shard-tokens", "4m"))
        self.assertEqual(files(self.here), {})

    def test_refused_early(self):
        """What may not be written is found before the inputs are read."""
        self.server.set(rules=[{"path": "", "method": "POST", "fault": "403"}])
        status, said = self.run_pack("-o", "s3://bucket/web", text="no such file.jsonl")
        self.assertEqual(status, 1)
        self.assertRegex(said, "403.* may not do this, .* does not belong to its secret")
        self.assertEqual(os.listdir(self.here), [])
