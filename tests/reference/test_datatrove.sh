#!/bin/sh
# SPDX-License-Identifier: MIT
# --dedup minhash against datatrove itself: the clusters of its stages are those of tokmap. Its word tokenizer is
# str.split. If spaCy is installed, too, its own word tokenizer finds nearly the same documents. Skipped if datatrove
# cannot be installed.
set -eu
if [ -n "${SANITIZE:-}" ]; then
    echo "1..0 # SKIP the step without a sanitizer compares with datatrove"
    exit 77
fi
REFERENCE_FOLDER=venv-datatrove
. tests/support/reference_venv.sh
REFERENCE_PACKAGES=tests/reference/datatrove.txt
reference_venv numpy datatrove.pipeline.dedup.minhash ||
    { echo "1..0 # SKIP datatrove cannot be installed" && exit 77; }
TOKMAP_CLI=$TOP/tests/cli PATH=$TOKMAP_BIN:$PATH
export TOKMAP_CLI PATH
cd "$TMPDIR"

"$REFERENCE_PYTHON" "$TOKMAP_CLI/minhash_corpus.py"
cat >client.py <<'END'
import json, os, subprocess, sys
sys.path.insert(0, os.environ["TOKMAP_CLI"])
import minhash_reference
from importlib.util import find_spec

try:  # datatrove hashes texts, which xxhash 4 refuses
    import xxhash
    xxhash.xxh64_intdigest("")
except (ImportError, TypeError):
    class xxhash:
        def xxh64_intdigest(text):
            return minhash_reference.xxh64(text.encode())
        xxh32_intdigest = None
    sys.modules["xxhash"] = xxhash
    import datatrove.utils.hashing
    datatrove.utils.hashing.check_required_dependencies = lambda *unused: None
from datatrove.data import Document
from datatrove.pipeline.dedup import minhash
from datatrove.utils.hashing import HashConfig
from datatrove.utils.logging import logger
from datatrove.utils.text import simplify_text

logger.remove()
FILES = ["a.jsonl", "b.jsonl"]


class Split:
    def word_tokenize(self, text):
        return text.split()


def documents():
    for path in FILES:
        yield [(i, json.loads(line)["text"]) for i, line in enumerate(open(path, encoding="utf-8")) if line.strip()]


def clusters_of_datatrove(folder, tokenizer, **form):
    config = minhash.MinhashConfig(hash_config=HashConfig(), **form)
    for rank, texts in enumerate(documents()):
        if tokenizer:
            load, minhash.load_word_tokenizer = minhash.load_word_tokenizer, lambda language: tokenizer
        signing = minhash.MinhashDedupSignature(folder + "/sigs", config)
        if tokenizer:
            minhash.load_word_tokenizer = load
        signing.run((Document(text, str(i)) for i, text in texts), rank, len(FILES))
    for i in range(config.num_buckets):
        minhash.MinhashDedupBuckets(folder + "/sigs", folder + "/pairs", config=config).run(None, i, config.num_buckets)
    minhash.MinhashDedupCluster(folder + "/pairs", folder + "/ids", config, save_cluster_id=True).run(None, 0, 1)
    records, clusters = [[i for i, _ in texts] for texts in documents()], {}
    for rank in range(len(FILES)):
        path = "%s/ids/%06d.clusters" % (folder, rank)
        data = open(path, "rb").read() if os.path.exists(path) else b""
        for at in range(0, len(data), 8):
            document, cluster = (int.from_bytes(data[i:i + 4], "little") for i in (at, at + 4))
            clusters.setdefault(cluster, set()).add((FILES[rank], records[rank][document]))
    return {frozenset(cluster) for cluster in clusters.values()}


def clusters_of_tokmap(n_grams=5, num_buckets=14, hashes_per_bucket=8):
    subprocess.run(["tokmap", "pack", "-q", "--force", "--dedup", "minhash", "--minhash-ngram", str(n_grams),
                    "--minhash-bands", str(num_buckets), "--minhash-rows", str(hashes_per_bucket), "-o", "out", *FILES],
                   check=True)
    clusters = {}
    for line in subprocess.run(["tokmap", "show", "--dropped", "--json", "-q", "out"], check=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        dropped = json.loads(line)
        kept = dropped["kept"]["input"], dropped["kept"]["record"]
        clusters.setdefault(kept, {kept}).add((dropped["input"], dropped["record"]))
    return {frozenset(cluster) for cluster in clusters.values()}


# The reference's words are those of datatrove.
for texts in documents():
    for _, text in texts:
        assert minhash_reference.words(text) == simplify_text(text).split(), repr(text)
for number, form in enumerate(({}, {"n_grams": 3, "num_buckets": 20, "hashes_per_bucket": 3},
                               {"n_grams": 1, "num_buckets": 6, "hashes_per_bucket": 4})):
    theirs, ours = clusters_of_datatrove("split-%d" % number, Split(), **form), clusters_of_tokmap(**form)
    assert len(ours) > 20, len(ours)
    assert theirs == ours, (theirs - ours, ours - theirs)
    print("%s: the same %d clusters" % (form or "defaults", len(ours)))
if find_spec("spacy"):
    theirs, ours = clusters_of_datatrove("spacy", None), clusters_of_tokmap()
    theirs, ours = ({document for cluster in some for document in cluster} for some in (theirs, ours))
    print("with spaCy: %d documents in clusters, tokmap: %d, in both: %d"
          % (len(theirs), len(ours), len(theirs & ours)))
    assert len(theirs ^ ours) <= 0.1 * len(theirs | ours)
END
"$REFERENCE_PYTHON" client.py >out 2>err || { tail -n 5 err; exit 1; }
cat out
