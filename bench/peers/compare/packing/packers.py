# SPDX-License-Identifier: MIT
"""The packers of the table `pack`: what people write around each tokenizer, with its documented fast way.

All write the ids of one document after the other, each followed by the end-of-document token if there is one, and sync
the file. Those that have a format of their own write that format; the others write OUTPUT.bin, and the number of ids
of each document to OUTPUT.lengths (64-bit), which costs nothing beside it and serves the comparison.

load() does the imports and reads the vocabulary, pack() the work.
"""
import importlib.metadata
import json
import multiprocessing
import os
import sys

from packing.inputs import texts
from packing.vocabularies import Unsuitable, ranks_of_file, ranks_of_json

__all__ = ["PACKERS", "Unsuitable"]


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def sync(*paths):
    for path in paths:
        with open(path, "rb+") as file:
            os.fsync(file.fileno())


class Writer:
    """A flat file of ids, and the lengths of its documents."""

    def __init__(self, request):
        import numpy
        self.numpy, self.type, self.eod = numpy, f"<u{request['width']}", request["eod"]
        self.path, self.lengths = request["output"] + ".bin", []
        self.file = open(self.path, "wb", buffering=1 << 20)

    def add(self, documents):
        """documents: lists or arrays of ids."""
        for ids in documents:
            self.file.write(self.numpy.asarray(ids, self.type).tobytes())
            if self.eod is not None:
                self.file.write(self.eod.to_bytes(int(self.type[2]), "little"))
            self.lengths.append(len(ids) + (self.eod is not None))

    def close(self):
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.numpy.asarray(self.lengths, "<i8").tofile(self.path[:-4] + ".lengths")


class Gigatoken:
    """encode_files() reads the JSONL file in its own threads; NumPy inserts the end of each document."""
    PACKAGES = ["numpy", "gigatoken"]
    LABEL = "gigatoken and a NumPy writer"

    def load(self, request):
        import awkward
        import gigatoken
        import numpy
        self.numpy, self.awkward, self.gigatoken = numpy, awkward, gigatoken
        if request["ranks"]:
            schemes = {"cl100k_base": "gpt4", "o200k_base": "o200k"}
            try:
                self.tokenizer = gigatoken.Tokenizer.from_tiktoken(request["ranks"],
                                                                   schemes.get(request["pattern"], "gpt2"))
            except (ValueError, RuntimeError):  # its reader of rank files refuses gaps such as that of p50k_base
                self.tokenizer = gigatoken.Tokenizer(request["json"])
        else:
            self.tokenizer = gigatoken.Tokenizer(request["json"])

    def pack(self, request):
        numpy = self.numpy
        encoded = self.tokenizer.encode_files(self.gigatoken.JsonlFileSource(request["inputs"], request["field"]))
        lengths = self.awkward.to_numpy(self.awkward.num(encoded)).astype("<i8")
        ids = self.awkward.to_numpy(self.awkward.flatten(encoded))
        if request["eod"] is None:
            ids = ids.astype(f"<u{request['width']}")
        else:
            lengths += 1
            ends = numpy.cumsum(lengths)
            whole = numpy.full(int(ends[-1]) if len(ends) else 0, request["eod"], f"<u{request['width']}")
            place = numpy.ones(len(whole), bool)
            place[ends - 1] = False
            whole[place] = ids
            ids = whole
        with open(request["output"] + ".bin", "wb") as file:
            ids.tofile(file)
            file.flush()
            os.fsync(file.fileno())
        lengths.tofile(request["output"] + ".lengths")

    def about(self):
        return f"gigatoken {version('gigatoken')}, encode_files(), all processors; NumPy adds the ends of documents"


_encoding = _field = None  # in the processes of a pool, which are forked and so have them


def _encode_line(line):
    import numpy
    return numpy.asarray(_encoding.encode_ordinary(json.loads(line)[_field]), "<u4")


