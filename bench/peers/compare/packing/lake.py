# SPDX-License-Identifier: MIT
"""Inputs and packers of the table `lake`.

The input is a text in Parquet files of which it is a tenth: the other columns are bytes that cannot be compressed, as
embeddings or pictures are. The packers are the ways that datatrove and datasets have to read the text column of
Parquet from object storage.
"""
import glob
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import driver  # noqa: E402
from packing.inputs import texts  # noqa: E402
from packing.packers import Writer, end_text, plain_tokenizer, sync, version  # noqa: E402

ROWS = 10000  # of a row group
SEED = 11


def call(path, field, limit, out, parts):
    """Writes `parts` files below the folder `out`. Returns what is in them."""
    import numpy
    import pyarrow
    import pyarrow.parquet as parquet
    found = list(texts(path, field, limit))
    random = numpy.random.default_rng(SEED)
    os.makedirs(out)
    chunks = footers = 0
    for part in range(parts):
        own = pyarrow.array(found[len(found) * part // parts:len(found) * (part + 1) // parts], pyarrow.string())
        name, alone = os.path.join(out, f"{part:03}.parquet"), os.path.join(out, "alone")
        parquet.write_table(pyarrow.table({"text": own}), alone, compression="zstd", use_dictionary=False)
        ballast = int(4.5 * os.path.getsize(alone) / max(len(own), 1))
        os.unlink(alone)

        def filled():
            data = random.integers(0, 256, (len(own), ballast), numpy.uint8)
            return pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(ballast), len(own),
                                                             [None, pyarrow.py_buffer(data)])
        table = pyarrow.table({"before": filled(), "text": own, "after": filled()})
        parquet.write_table(table, name, compression="zstd", use_dictionary=False, row_group_size=ROWS)
        with parquet.ParquetFile(name) as file:
            meta = file.metadata
            chunks += sum(meta.row_group(g).column(1).total_compressed_size for g in range(meta.num_row_groups))
            footers += meta.serialized_size + 8
    files = sorted(glob.glob(os.path.join(out, "*.parquet")))
    return {"files": files, "documents": len(found), "bytes": sum(len(text.encode("utf-8", "surrogatepass"))
                                                                  for text in found),
            "stored": sum(map(os.path.getsize, files)), "chunks": chunks, "footers": footers}


class Datatrove:
    """ParquetReader over s3fs and a DocumentTokenizer, one task for each processor."""
    PACKAGES = ["numpy", "tokenizers", "datatrove", "orjson", "pyarrow", "s3fs"]
    LABEL = "datatrove, ParquetReader of s3://"

    def load(self, request):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from datatrove.executor import LocalPipelineExecutor
        from datatrove.pipeline.readers import ParquetReader
        from datatrove.pipeline.tokens import DocumentTokenizer
        folder = (request["inputs"][0], {"endpoint_url": os.environ["AWS_ENDPOINT_URL"], "key": "key",
                                         "secret": "secret"})
        reader = ParquetReader(folder, text_key=request["field"], id_key=request["field"])
        self.executor = LocalPipelineExecutor(
            [reader, DocumentTokenizer(request["output"], request["json"], eos_token=end_text(request),
                                       shuffle_documents=False, batch_size=1000)], tasks=request["workers"],
            workers=request["workers"], logging_dir=request["output"] + ".logs")

    def pack(self, request):
        self.executor.run()
        sync(*glob.glob(os.path.join(request["output"], "*")))

    def about(self):
        return (f"datatrove {version('datatrove')}, ParquetReader over s3fs {version('s3fs')}, DocumentTokenizer, a "
                f"task and a process for each processor")


class Datasets:
    """load_dataset(streaming=True) of the text column, and encode_batch_fast() on 1000 documents."""
    PACKAGES = ["numpy", "tokenizers", "datasets", "s3fs"]
    LABEL = "datasets, streaming from s3://"

    def load(self, request):
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        os.environ["HF_HUB_OFFLINE"] = "1"
        from datasets import load_dataset
        self.tokenizer = plain_tokenizer(request["json"])
        self.data = load_dataset("parquet", data_files=request["inputs"][0] + "/*.parquet", split="train",
                                 streaming=True, columns=[request["field"]],
                                 storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"], "key": "key",
                                                  "secret": "secret"})

    def pack(self, request):
        writer = Writer(request)
        for batch in self.data.iter(1000):
            writer.add(one.ids for one in self.tokenizer.encode_batch_fast(batch[request["field"]],
                                                                           add_special_tokens=False))
        writer.close()

    def about(self):
        return (f"datasets {version('datasets')}, load_dataset(streaming=True, columns=) over s3fs {version('s3fs')}, "
                f"tokenizers {version('tokenizers')}, encode_batch_fast() on 1000 documents")


LAKES = {"lake-datatrove": Datatrove(), "lake-datasets": Datasets()}

if __name__ == "__main__":
    driver.answer_requests(call)
