# SPDX-License-Identifier: MIT
"""Compares the documents of a token file with those of the vocabulary's reference.

The reference is the implementation that defines the vocabulary: tiktoken for a rank file, Hugging Face's tokenizers for
a tokenizer.json. In both, text that reads like a special token is ordinary text, and nothing but the end-of-document
token is added. A document differs if any of its ids does, or if a packer left it out.
"""
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import driver  # noqa: E402
from packing import packers  # noqa: E402
from packing.inputs import texts  # noqa: E402
from packing.vocabularies import ranks_of_file, special_texts  # noqa: E402


def _save(out, documents, eod, special):
    """Writes ids, lengths, and whether a document has the text of a special token. Returns how many there are."""
    import numpy
    lengths, marked = [], []
    with open(out + ".ids", "wb") as file:
        for text, ids in documents:
            whole = numpy.asarray(ids, "<u4")
            if eod is not None:
                whole = numpy.append(whole, numpy.uint32(eod))
            file.write(whole.astype("<u4").tobytes())
            lengths.append(len(whole))
            marked.append(any(one in text for one in special))
    numpy.asarray(lengths, "<i8").tofile(out + ".lengths")
    numpy.asarray(marked, bool).tofile(out + ".marked")
    return len(lengths)


def _by_tiktoken(documents, ranks, pattern):
    import tiktoken
    encoding = tiktoken.Encoding("reference", pat_str=packers.official_pattern(pattern),
                                 mergeable_ranks=ranks_of_file(ranks), special_tokens={})
    for text in documents:
        yield text, encoding.encode_ordinary(text)


def _by_tokenizers(documents, path):
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    tokenizer, batch = packers.plain_tokenizer(path), []
    for text in documents:
        batch.append(text)
        if len(batch) == 500:
            yield from zip(batch, (one.ids for one in tokenizer.encode_batch_fast(batch, add_special_tokens=False)))
            batch = []
    yield from zip(batch, (one.ids for one in tokenizer.encode_batch_fast(batch, add_special_tokens=False)))


def do_reference(path, field, limit, out, json, ranks, pattern, eod):
    documents = texts(path, field, limit)
    if ranks:
        name, found = "tiktoken", _by_tiktoken(documents, ranks, pattern)
    else:
        name, found = "tokenizers", _by_tokenizers(documents, json)
    return {"documents": _save(out, found, eod, special_texts(json)), "by": f"{name} {packers.version(name)}"}


def _flat(output, width):
    """(ids, lengths) of a flat file and its lengths."""
    import numpy
    return numpy.fromfile(output + ".bin", f"<u{width}"), numpy.fromfile(output + ".lengths", "<i8")


def _tokmap(output, width):
    """The same of a tokmap dataset, whose index has the documents."""
    import numpy
    import tokmap
    with tokmap.Dataset(output) as dataset:
        lengths = [dataset.document(number).tokens for number in range(len(dataset))]
    return numpy.fromfile(output + ".bin", f"<u{width}"), numpy.asarray(lengths, "<i8")


def _megatron(output, width):
    """The same of Megatron's format, whose documents are runs of sequences. Its type 8 is uint16, 4 is int32."""
    import numpy
    with open(output + ".idx", "rb") as file:
        head = file.read(34)
        if head[:9] != b"MMIDIDX\0\0":
            raise ValueError(f"{output}.idx is not an index of Megatron")
        code, sequences = head[17], int.from_bytes(head[18:26], "little")
        documents = int.from_bytes(head[26:34], "little")
        sizes = numpy.fromfile(file, "<i4", sequences)
        file.seek(8 * sequences, 1)
        ends = numpy.fromfile(file, "<i8", documents)
    total = numpy.concatenate([[0], numpy.cumsum(sizes, dtype="<i8")])
    return numpy.fromfile(output + ".bin", {8: "<u2", 4: "<i4"}[code]), numpy.diff(total[ends])


def _datatrove(output, width):
    """The same of datatrove's files, which follow each other by the numbers of their tasks."""
    import numpy
    names = sorted(name for name in os.listdir(output) if name.endswith(".ds"))
    lengths = []
    for name in names:
        ends = numpy.fromfile(os.path.join(output, name + ".index"), "<u8").astype("<i8")
        lengths.append(numpy.diff(ends, prepend=0))
    ids = [numpy.fromfile(os.path.join(output, name), f"<u{width}") for name in names]
    return numpy.concatenate(ids), numpy.concatenate(lengths)


_READERS = {"flat": _flat, "tokmap": _tokmap, "megatron": _megatron, "datatrove": _datatrove}


def differing(ids, lengths, wanted, wanted_lengths):
    """The numbers of the documents that differ among the first ones that both sides have."""
    import numpy
    count = min(len(lengths), len(wanted_lengths))
    starts = numpy.concatenate([[0], numpy.cumsum(lengths)])
    others = numpy.concatenate([[0], numpy.cumsum(wanted_lengths)])
    same = lengths[:count] == wanted_lengths[:count]
    return [number for number in range(count) if not same[number] or not numpy.array_equal(
        ids[starts[number]:starts[number + 1]], wanted[others[number]:others[number + 1]])]


def do_compare(reference, kind, output, width, eod, documents):
    """documents: how many the packer got. Compares as many as the reference has."""
    import numpy
    ids, lengths = _READERS[kind](output, width)
    wanted, wanted_lengths = numpy.fromfile(reference + ".ids", "<u4"), numpy.fromfile(reference + ".lengths", "<i8")
    marked = numpy.fromfile(reference + ".marked", bool)
    compared = min(documents, len(wanted_lengths))
    wanted_lengths, marked = wanted_lengths[:compared], marked[:compared]
    dropped, numbers = 0, list(range(compared))
    bad = differing(ids, lengths, wanted, wanted_lengths)
    missing = max(0, len(wanted_lengths) - len(lengths))
    empty = wanted_lengths == (eod is not None)
    if len(lengths) != documents and len(wanted_lengths) == documents and len(lengths) == documents - empty.sum():
        # It may have left out the empty documents. It did if the others equal more of its documents than all do.
        starts = numpy.cumsum(wanted_lengths) - wanted_lengths
        keep = numpy.concatenate([numpy.arange(start, start + count) for start, count, gone
                                  in zip(starts, wanted_lengths, empty) if not gone] or [numpy.zeros(0, int)])
        others = differing(ids, lengths, wanted[keep], wanted_lengths[~empty])
        if len(others) < len(bad):
            bad, missing, dropped, marked = others, 0, int(empty.sum()), marked[~empty]
            numbers = [number for number, gone in enumerate(empty) if not gone]
    return {"compared": compared, "differ": len(bad) + missing + dropped, "dropped": dropped, "missing": missing,
            "extra": max(0, len(lengths) + dropped - documents), "special": int(marked[bad].sum()) if bad else 0,
            "first": numbers[bad[0]] if bad else None, "ids": int(len(ids))}


if __name__ == "__main__":
    driver.answer_requests(lambda do, **request: {"reference": do_reference, "compare": do_compare}[do](**request))