class Tiktoken:
    """nanoGPT's way: a pool of processes, encode_ordinary() for each document, one writer."""
    PACKAGES = ["numpy", "tiktoken"]
    LABEL = "tiktoken, multiprocessing"

    def load(self, request):
        import tiktoken
        global _encoding, _field
        if request["ranks"]:
            ranks, pattern = ranks_of_file(request["ranks"]), official_pattern(request["pattern"])
        else:
            with open(request["json"], encoding="utf-8") as file:
                ranks, pattern = ranks_of_json(file.read())
        _encoding = tiktoken.Encoding("pack", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        _field = request["field"]

    def pack(self, request):
        writer = Writer(request)
        with multiprocessing.get_context("fork").Pool(request["workers"]) as pool:
            for path in request["inputs"]:
                with open(path, "rb") as lines:
                    writer.add(pool.imap(_encode_line, lines, chunksize=32))
        writer.close()

    def about(self):
        return (f"tiktoken {version('tiktoken')}, encode_ordinary() in a process for each processor (nanoGPT's way), "
                f"Pool.imap in chunks of 32 documents")


def official_pattern(name):
    """The split pattern as tiktoken defines it, without loading ranks from the network."""
    from tiktoken_ext import openai_public
    kept = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = lambda *unused, **also: {}
    try:
        return getattr(openai_public, "r50k_base" if name == "gpt2" else name)()["pat_str"]
    finally:
        openai_public.load_tiktoken_bpe = kept


def plain_tokenizer(path):
    """Hugging Face's tokenizer, for which text is ordinary text."""
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class Tokenizers:
    """encode_batch_fast() on 1000 documents, with the package's own threads."""
    PACKAGES = ["numpy", "tokenizers"]
    LABEL = "Hugging Face tokenizers"

    def load(self, request):
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        self.tokenizer = plain_tokenizer(request["json"])

    def pack(self, request):
        writer, batch = Writer(request), []
        for path in request["inputs"]:
            for text in texts(path, request["field"]):
                batch.append(text)
                if len(batch) == 1000:
                    self.flush(writer, batch)
        self.flush(writer, batch)
        writer.close()

    def flush(self, writer, batch):
        writer.add(one.ids for one in self.tokenizer.encode_batch_fast(batch, add_special_tokens=False))
        batch.clear()

    def about(self):
        return (f"tokenizers {version('tokenizers')}, encode_batch_fast() on 1000 documents, its own threads, "
                f"encode_special_tokens")


_megatron = None  # in the processes of a pool


def _megatron_open(path):
    global _megatron
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _megatron = plain_tokenizer(path)


def _megatron_encode(request):
    line, field, eod = request
    ids = _megatron.encode(json.loads(line)[field], add_special_tokens=False).ids
    if ids and eod is not None:
        ids.append(eod)
    return ids


class Megatron:
    """The loop of tools/preprocess_data.py, which the wheel of megatron-core lacks: a pool of processes that parse and
    encode lines in chunks of 32, and one that writes with the wheel's IndexedDatasetBuilder."""
    PACKAGES = ["numpy", "torch", "tokenizers", "megatron-core"]
    LABEL = "Megatron's IndexedDatasetBuilder, HF tokenizers"

    def load(self, request):
        from megatron.core.datasets import indexed_dataset
        self.indexed = indexed_dataset
        self.pool = multiprocessing.get_context("fork").Pool(request["workers"], _megatron_open, (request["json"],))

    def pack(self, request):
        import numpy
        out = request["output"]
        builder = self.indexed.IndexedDatasetBuilder(out + ".bin",
                                                     dtype={2: numpy.uint16, 4: numpy.int32}[request["width"]])
        for path in request["inputs"]:
            with open(path, encoding="utf-8") as lines:
                work = ((line, request["field"], request["eod"]) for line in lines)
                for ids in self.pool.imap(_megatron_encode, work, 32):
                    builder.add_document(ids, [len(ids)] if ids else [])
        builder.finalize(out + ".idx")
        self.pool.close()
        self.pool.join()
        sync(out + ".bin", out + ".idx")

    def about(self):
        return (f"megatron-core {version('megatron-core')}, whose wheel has no preprocess_data: its "
                f"IndexedDatasetBuilder in the same loop, with tokenizers {version('tokenizers')} in a process for "
                f"each processor")


def end_text(request):
    """The text of the token at the end of a document, or None."""
    import tokenizers
    return None if request["eod"] is None else tokenizers.Tokenizer.from_file(request["json"]).id_to_token(
        request["eod"])


def datatrove_reader(request, **more):
    """datatrove's reader of the input files."""
    from datatrove.pipeline.readers import JsonlReader
    paths = request["output"] + ".paths"
    with open(paths, "w", encoding="utf-8") as file:
        file.writelines(os.path.basename(one) + "\n" for one in request["inputs"])
    return JsonlReader(os.path.dirname(request["inputs"][0]), paths_file=paths, text_key=request["field"], **more)


class Datatrove:
    """A reader and a DocumentTokenizer, one task for each processor, each with an input file of its own."""
    PACKAGES = ["numpy", "tokenizers", "datatrove", "orjson"]
    LABEL = "datatrove DocumentTokenizer"

    def load(self, request):
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if len(request["inputs"]) == 1 else "false"
        from datatrove.executor import LocalPipelineExecutor
        from datatrove.pipeline.tokens import DocumentTokenizer
        text, reader = end_text(request), datatrove_reader(request, id_key=request["field"])
        tasks = len(request["inputs"])
        self.executor = LocalPipelineExecutor(
            [reader, DocumentTokenizer(request["output"], request["json"], eos_token=text, shuffle_documents=False,
                                       batch_size=1000)], tasks=tasks, workers=tasks,
            logging_dir=request["output"] + ".logs")

    def pack(self, request):
        self.executor.run()
        folder = request["output"]
        sync(*(os.path.join(folder, name) for name in os.listdir(folder)))

    def about(self):
        return (f"datatrove {version('datatrove')}, DocumentTokenizer(shuffle_documents=False, batch_size=1000), one "
                f"task and one input file for each processor, forkserver")


PACKERS = {"gigatoken": Gigatoken(), "tiktoken": Tiktoken(), "tokenizers": Tokenizers(), "megatron": Megatron(),
           "datatrove": Datatrove()}

if __name__ == "__main__":
    sys.exit("run.py starts these")
