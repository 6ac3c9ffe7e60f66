#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""foreign_reference.py TOKMAP FOLDER [SEED]: token files that other projects' own writers wrote, as tokmap reads them,
and tokmap's files as other projects' own readers read them.

The writers and readers are those of megatron-core, datatrove, OLMo-core, and NumPy. llm.c and nanoGPT are not packages:
their files are written here by the rules of their scripts (dev/data/data_common.py, data/openwebtext/prepare.py). The
same documents, packed by `tokmap pack`, are the standard: ids, documents, counts, the rows of a run, and after `tokmap
index` the content id must be the same.

Prints a TAP line for each project; one whose package is missing is skipped with the reason.
"""
import gzip
import importlib
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import traceback
import warnings

import numpy
import tokmap

EOD = 256  # of the tokenizer `bytes`
TOKMAP, FOLDER, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1


class Missing(Exception):
    """A package that a test needs is not installed."""


def package(name):
    """Imports a module, or says why it cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except Exception as problem:  # a package that is there, but lacks another, raises many kinds
        raise Missing(f"{name} is not usable: {str(problem).splitlines()[0]}") from None


def make_documents(rng, count=400):
    alphabet = "abcdefghijklmnop qrstuvwxyz\n0123456789éß漢😀"
    return ["".join(rng.choices(alphabet, k=rng.choice([0, 1, 2, 30, 300, 700]))) for _ in range(count)]


