# SPDX-License-Identifier: MIT
"""datatrove's pipelines of the table `prepare`: duplicates out, tokens in, documents in a random order.

Each is the stages of datatrove's own examples, run one after the other by its LocalPipelineExecutor with as many tasks
and processes as there are input files:

    exact    ExactDedupSignature; ExactFindDedups; JsonlReader, ExactDedupFilter, DocumentTokenizer;
             DocumentTokenizerMerger
    minhash  MinhashDedupSignature; MinhashDedupBuckets; MinhashDedupCluster; JsonlReader, MinhashDedupFilter,
             DocumentTokenizer; DocumentTokenizerMerger

DocumentTokenizer shuffles inside its file, and DocumentTokenizerMerger, which is one task, draws the documents of all
files in a random order. The documents that a filter lets through go to the tokenizer at once, without a file between
them, which is the fastest way that datatrove has. It has no step that splits by a hash of the text, so nothing is
split.
"""
import glob
import os
import sys

from packing.packers import datatrove_reader, end_text, sync, version

__all__ = ["PIPELINES"]

SEED = 7


def content_of(document) -> str:
    return document.text


class Pipeline:
    """What both have in common: a reader, and the stages after the duplicates are known."""
    PACKAGES = ["numpy", "tokenizers", "datatrove", "orjson", "xxhash<4", "zstandard"]

    def load(self, request):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from datatrove.executor import LocalPipelineExecutor
        self.executor, self.request = LocalPipelineExecutor, request
        self.output, self.work = request["output"], request["output"] + ".stages"
        self.end = end_text(request)
        self.load_dedup()

    def reader(self):
        return datatrove_reader(self.request, compression="infer", id_key="id")

    def stage(self, name, steps, tasks, workers=None):
        """Runs steps in so many tasks. datatrove reports failed tasks by an exception."""
        self.executor(steps, tasks=tasks, workers=min(tasks, workers or self.request["workers"]),
                      logging_dir=f"{self.output}.logs/{name}").run()

    def folder(self, name):
        return os.path.join(self.work, name)

    def pack(self, request):
        from datatrove.pipeline.tokens import DocumentTokenizer, DocumentTokenizerMerger
        tasks = len(request["inputs"])
        self.find_duplicates(tasks)
        self.stage("tokens", [self.reader(), self.filter(),
                              DocumentTokenizer(self.folder("tokens"), request["json"], eos_token=self.end,
                                                batch_size=1000, shuffle_documents=True, seed=SEED)], tasks)
        self.stage("merge", [DocumentTokenizerMerger(self.folder("tokens"), self.output, "merged", shuffle=True,
                                                     seed=SEED, progress=False)], 1)
        sync(*glob.glob(os.path.join(self.output, "*")))


class Exact(Pipeline):
    LABEL = "datatrove, exact"

    def load_dedup(self):
        from datatrove.pipeline.dedup import exact_dedup
        self.dedup, self.config = exact_dedup, exact_dedup.ExactDedupConfig(content_getter=content_of)

    def find_duplicates(self, tasks):
        dedup = self.dedup
        self.stage("signature", [self.reader(), dedup.ExactDedupSignature(self.folder("signatures"), self.config,
                                                                          finder_workers=tasks)], tasks)
        # datatrove's default for lines_to_buffer is 5, which makes a read of every five keys.
        self.stage("find", [dedup.ExactFindDedups(self.folder("signatures"), self.folder("duplicates"), self.config,
                                                  lines_to_buffer=1000)], tasks)

    def filter(self):
        return self.dedup.ExactDedupFilter(self.folder("duplicates"), self.config)

    def about(self):
        return (f"datatrove {version('datatrove')}: ExactDedupSignature, ExactFindDedups (lines_to_buffer=1000), "
                f"ExactDedupFilter, DocumentTokenizer (shuffled), DocumentTokenizerMerger (shuffled, one task); a task "
                f"and a process for each input file; nothing is split, because it has no such step")


class Minhash(Pipeline):
    PACKAGES = [*Pipeline.PACKAGES, "spacy"]
    LABEL = "datatrove, minhash"

    def load_dedup(self):
        from datatrove.pipeline.dedup import minhash
        self.dedup, self.config = minhash, minhash.MinhashConfig()

    def find_duplicates(self, tasks):
        dedup, buckets = self.dedup, self.config.num_buckets
        self.stage("signature", [self.reader(), dedup.MinhashDedupSignature(self.folder("signatures"), self.config)],
                   tasks)
        self.stage("buckets", [dedup.MinhashDedupBuckets(self.folder("signatures"), self.folder("pairs"),
                                                         config=self.config, lines_to_buffer=1000)], buckets)
        self.stage("cluster", [dedup.MinhashDedupCluster(self.folder("pairs"), self.folder("removed"),
                                                         config=self.config, lines_to_buffer=1000)], 1)

    def filter(self):
        return self.dedup.MinhashDedupFilter(self.folder("removed"))

    def about(self):
        return (f"datatrove {version('datatrove')}: MinhashDedupSignature (5 words, 14 buckets of 8, spaCy "
                f"{version('spacy')} for words, its defaults), MinhashDedupBuckets and MinhashDedupCluster "
                f"(lines_to_buffer=1000), MinhashDedupFilter, DocumentTokenizer (shuffled), DocumentTokenizerMerger "
                f"(shuffled, one task); a task and a process for each input file; nothing is split")


PIPELINES = {"datatrove-exact": Exact(), "datatrove-minhash": Minhash()}

if __name__ == "__main__":
    sys.exit("run.py starts these")
