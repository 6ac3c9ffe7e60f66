# SPDX-License-Identifier: MIT
"""tokmap.ray.pack() on a real Ray cluster of two nodes: the shards are those of tokmap.pack(), also if an actor is
killed. What it replaces is checked without a cluster, too."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from contextlib import suppress
from unittest import mock

import tokmap
from tokmap.errors import class_of
from support import TOKMAP, needs, new_folder
from test_tokenizer import small

DOCUMENTS = 4000
SHARD = 700


def descendants(title):
    """The processes below this one whose title begins with a text."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as file:
                if not file.read().startswith(title.encode()):
                    continue
            above = pid
            while above > 1 and above != os.getpid():
                with open(f"/proc/{above}/stat", encoding="utf-8", errors="replace") as file:
                    above = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if above == os.getpid():
            found.append(pid)
    return found


@needs("ray", "ray.data", "pyarrow")
class RayPack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.update(RAY_DEDUP_LOGS="0", RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1")
        # The workers import what this process imports.
        package = os.path.dirname(os.path.dirname(os.path.abspath(tokmap.__file__)))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        import ray
        from ray.cluster_utils import Cluster
        cls.temporary = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # sockets have short paths
        cls.addClassCleanup(shutil.rmtree, cls.temporary, ignore_errors=True)
        os.environ["RAY_TMPDIR"] = cls.temporary
        os.mkdir(os.path.join(cls.temporary, "ray"))
        memory = {"num_cpus": 1, "object_store_memory": 80 << 20}
        cls.cluster = Cluster(initialize_head=True, head_node_args={**memory, "include_dashboard": False,
                                                                    "temp_dir": cls.temporary})
        cls.addClassCleanup(cls.cluster.shutdown)
        cls.cluster.add_node(**memory)
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="error")
        cls.addClassCleanup(ray.shutdown)
        cls.folder = new_folder()
        cls.records = [{"text": " ab cdef"[:i % 9] * (i % 40), "n": i} for i in range(DOCUMENTS)]
        cls.tokenizer = small(cls.folder)
        # The plain command packs all documents, and those of each shard.
        cls.plain("plain", cls.records)
        for k in range(-(-DOCUMENTS // SHARD)):
            cls.plain(f"plain-{k}", cls.records[k * SHARD:(k + 1) * SHARD])

    @classmethod
    def at(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def plain(cls, name, records):
        with open(cls.at(name + ".jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        subprocess.run([TOKMAP, "pack", "-q", "--no-eod", "--columns=n", "-t", cls.tokenizer, "-o", cls.at(name),
                        cls.at(name + ".jsonl")], check=True)

    def dataset(self, blocks=5):
        import ray
        return ray.data.from_items(self.records, override_num_blocks=blocks)

    def pack(self, name, blocks=5, **options):
        import tokmap.ray
        options = {"tokenizer": self.tokenizer, "shard_documents": SHARD, "eod": False, "columns": ["n"], "threads": 1,
                   **options}
        return tokmap.ray.pack(self.dataset(blocks), self.at(name), **options)

    def check(self, name, packed):
        """The whole output, byte for byte; the index has the paths of the input files, so it is compared by content."""
        together = b""
        count = -(-DOCUMENTS // SHARD)
        for k in range(count):
            with open(self.at(f"{name}-{k:05}.bin"), "rb") as ours, open(self.at(f"plain-{k}.bin"), "rb") as theirs:
                self.assertEqual(got := ours.read(), theirs.read())
                together += got
            with tokmap.Dataset(self.at(f"{name}-{k:05}")) as ours, tokmap.Dataset(self.at(f"plain-{k}")) as theirs:
                self.assertEqual(ours.info.content, theirs.info.content)
        with open(self.at("plain.bin"), "rb") as file:
            self.assertEqual(together, file.read())
        with tokmap.Dataset(self.at(name)) as ours, tokmap.Dataset(self.at("plain")) as theirs:
            self.assertEqual(packed.documents, DOCUMENTS)
            self.assertEqual(packed.tokens, theirs.info.tokens)
            self.assertEqual([ours.document(i).tokens for i in range(0, DOCUMENTS, 97)],
                             [theirs.document(i).tokens for i in range(0, DOCUMENTS, 97)])
            self.assertEqual((packed.content, packed.skipped), (ours.info.content, 0))
        with open(self.at(name), encoding="utf-8") as file:  # which states the facts of every shard
            lines = file.read().splitlines()
        self.assertEqual((lines[0], lines[1][:10]), ("# tokmap manifest 2", "# shards: "))
        self.assertEqual([line.partition("\t")[0] for line in lines[2:]], [f"{name}-{k:05}" for k in range(count)])
        self.assertTrue(all("\t" in line for line in lines[2:]))
        wanted = [name] + [f"{name}-{k:05}.{end}" for k in range(count) for end in ("bin", "tmx")]
        self.assertEqual(sorted(entry for entry in os.listdir(self.folder)
                                if entry == name or entry.startswith((name + "-", name + "."))), sorted(wanted))

    def test_blocks_do_not_matter(self):
        for blocks in (1, 7):
            self.check(f"blocks{blocks}", self.pack(f"blocks{blocks}", blocks))
        with self.assertRaisesRegex(class_of("ERROR_EXISTS"), "already exists"):
            self.pack("blocks1")
        self.check("blocks1", self.pack("blocks1", force=True))

    def test_empty_columns(self):
        """The warning is that of tokmap.pack(), about the whole set: also if shards were packed by an earlier call."""
        import warnings

        import ray
        import tokmap.ray
        records = [{"text": "ab", "n": i, "late": i if i == SHARD * 2 + 1 else None} for i in range(SHARD * 3)]
        options = {"tokenizer": self.tokenizer, "shard_documents": SHARD, "eod": False, "threads": 1}

        def said(records, **more):
            data = ray.data.from_items(records, override_num_blocks=3)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                tokmap.ray.pack(data, self.at("columns"), force=True, **options, **more)
            return [str(one.message) for one in caught if "of columns" in str(one.message)]

        empty = ["no record has the field 'nope' of columns: its column is empty"]
        self.assertEqual(said(records, columns="n,nope"), empty)
        self.assertEqual(said(records, columns="n"), [])
        self.assertEqual(said(records, columns="late,nope")[-1:], empty)
        wrong = [dict(record) for record in records]
        wrong[SHARD * 2 + 2]["text"] = None
        with self.assertRaises(tokmap.InputError):
            said(wrong, columns="n,nope")
        self.assertEqual(said(records, columns="n,nope", resume=True), empty)

    def killing(self, name, call, begun=lambda name: True):
        """Makes calls, each with a name of its own, until an actor was killed in one, once begun(name) was true, and
        once more after that. Returns the name."""
        killed = []
        for attempt in range(10):
            full, failed = f"{name}{attempt}", []

            def work():
                try:
                    call(full)
                except BaseException as problem:
                    failed.append(problem)

            thread = threading.Thread(target=work)
            thread.start()
            while thread.is_alive() and len(killed) < 2:
                for pid in descendants("ray::_Packer.pack")[:1] if begun(full) else ():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                    killed.append(pid)
                    time.sleep(0.2)
            thread.join()
            self.assertEqual(failed, [])
            if killed:
                return full
        return self.fail("no actor was seen at work")

    def test_a_killed_actor(self):
        self.killing("killed", lambda name: self.check(name, self.pack(name)))

    # ---- files of other projects ----

    FORMATS = "megatron,llmc,datatrove,olmo,nanogpt"

    @classmethod
    def converted(cls, sealed):
        """The files of all formats that the command makes of each shard, by what follows the name of the set. The
        documents are packed from memory, since OLMo's list has the places in input files, where there are any."""
        files = {}
        for k in range(-(-DOCUMENTS // SHARD)):
            tokmap.pack(cls.records[k * SHARD:(k + 1) * SHARD], cls.at(f"memory-{k}"), tokenizer=cls.tokenizer,
                        eod=False, columns=["n"], force=True, progress=False)
            for form in cls.FORMATS.split(","):
                own = f".{form}" if form == "llmc" or sealed and form in ("megatron", "nanogpt") else ""
                made = cls.at(f"made-{k}{own}")
                subprocess.run([TOKMAP, "convert", "-q", "--force", "--to", form, "-o", made, cls.at(f"memory-{k}")],
                               check=True, stderr=subprocess.PIPE)
                for path in glob.glob(glob.escape(made) + ".*"):
                    ending = os.path.basename(path)[len(f"made-{k}"):]
                    with open(path, "rb") as file:
                        files[f"-{k:05}{ending}"] = file.read()
                    os.remove(path)
        if not sealed:  # the tokens are those of the shard
            files = {name: content for name, content in files.items() if name[6:] != ".bin"}
        return files

    def check_also(self, name, packed, sealed=False):
        """All files of a set, byte for byte; of the shards themselves the content."""
        wanted = self.converted(sealed)
        count = -(-DOCUMENTS // SHARD)
        shards = {f"-{k:05}{end}" for k in range(count) for end in (".bin.zst" if sealed else ".bin", ".tmx")}
        self.assertEqual({entry[len(name):] for entry in os.listdir(self.folder)
                          if entry == name or entry.startswith((name + "-", name + "."))},
                         {"", *shards, *wanted})
        for ending, content in wanted.items():
            with open(self.at(name + ending), "rb") as file:
                self.assertEqual(file.read(), content, ending)
        for k in range(count):
            with tokmap.Dataset(self.at(f"{name}-{k:05}")) as ours, tokmap.Dataset(self.at(f"plain-{k}")) as theirs:
                self.assertEqual(ours.info.content, theirs.info.content)
        self.assertEqual(packed.documents, DOCUMENTS)

    def warned(self, name, **options):
        """The documents have no EOD, so formats without an index of documents lose them, which is said."""
        with self.assertWarnsRegex(UserWarning, "nanogpt has no index of documents, and [0-9]+ of them cannot be"):
            return self.pack(name, **options)

    def test_also(self):
        packed = self.warned("beside", also=self.FORMATS)
        self.check_also("beside", packed)
        inodes = {os.stat(self.at(f"beside-00001.{end}")).st_ino for end in ("bin", "ds", "npy")}
        self.assertEqual(len(inodes), 1)
        with self.assertRaisesRegex(class_of("ERROR_EXISTS"), "already exists"):
            self.pack("beside", also=self.FORMATS)
        with self.assertRaisesRegex(class_of("ERROR_EXISTS"), "beside-00000.idx: this is an index of Megatron"):
            self.pack("beside", also="olmo", force=True)
        # Sealed shards share nothing. What a plain set had under other names does not stay.
        packed = self.warned("beside", also=reversed(self.FORMATS.split(",")), seal=1, force=True)
        self.check_also("beside", packed, sealed=True)
        subprocess.run([TOKMAP, "verify", "-q", self.at("beside")], check=True)
        self.check_also("beside", self.warned("beside", also=self.FORMATS, force=True))

    def test_a_killed_actor_with_also(self):
        """Actors are killed when the first shard has its files, so while others are converted."""
        def work(name):
            self.check_also(name, self.warned(name, also=self.FORMATS, seal=1), sealed=True)

        name = self.killing("converted", work, lambda name: glob.glob(glob.escape(self.at(name)) + ".work/*.also"))
        self.assertFalse(os.path.exists(self.at(name + ".work")))

    def test_also_is_continued(self):
        """A shard whose files are not all there when work ended gets them then, and no other is touched."""
        with mock.patch("tokmap.ray._Set.finish", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.pack("parts", also=self.FORMATS)
        with self.assertRaisesRegex(class_of("ERROR_MISMATCH"), "another also"):
            self.pack("parts", resume=True, also="olmo")
        work = self.at("parts.work")
        before = {entry: os.stat(os.path.join(work, entry)).st_ino for entry in os.listdir(work)
                  if not entry.startswith("parts-00002")}
        os.remove(os.path.join(work, "parts-00002.also"))
        os.remove(os.path.join(work, "parts-00002.npy"))
        with open(os.path.join(work, "parts-00002.idx"), "wb"):  # another file of it was not finished
            pass
        finish = tokmap.ray._Set.finish

        def compare(names, count, force):
            for entry, inode in before.items():
                self.assertEqual(os.stat(os.path.join(work, entry)).st_ino, inode, entry)
            finish(names, count, force)

        with mock.patch("tokmap.ray._Set.finish", compare):
            self.check_also("parts", self.warned("parts", resume=True, also=self.FORMATS))

    def test_a_command_that_outlives_its_actor(self):
        """A command that reads the documents sees that those of a killed actor are cut off. The shard of the next actor
        has all of them."""
        import ray
        import tokmap.ray
        records = [{"talk": [{"role": "user", "content": f"{i} ab " * 50},
                             {"role": "assistant", "content": f"cd {i} " * 50}]} for i in range(8000)]
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        tokenizer = small(self.folder, "talk.json", [{"id": 11, "content": "<|im_start|>", **flags},
                                                     {"id": 12, "content": "<|im_end|>", **flags}])
        options = {"tokenizer": tokenizer, "eod": False, "messages_field": "talk", "chat_template": "chatml"}
        wanted = tokmap.pack(records, self.at("talk"), progress=False, **options)

        def work(name):
            made = tokmap.ray.pack(ray.data.from_items(records, override_num_blocks=2), self.at(name), threads=1,
                                   shard_documents=len(records), **options)
            self.assertEqual((made.documents, made.tokens), (len(records), wanted.tokens))
            with tokmap.Dataset(self.at(f"{name}-00000")) as ours:
                self.assertEqual(ours.info.content, wanted.content)

        def begun(name):  # some documents have been read and encoded
            with suppress(FileNotFoundError):
                return any(map(os.path.getsize, glob.glob(glob.escape(self.at(name)) + ".work/*.bin.partial")))

        self.killing("talk", work, begun)

    def test_the_lock_of_a_shard(self):
        """An actor waits for a command that holds the lock of its shard, such as one of an actor that was killed."""
        import fcntl
        from tokmap.ray import _Packer
        os.mkdir(self.at("lock"))
        for end in ("bin", "tmx"):
            shutil.copy(self.at(f"plain-0.{end}"), self.at(f"lock/shard.{end}"))
        packer = _Packer(self.tokenizer, {"threads": 1}, None, ["olmo"])
        with open(self.at("lock/shard.lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # A command that was given the descriptor holds the lock when the actor that started it is gone.
            command = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       pass_fds=(lock.fileno(),))
        thread = threading.Thread(target=packer.pack, args=(self.at("lock/shard"), []))
        thread.start()
        thread.join(0.2)
        self.assertTrue(thread.is_alive())
        self.assertFalse(os.path.exists(self.at("lock/shard.npy")))
        command.communicate()
        thread.join()
        self.assertTrue(os.path.exists(self.at("lock/shard.npy")) and os.path.exists(self.at("lock/shard.also")))

    def test_an_error_keeps_finished_shards(self):
        import tokmap.ray
        wrong = [dict(record) for record in self.records]
        wrong[SHARD * 5 + 5]["text"] = None  # in the last shard, which begins when others are complete
        import ray
        options = {"tokenizer": self.tokenizer, "shard_documents": SHARD, "eod": False, "columns": ["n"], "threads": 1}
        with self.assertRaisesRegex(tokmap.InputError, "document 5"):
            tokmap.ray.pack(ray.data.from_items(wrong, override_num_blocks=3), self.at("again"), **options)
        self.assertFalse(os.path.exists(self.at("again")))
        kept = glob.glob(glob.escape(self.at("again.work")) + "/*.tmx")  # one actor may have made all of them
        self.assertTrue(kept)
        before = {os.path.basename(path): os.stat(path).st_ino for path in kept}
        with self.assertRaisesRegex(class_of("ERROR_EXISTS"), "resume=True"):  # the documents may be others
            self.pack("again")
        with self.assertRaisesRegex(class_of("ERROR_MISMATCH"), "another shard_documents"):
            self.pack("again", resume=True, shard_documents=SHARD + 1)
        self.check("again", self.pack("again", resume=True))
        self.assertEqual({name: os.stat(self.at(name)).st_ino for name in before}, before)

    def test_replacing_keeps_the_old_set_until_the_new_one_is_complete(self):
        """An error of a document leaves the old set. Work that ends while shards get their names is continued."""
        import ray
        import tokmap.ray
        options = {"tokenizer": self.tokenizer, "shard_documents": SHARD, "eod": False, "columns": ["n"], "threads": 1}
        old = [{"text": "ab", "n": i} for i in range(SHARD * 7 + 1)]  # more shards than the new set
        tokmap.ray.pack(ray.data.from_items(old, override_num_blocks=2), self.at("kept"), **options)
        wrong = [dict(record) for record in self.records]
        wrong[SHARD * 5 + 5]["text"] = None
        with self.assertRaisesRegex(tokmap.InputError, "document 5"):
            tokmap.ray.pack(ray.data.from_items(wrong, override_num_blocks=3), self.at("kept"), force=True, **options)
        with tokmap.Dataset(self.at("kept")) as kept:
            self.assertEqual(kept.info.documents, len(old))
        with self.assertRaisesRegex(class_of("ERROR_EXISTS"), "force=True"):
            self.pack("kept", resume=True)
        replace, calls = os.replace, []

        def fourth_fails(source, target):
            calls.append(target)
            if len(calls) > 3:
                raise OSError(28, "No space left on device")
            replace(source, target)

        with mock.patch("os.replace", fourth_fails), self.assertRaises(OSError):
            self.pack("kept", force=True, resume=True)
        self.assertFalse(os.path.exists(self.at("kept")))
        self.check("kept", self.pack("kept", resume=True))

    def test_sealed(self):
        """The shards are those of tokmap seal. One that was complete but not sealed when work ended is sealed then."""
        wanted = {}
        for k in range(-(-DOCUMENTS // SHARD)):
            for end in ("bin", "tmx"):
                shutil.copy(self.at(f"plain-{k}.{end}"), self.at(f"pressed-{k}.{end}"))
            subprocess.run([TOKMAP, "seal", "-q", "--level=3", self.at(f"pressed-{k}")], check=True)
            with open(self.at(f"pressed-{k}.bin.zst"), "rb") as file:
                wanted[f"sealed-{k:05}.bin.zst"] = file.read()
        import tokmap.ray
        with mock.patch("tokmap.ray._Set.finish", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.pack("sealed", seal=3)
        with self.assertRaisesRegex(class_of("ERROR_MISMATCH"), "another seal"):
            self.pack("sealed", resume=True)
        first = self.at("sealed.work/sealed-00000")
        subprocess.run([TOKMAP, "unseal", "-q", first], check=True)
        self.assertTrue(os.path.exists(first + ".bin"))
        with open(self.at("sealed.work/sealed-00001.bin"), "wb"):  # the last step of sealing is missing
            pass
        packed = self.pack("sealed", seal=3, resume=True)
        for name, content in wanted.items():
            with open(self.at(name), "rb") as file:
                self.assertEqual(file.read(), content)
        with tokmap.Dataset(self.at("sealed")) as ours, tokmap.Dataset(self.at("plain")) as theirs:
            self.assertEqual((ours.info.documents, ours.info.tokens), (DOCUMENTS, theirs.info.tokens))
            self.assertEqual(packed.content, ours.info.content)
            self.assertEqual(ours.document(DOCUMENTS - 1).tokens, theirs.document(DOCUMENTS - 1).tokens)
        self.assertEqual(sorted(entry for entry in os.listdir(self.folder) if entry.startswith("sealed")),
                         sorted(["sealed", *wanted, *(name.replace("bin.zst", "tmx") for name in wanted)]))

    def test_a_folder_of_other_work(self):
        os.mkdir(self.at("other.work"))
        with open(self.at("other.work/journal"), "wb"):
            pass
        for force in (False, True):
            with self.assertRaisesRegex(class_of("ERROR_EXISTS"), "other.work"):
                self.pack("other", force=force)
        self.assertEqual(os.listdir(self.at("other.work")), ["journal"])

    def test_wrong_arguments(self):
        import tokmap.ray
        for wanted, call in ((tokmap.ArgumentError, lambda: tokmap.ray.pack(["a"], self.at("x"))),
                             (tokmap.ArgumentError, lambda: self.pack("x", progress=True)),
                             (class_of("ERROR_RANGE"), lambda: self.pack("x", seal=20)),
                             (class_of("ERROR_NOT_FOUND"), lambda: self.pack("none/x")),
                             (class_of("ERROR_RANGE"), lambda: self.pack("x", shard_documents=0))):
            with self.assertRaises(wanted):
                call()
        for wanted, options in (("'word2vec' is not a format", {"also": "olmo,word2vec"}),
                                ("'' is not a format", {"also": "olmo,"}),
                                ("'olmo' is named twice", {"also": ["olmo", "olmo"]}),
                                ("with mask_field .* the files of olmo cannot",
                                 {"also": "datatrove,olmo", "ids_field": "i", "mask_field": "m"})):
            with self.assertRaisesRegex(tokmap.ArgumentError, f"^also: {wanted}"):
                self.pack("x", **options)
        for name in ("dedup", "exclude_ngrams", "split", "shuffle", "shard_tokens"):
            wanted = f"^{name}: ray.pack\\(\\) has no such option: .*(pass shard_documents|before|the command)"
            with self.assertRaisesRegex(tokmap.ArgumentError, wanted):
                self.pack("x", **{name: "exact"})
        self.assertEqual(glob.glob(self.at("x*")), [])


class RayNames(unittest.TestCase):
    """What is replaced by name, which needs no cluster."""

    def test_files_of_others(self):
        """Numbers of shards have five digits, and a shard may have the name of a copy for another project."""
        import tokmap.ray
        facts = {"number of documents": 1}
        others = ["web-20260101.csv.gz", "web-2026.npy", "web-00000.megatron.bin", "web-00000.megatron.tmx"]
        for also, sealed, refused in ((["olmo", "megatron"], False, False), (["olmo", "megatron"], True, True)):
            folder = new_folder()
            for name in [*others, "web-00000.npy", "web-00000.bin", "web-00001.megatron.bin"]:
                with open(os.path.join(folder, name), "wb"):
                    pass
            for force in (False, True):
                names = tokmap.ray._Set(os.path.join(folder, "web"), also, sealed)
                wanted = "web-00000.megatron.tmx: this is the index of a shard" if refused else "already exists"
                if force and not refused:
                    names.begin(facts, force, False)
                    names._clear()
                    self.assertEqual(sorted(os.listdir(folder)), sorted([*others, "web.work"]))
                    continue
                with self.assertRaisesRegex(class_of("ERROR_EXISTS"), wanted):
                    names.begin(facts, force, False)
                self.assertEqual(len(os.listdir(folder)), len(others) + 3)


if __name__ == "__main__":
    unittest.main()