def command(*arguments, status=0):
    done = subprocess.run([TOKMAP, *arguments], capture_output=True, text=True, cwd=FOLDER)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def rows(name):
    """Every field of all rows of a run over a dataset, as lists."""
    path = os.path.join(FOLDER, "in.run")
    with open(path, "w") as file:
        file.write(f"seq_len 96\nbatch 8\nseed 3\nsteps 60\nsource web {name}\n")
    fields = ["inputs", "targets", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
    with tokmap.Run(path) as run, run.loader(rows=8, fields=fields, dtype="int32", framework="numpy") as loader:
        return [[numpy.asarray(batch[field]).tolist() for field in fields[:5]]
                + [numpy.asarray(batch["cu_seqlens"])[:batch.documents + 1].tolist()] for batch in loader]


class Standard:
    """The documents, packed by tokmap."""

    def __init__(self, texts, name, options, document):
        self.path = os.path.join(FOLDER, name)
        with open(self.path + ".jsonl", "w") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
        command("pack", "-q", *options, "-o", self.path, self.path + ".jsonl")
        self.documents = [document(list(text.encode())) for text in texts]
        self.flat = [token for tokens in self.documents for token in tokens]
        self.ends = numpy.cumsum([len(tokens) for tokens in self.documents])
        self.rows = rows(self.path)
        self.content = tokmap.Dataset(self.path).info.content

    def compare(self, name, kind, documents=None, content=True, masked=False):
        """Compares a dataset of other files with the standard, without an index, and then with one. documents: that
        the format knows; None: all; [] if it has no index of them."""
        documents = self.documents if documents is None else documents
        self.read(name, kind, documents, "sampled", masked)
        command("verify", name)
        said = command("index", name, "--json")
        assert f'"tokens": {len(self.flat)}' in said, said
        found = self.read(name, kind, self.documents, "full", masked)
        assert found == self.content or not content, (name, found, self.content)
        command("verify", name)

    def read(self, name, kind, documents, identity, masked):
        with tokmap.Dataset(name) as dataset:
            info = dataset.info
            assert info.tokens == len(self.flat) and info.identity == identity, info
            assert info.kind == kind or identity == "full", info
            assert info.masked == masked, info
            assert dataset.tokens(0, info.tokens).tolist() == self.flat, name
            if documents:
                assert [tokens.tolist() for tokens in dataset] == documents, name
                assert info.documents == len(documents)
            content = info.content
        listed = json.loads(command("info", name, "--json"))
        assert listed["tokens"] == len(self.flat), listed
        shown = command("show", name, "--ids", "--tokens", "1000..1040")
        shown = shown.replace("(", " ").replace(")", " ")  # around tokens that do not count
        assert [int(word) for word in shown.split()] == self.flat[1000:1040], shown
        if not masked:
            assert rows(name) == self.rows, name
        return content


def path_of(name):
    return os.path.join(FOLDER, name)


# ---- other projects' files, read by tokmap ----

def test_megatron(standard, bos_standard):
    indexed = package("megatron.core.datasets.indexed_dataset")
    torch = package("torch")
    for kind in (numpy.uint16, numpy.int16, numpy.int32, numpy.int64):
        prefix = path_of(f"megatron_{kind.__name__}")
        builder = indexed.IndexedDatasetBuilder(prefix + ".bin", dtype=kind)
        for tokens in standard.documents:
            builder.add_item(torch.tensor(tokens))
            builder.end_document()
        builder.finalize(prefix + ".idx")
        theirs = indexed.IndexedDataset(prefix)
        assert numpy.concatenate([theirs[i] for i in range(len(theirs))]).tolist() == standard.flat
        standard.compare(prefix, "megatron", content=kind in (numpy.uint16, numpy.int16))
    # Several sequences in a document.
    prefix = path_of("megatron_parts")
    builder = indexed.IndexedDatasetBuilder(prefix + ".bin", dtype=numpy.uint16)
    for tokens in standard.documents:
        for at in range(0, len(tokens), 100):
            builder.add_item(torch.tensor(tokens[at:at + 100]))
        builder.end_document()
    builder.finalize(prefix + ".idx")
    standard.compare(prefix, "megatron")
    # What its own merger makes of two.
    builder = indexed.IndexedDatasetBuilder(path_of("merged.bin"), dtype=numpy.int32)
    for _ in range(2):
        builder.add_index(path_of("megatron_int32"))
    builder.finalize(path_of("merged.idx"))
    with tokmap.Dataset(path_of("merged")) as dataset:
        assert [tokens.tolist() for tokens in dataset] == 2 * standard.documents


def test_damaged_megatron(standard, bos_standard):
    """What Megatron reads as silent garbage is an error that names the file and the byte."""
    indexed = package("megatron.core.datasets.indexed_dataset")
    torch = package("torch")
    prefix = path_of("damaged")
    builder = indexed.IndexedDatasetBuilder(prefix + ".bin", dtype=numpy.int32)
    for tokens in standard.documents:
        builder.add_item(torch.tensor(tokens))
        builder.end_document()
    builder.finalize(prefix + ".idx")
    with open(prefix + ".idx", "rb") as file:
        good = file.read()
    with open(prefix + ".bin", "rb") as file:
        tokens = file.read()
    count = len(standard.documents)
    lengths, pointers, starts = 34, 34 + 4 * count, 34 + 12 * count

    def put(at, form, value):
        made = bytearray(good)
        struct.pack_into(form, made, at, value)
        return bytes(made)

    def write(index, data=tokens):
        with open(prefix + ".idx", "wb") as file:
            file.write(index)
        with open(prefix + ".bin", "wb") as file:
            file.write(data)

    length = len(standard.documents[7])
    end = int(standard.ends[6])
    cases = [
        # what is damaged, the files, where the error is
        ("the .bin is shorter", (good, tokens[:-4000]), ".bin", len(tokens) - 4000),
        ("the .bin is longer", (good, tokens + b"\0" * 8), ".bin", len(tokens)),
        ("the .bin is empty", (good, b""), ".bin", 0),
        ("the index is cut", (good[:-8], tokens), ".idx", 18),
        ("the counts are huge", (put(18, "<Q", 2 ** 61), tokens), ".idx", 18),
        ("a length is longer", (put(lengths + 4 * 7, "<i", length + 1), tokens), ".idx", pointers + 8 * 8),
        ("a length is negative", (put(lengths + 4 * 7, "<i", -1), tokens), ".idx", lengths + 4 * 7),
        ("the last length is longer", (put(lengths + 4 * (count - 1), "<i", 2 ** 30), tokens), ".bin", None),
        ("a pointer wrapped", (put(pointers + 8 * 7, "<q", 4 * end - 2 ** 32), tokens), ".idx", pointers + 8 * 7),
        ("a pointer is odd", (put(pointers + 8 * 7, "<q", 4 * end + 1), tokens), ".idx", pointers + 8 * 7),
        ("a document is out of range", (put(starts + 8 * 9, "<q", count + 5), tokens), ".idx", starts + 8 * 9),
        ("a document is negative", (put(starts + 8 * 9, "<q", -1), tokens), ".idx", starts + 8 * 9),
        ("documents are out of order", (put(starts + 8 * 9, "<q", 4), tokens), ".idx", starts + 8 * 9),
        ("the documents end early", (put(starts + 8 * count, "<q", count - 1), tokens), ".idx", starts + 8 * count),
        ("the first document is not 0", (put(starts, "<q", 1), tokens), ".idx", starts),
        ("the type is unknown", (put(17, "<B", 9), tokens), ".idx", 17),
        ("the type is another", (put(17, "<B", 8), tokens), None, None),
        ("the version is another", (put(9, "<Q", 2), tokens), ".idx", 9),
    ]
    silent = 0
    for what, files, ending, byte in cases:
        write(*files)
        try:
            theirs = indexed.IndexedDataset(prefix)
            read = [theirs[i] for i in range(len(theirs))]
            silent += [part.tolist() for part in read] != standard.documents
        except Exception:
            pass
        for call in (tokmap.Dataset, tokmap.index, lambda name: tokmap.Dataset(name).verify()):
            try:
                call(prefix)
            except tokmap.TokmapError as problem:
                assert ending is None or problem.path == prefix + ending, (what, str(problem))
                assert byte is None or problem.offset == byte, (what, byte, str(problem))
            else:
                raise AssertionError(f"{what}: there is no error")
        assert not os.path.exists(prefix + ".tmx") and not os.path.exists(prefix + ".tmx.partial"), what
    assert silent >= 3, f"Megatron read only {silent} of these as garbage"
    print(f"# Megatron reads {silent} of {len(cases)} damaged files without an error, as other tokens")


def test_datatrove(standard, bos_standard):
    TokenizedFile = package("datatrove.pipeline.tokens.tokenizer").TokenizedFile
    for size in (2, 4):
        name = f"datatrove{size}.ds"
        file = TokenizedFile(FOLDER, name, token_size=size, tokenizer_name_or_path="bytes", save_final_metadata=True)
        for tokens in standard.documents:
            file.write(tokens, None)
        file.close()
        standard.compare("datatrove:" + path_of(name), "datatrove", content=size == 2)
    # A loss mask: targets that do not count are those with 0.
    file = TokenizedFile(FOLDER, "loss.ds", save_loss_metadata=True, tokenizer_name_or_path="bytes",
                         save_final_metadata=True)
    rng = random.Random(SEED)
    loss = [rng.random() < 0.7 for _ in standard.flat]
    at = 0
    for tokens in standard.documents:
        file.write(tokens, numpy.array(loss[at:at + len(tokens)], dtype=bool))
        at += len(tokens)
    file.close()
    standard.compare("datatrove:" + path_of("loss.ds"), "datatrove", content=False, masked=True)
    # The id is that of a packed copy with the same mask.
    for ending in (".bin", ".tmx"):
        shutil.copy(standard.path + ending, path_of("packed_loss" + ending))
    command("index", "-q", "--mask", path_of("loss.ds.loss"), path_of("packed_loss"))
    packed, theirs = tokmap.Dataset(path_of("packed_loss")), tokmap.Dataset("datatrove:" + path_of("loss.ds"))
    assert packed.info.content == theirs.info.content != standard.content
    assert rows(path_of("packed_loss")) == rows("datatrove:" + path_of("loss.ds")) != standard.rows
    with open(path_of("loss.run"), "w") as run:
        run.write(f"seq_len 96\nbatch 8\nsteps 20\norder sequential\nsource web datatrove:{path_of('loss.ds')}\n")
    with tokmap.Run(path_of("loss.run")) as run, run.loader(
            rows=8, fields=["targets", "loss_mask"], dtype="int32", framework="numpy") as loader:
        for batch in loader:
            for row in range(batch.count):
                first = batch.places[row].first_token
                wanted = [int(value) for value in loss[first + 1:first + 97]]
                # The first token of a document is never a target that counts.
                starts = {int(end) for end in standard.ends}
                wanted = [0 if first + 1 + i in starts else value for i, value in enumerate(wanted)]
                assert numpy.asarray(batch["loss_mask"])[row].astype(int).tolist() == wanted, (batch.step, row)
    # A shuffled copy, as the pipeline writes it.
    source = TokenizedFile(FOLDER, "source.ds", tokenizer_name_or_path="bytes", save_final_metadata=True)
    for tokens in standard.documents:
        source.write(tokens, None)
    source.close()
    order = list(range(len(standard.documents)))
    rng.shuffle(order)
    source.copy("copy", order)
    with tokmap.Dataset("datatrove:" + path_of("copy_00000_00000_shuffled.ds")) as dataset:
        assert [tokens.tolist() for tokens in dataset] == [standard.documents[n] for n in order]


def test_numpy(standard, bos_standard):
    for kind in ("<u2", "<i2", "<i4", "<u4", "<i8"):
        for version in ((1, 0), (2, 0), (3, 0)):
            name = path_of(f"numpy_{kind[1:]}_{version[0]}.npy")
            with open(name, "wb") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # version 3 is read by new versions of NumPy only
                numpy.lib.format.write_array(file, numpy.array(standard.flat, dtype=kind), version=version)
            if version == (1, 0):
                standard.compare(f"{name},eod={EOD}", "npy", documents=[], content=kind[2] == "2")
            else:
                assert tokmap.Dataset(name).tokens(0, len(standard.flat)).tolist() == standard.flat
    for wrong in (numpy.array(standard.flat, dtype=">u2"), numpy.array(standard.flat, dtype="<f4"),
                  numpy.array(standard.flat[:100], dtype="<u2").reshape(10, 10)):
        numpy.save(path_of("wrong.npy"), wrong)
        try:
            tokmap.Dataset(path_of("wrong.npy"))
        except NotImplementedError as problem:
            assert problem.path == path_of("wrong.npy")
        else:
            raise AssertionError(f"{wrong.dtype} {wrong.shape} was opened")


def write_datafile(name, tokens, magic, version, kind):
    """A file of llm.c: 256 int32 (magic, version, number of tokens, zeros), then the tokens."""
    head = numpy.zeros(256, dtype=numpy.int32)
    head[:3] = magic, version, len(tokens)
    with open(name, "wb") as file:
        file.write(head.tobytes())
        file.write(numpy.array(tokens, dtype=kind).tobytes())


def test_llmc(standard, bos_standard):
    # The documents of these files begin with their end-of-text token. bos= says that it is 256 here.
    write_datafile(path_of("gpt2.bin"), bos_standard.flat, 20240520, 1, numpy.uint16)
    bos_standard.compare(f"llmc:{path_of('gpt2.bin')},bos={EOD}", "llmc", documents=[])
    write_datafile(path_of("llama3.bin"), bos_standard.flat, 20240801, 7, numpy.uint32)
    bos_standard.compare(f"{path_of('llama3.bin')},bos={EOD}", "llmc", documents=[], content=False)
    # Shards of a fixed size cut documents; the string of tokens is the same.
    for i, at in enumerate(range(0, len(bos_standard.flat), 30000)):
        write_datafile(path_of(f"part_{i:06d}.bin"), bos_standard.flat[at:at + 30000], 20240520, 1, numpy.uint16)
    with tokmap.Dataset(f"{path_of('part_*.bin')}") as dataset:
        assert dataset.tokens(0, dataset.info.tokens).tolist() == bos_standard.flat


def write_nanogpt(name, documents):
    """data/openwebtext/prepare.py: the ids and the end-of-text token of each document, in a memmap of uint16."""
    total = sum(len(tokens) for tokens in documents)
    array, at = numpy.memmap(name, dtype=numpy.uint16, mode="w+", shape=(total,)), 0
    for tokens in documents:
        array[at:at + len(tokens)] = tokens
        at += len(tokens)
    array.flush()


def test_nanogpt(standard, bos_standard):
    write_nanogpt(path_of("train.bin"), standard.documents)
    standard.compare(f"raw:{path_of('train.bin')},width=2,eod={EOD}", "raw", documents=[])
    try:  # without a magic, a file is never taken for tokens
        tokmap.Dataset(path_of("unnamed.bin"))
    except tokmap.TokmapError:
        pass
    else:
        raise AssertionError("a file without a magic was opened")


def olmo_windows(names, kind):
    """All windows of files, as OLMo-core's reader reads them."""
    module = package("olmo_core.data.numpy_dataset")
    dataset = module.NumpyFSLDataset(*names, sequence_length=96, pad_token_id=EOD, eos_token_id=EOD, vocab_size=257,
                                     dtype=kind)
    dataset.prepare()
    return [dataset[i]["input_ids"].tolist() for i in range(len(dataset))]


def test_olmo(standard, bos_standard):
    windows = [standard.flat[at:at + 96] for at in range(0, len(standard.flat) - 95, 96)]
    for kind in (numpy.uint16, numpy.uint32):
        name = path_of(f"olmo_{kind.__name__}.npy")
        array = numpy.memmap(name, dtype=kind, mode="w+", shape=(len(standard.flat),))
        array[:] = standard.flat
        array.flush()
        with gzip.open(name[:-4] + ".csv.gz", "wt") as file:
            start = 0
            for number, end in enumerate(standard.ends):
                file.write(f"{start},{end},id-{number},source,{number}\n")
                start = end
        assert olmo_windows([name], kind) == windows  # their reader takes it for the same tokens
        standard.compare(f"olmo:{name},width={numpy.dtype(kind).itemsize},eod={EOD}", "olmo", documents=[],
                         content=kind is numpy.uint16)
    # What OLMo-core's own function finds in our file and in its own is the same.
    data = package("olmo_core.data.utils")
    found = list(data.iter_document_indices(path_of("olmo_uint16.npy"), eos_token_id=EOD, dtype=numpy.uint16,
                                            local_cache=None))
    assert [end for _, end in found] == [int(end) for end in standard.ends]


# ---- tokmap's files, read by others ----

def test_ours_by_numpy_and_nanogpt(standard, bos_standard):
    data = numpy.memmap(standard.path + ".bin", dtype=numpy.uint16, mode="r")
    assert data.tolist() == standard.flat
    write_nanogpt(path_of("theirs.bin"), standard.documents)
    with open(path_of("theirs.bin"), "rb") as theirs, open(standard.path + ".bin", "rb") as ours:
        assert theirs.read() == ours.read()  # so train.py's get_batch() finds the same crops
    try:
        torch = package("torch")
    except Missing as reason:
        print(f"# the crops of train.py are not compared: {reason}")
        return
    torch.manual_seed(SEED)
    for at in torch.randint(len(data) - 96, (32,)).tolist():
        x = torch.from_numpy(data[at:at + 96].astype(numpy.int64))
        y = torch.from_numpy(data[at + 1:at + 97].astype(numpy.int64))
        assert x.tolist() == standard.flat[at:at + 96] and y.tolist() == standard.flat[at + 1:at + 97]


def test_ours_by_olmo(standard, bos_standard):
    windows = [standard.flat[at:at + 96] for at in range(0, len(standard.flat) - 95, 96)]
    assert olmo_windows([standard.path + ".bin"], numpy.uint16) == windows
    data = package("olmo_core.data.utils")
    found = list(data.iter_document_indices(standard.path + ".bin", eos_token_id=EOD, dtype=numpy.uint16,
                                            local_cache=None, use_array_if_local=True))
    assert [int(end) for _, end in found] == [int(end) for end in standard.ends]


def test_ours_by_datatrove(standard, bos_standard):
    package("torch")
    module = package("datatrove.utils.dataset")
    data = module.DatatroveFileDataset(standard.path + ".bin", seq_len=96, token_size=2, return_positions=True,
                                       positions_from_eos_token_id=EOD)
    got = [data[i]["input_ids"].tolist() for i in range(len(data))]
    assert got == [standard.flat[at:at + 97] for at in range(0, len(standard.flat) - 96, 97)]


# ---- what `tokmap convert` writes, read by other projects' own readers ----

def convert(form, name, source, *options):
    command("convert", "-q", "--to", form, "-o", path_of(name), *options, source)


def test_converted_megatron(standard, bos_standard):
    indexed = package("megatron.core.datasets.indexed_dataset")
    for width, kind in (("2", numpy.uint16), ("4", numpy.int32)):
        convert("megatron", f"to_megatron{width}", standard.path, "--width", width)
        theirs = indexed.IndexedDataset(path_of(f"to_megatron{width}"))
        assert [theirs[i].tolist() for i in range(len(theirs))] == standard.documents
        assert theirs.document_indices.tolist() == list(range(len(standard.documents) + 1))
        assert theirs[0].dtype == kind
        # Its own writer makes the same bytes of the same documents.
        torch = package("torch")
        builder = indexed.IndexedDatasetBuilder(path_of(f"builder{width}.bin"), dtype=kind)
        for tokens in standard.documents:
            builder.add_item(torch.tensor(tokens))
            builder.end_document()
        builder.finalize(path_of(f"builder{width}.idx"))
        for ending in ("bin", "idx"):
            with open(path_of(f"builder{width}.{ending}"), "rb") as one, \
                    open(path_of(f"to_megatron{width}.{ending}"), "rb") as two:
                assert one.read() == two.read(), (width, ending)


def datatrove_compare(path, standard):
    """Compares a file with the standard as datatrove's own reader reads it."""
    package("torch")
    data = package("datatrove.utils.dataset").DatatroveFileDataset(path, seq_len=96, token_size=2,
                                                                   return_positions=True)
    ends = {int(end) for end in standard.ends}
    assert len(data) == len(standard.flat) // 97
    for i in range(len(data)):
        item, first = data[i], i * 97
        assert item["input_ids"].tolist() == standard.flat[first:first + 97]
        if "positions" in item:
            starts = [j for j, at in enumerate(item["positions"].tolist()) if at == 0 and j]
            assert starts == [j for j in range(1, 97) if first + j in ends], i


def olmo_compare(path, standard):
    """Compares a file and its list of documents with the standard as OLMo-core reads them."""
    data = package("olmo_core.data.utils")
    found = list(data.iter_document_indices(path, dtype=numpy.uint16))
    starts = [0] + [int(end) for end in standard.ends[:-1]]
    assert [(int(a), int(b)) for a, b in found] == list(zip(starts, (int(end) for end in standard.ends)))
    windows = [standard.flat[at:at + 96] for at in range(0, len(standard.flat) - 95, 96)]
    assert olmo_windows([path], numpy.uint16) == windows


def llmc_compare(path, standard):
    """Compares a file with the standard as dataloader.h and train_gpt.py read it."""
    with open(path, "rb") as file:
        header = numpy.frombuffer(file.read(1024), dtype=numpy.int32)
        tokens = numpy.frombuffer(file.read(), dtype=numpy.uint16)
    assert header[:3].tolist() == [20240520, 1, len(standard.flat)] and not header[3:].any()
    assert tokens.tolist() == standard.flat


def test_converted_datatrove(standard, bos_standard):
    TokenizedFile = package("datatrove.pipeline.tokens.tokenizer").TokenizedFile
    convert("datatrove", "to_datatrove", standard.path)
    file = TokenizedFile(FOLDER, "by_datatrove.ds", tokenizer_name_or_path="bytes", save_final_metadata=True)
    for tokens in standard.documents:
        file.write(tokens, None)
    file.close()
    for ending in ("ds", "ds.index", "ds.metadata"):
        with open(path_of("by_datatrove." + ending), "rb") as one, open(path_of("to_datatrove." + ending), "rb") as two:
            assert one.read() == two.read(), ending
    datatrove_compare(path_of("to_datatrove.ds"), standard)


def test_converted_olmo(standard, bos_standard):
    convert("olmo", "to_olmo", standard.path)
    olmo_compare(path_of("to_olmo.npy"), standard)


def test_converted_nanogpt_and_llmc(standard, bos_standard):
    convert("nanogpt", "to_nanogpt", standard.path)
    data = numpy.memmap(path_of("to_nanogpt.bin"), dtype=numpy.uint16, mode="r")  # train.py
    assert data.tolist() == standard.flat
    convert("llmc", "to_llmc", bos_standard.path)
    llmc_compare(path_of("to_llmc.bin"), bos_standard)


# ---- what `tokmap pack --seal --also` writes beside a sealed shard, read by other projects' own readers ----

def sealed(standard, form, *options):
    """Packs the standard's documents, sealed, and also in a format. Returns the prefix."""
    path = f"{standard.path}_sealed_{form}"
    command("pack", "-q", "--seal", "--also", form, *options, "-o", path, standard.path + ".jsonl")
    assert not os.path.exists(path + ".bin")
    with tokmap.Dataset(path) as dataset:
        assert dataset.info.content == standard.content
    return path


def test_sealed_megatron(standard, bos_standard):
    indexed = package("megatron.core.datasets.indexed_dataset")
    theirs = indexed.IndexedDataset(sealed(standard, "megatron", "--eod") + ".megatron")
    assert [theirs[i].tolist() for i in range(len(theirs))] == standard.documents
    assert theirs.document_indices.tolist() == list(range(len(standard.documents) + 1))


def test_sealed_datatrove(standard, bos_standard):
    datatrove_compare(sealed(standard, "datatrove", "--eod") + ".ds", standard)


def test_sealed_olmo(standard, bos_standard):
    olmo_compare(sealed(standard, "olmo", "--eod") + ".npy", standard)


def test_sealed_nanogpt_and_llmc(standard, bos_standard):
    data = numpy.memmap(sealed(standard, "nanogpt", "--eod") + ".nanogpt.bin", dtype=numpy.uint16, mode="r")
    assert data.tolist() == standard.flat
    llmc_compare(sealed(bos_standard, "llmc", "--no-eod", f"--bos={EOD}") + ".llmc.bin", bos_standard)


TESTS = [test_sealed_megatron, test_sealed_datatrove, test_sealed_olmo, test_sealed_nanogpt_and_llmc,
         test_converted_megatron, test_converted_datatrove, test_converted_olmo, test_converted_nanogpt_and_llmc,
         test_megatron, test_damaged_megatron, test_datatrove, test_numpy, test_llmc, test_nanogpt, test_olmo,
         test_ours_by_numpy_and_nanogpt, test_ours_by_olmo, test_ours_by_datatrove]


def main():
    texts = make_documents(random.Random(SEED))
    standard = Standard(texts, "standard", ["--eod"], lambda ids: ids + [EOD])
    bos_standard = Standard(texts, "bos_standard", ["--no-eod", f"--bos={EOD}"], lambda ids: [EOD] + ids)
    failed = 0
    print(f"1..{len(TESTS)}", flush=True)
    for number, test in enumerate(TESTS, 1):
        name = test.__name__[5:].replace("_", " ")
        noise = io.StringIO()
        try:
            sys.stderr, stderr = noise, sys.stderr
            try:
                test(standard, bos_standard)
            finally:
                sys.stderr = stderr
            print(f"ok {number} - {name}", flush=True)
        except Missing as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception:
            failed += 1
            print(noise.getvalue())
            traceback.print_exc(file=sys.stdout)
            print(f"not ok {number} - {name}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
