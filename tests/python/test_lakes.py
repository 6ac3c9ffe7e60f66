# SPDX-License-Identifier: MIT
"""Tables that deltalake and pyiceberg write: the programs of LAKES.md give the rows that count, and their files are
refused, however they are named. Rows that were deleted or replaced are in the files."""
import contextlib
import io
import os
import unittest

import tokmap
from support import needs, new_folder
from test_readme import examples

ROWS = {"text": ["keep", "drop me", "old"], "lang": ["en", "en", "en"]}


def run(folder, name):
    """Runs an example here, because its imports take longer than its work."""
    said, before = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(examples()[name], name, "exec"), {})
    finally:
        os.chdir(before)
    return said.getvalue()


def texts(name):
    with tokmap.Dataset(name) as ds:
        return sorted(bytes(ids.tolist()[:-1]).decode() for ids in ds), [ds.values(i) for i in range(len(ds))]


class Lakes(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
        os.mkdir(os.path.join(self.folder, "lake"))

    def refused(self, kind, *names):
        out = os.path.join(self.folder, "out")
        for name in names:
            with self.assertRaisesRegex(tokmap.TokmapError, f"the folder is a table of {kind}.*table_files=True"):
                tokmap.pack(os.path.join(self.folder, name), out, tokenizer="bytes", on_error="skip")
        return tokmap.pack(os.path.join(self.folder, names[0]), out, tokenizer="bytes", table_files=True).documents

    @needs("deltalake", "pyarrow")
    def test_delta(self):
        import deltalake
        import pyarrow
        name = os.path.join(self.folder, "lake", "reviews")
        deltalake.write_deltalake(name, pyarrow.table(ROWS), partition_by=["lang"])
        table = deltalake.DeltaTable(name)
        table.delete("text = 'drop me'")
        table.update(updates={"text": "'new'"}, predicate="text = 'old'")
        self.assertRegex(run(self.folder, "delta"), r"^2 documents of version 2$")
        self.assertEqual(texts(os.path.join(self.folder, "data", "reviews")), (["keep", "new"], [{"lang": "en"}] * 2))
        more = self.refused("Delta Lake", "lake", "lake/reviews", "lake/reviews/lang=en", "lake/reviews/*/*.parquet")
        self.assertGreater(more, 2)
        with self.assertRaisesRegex(tokmap.ArgumentError, r"a DeltaTable has no rows .*to_pyarrow_table\(\)"):
            tokmap.pack(table, os.path.join(self.folder, "out"), tokenizer="bytes", force=True)

    @needs("pyiceberg.catalog.sql", "pyarrow")
    def test_iceberg(self):
        import pyarrow
        from pyiceberg.catalog.sql import SqlCatalog
        lake = os.path.join(self.folder, "lake")
        catalog = SqlCatalog("lake", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}")
        catalog.create_namespace("shop")
        rows = pyarrow.table(ROWS)
        table = catalog.create_table("shop.reviews", schema=rows.schema)
        table.append(rows)
        table.delete("text == 'drop me'")
        self.assertRegex(run(self.folder, "iceberg"), r"^2 documents of snapshot \d+$")
        self.assertEqual(texts(os.path.join(self.folder, "data", "iceberg")), (["keep", "old"], [{"lang": "en"}] * 2))
        data = os.path.relpath(os.path.join(table.location()[len("file://"):], "data"), self.folder)
        self.assertEqual(self.refused("Iceberg", data, "lake", f"{data}/*.parquet"), 5)
        with self.assertRaisesRegex(tokmap.ArgumentError, r"a DataScan has no rows .*to_arrow\(\)"):
            tokmap.pack(table.scan(), os.path.join(self.folder, "out"), tokenizer="bytes", force=True)


if __name__ == "__main__":
    unittest.main()
