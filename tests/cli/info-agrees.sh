# SPDX-License-Identifier: MIT
# What info, audit, show, plan, and stats say about the same run is the same: each number that two of them print, in
# runs with changes of seq_len and batch, parts, limits, strides, padding, skipped steps, excluded documents, plans, and
# masks.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
python3 - <<'PYTHON'
import json
with open("masked.jsonl", "w") as file:
    for i in range(60):
        json.dump({"p": f"question {i} " + "why " * (i % 7), "c": f"answer {i} " + "so " * (i % 11)}, file)
        file.write("\n")
PYTHON
tokmap pack -q -t bytes -o masked --prompt-field p --completion-field c masked.jsonl
tokmap pack -q -t bytes -o pair --shard-tokens 1500 --prompt-field p --completion-field c masked.jsonl
tokmap plan -q -o small.plan small --seq-len 48
tokmap plan -q -o one.plan small --seq-len 48 --one-document
tokmap plan -q -o masked.plan masked --seq-len 32
printf 'a 2\na 5\na 6\n' >list
python3 - <<'PYTHON'
import json
import subprocess

def tokmap(*words):
    return json.loads(subprocess.run(["tokmap", *words, "--json"], stdout=subprocess.PIPE, check=True).stdout)

def said(*words, error=None):
    return subprocess.run(["tokmap", *words], stdout=subprocess.PIPE, stderr=error, check=True, text=True).stdout

HEAD = "seq_len 32\nbatch 4\nseed 5\n"
RUNS = {
    "plain": "source a small\npasses 2\n",
    "part": "source a small#docs=10..60%\nlookahead 3\nsteps 50\n",
    "tokens": "source a small#tokens=100..3000\npasses 3\nskip 2..5\n",
    "stride": "source a small\nstride 20\npasses 1\nskip 3..4\n",
    "pad": "source a small\ntail pad\npasses 1\norder sequential\n",
    "ahead": "source a small#tokens=0..1026\ntail pad\nlookahead 3\npasses 1\n",
    "pads": "source a small\nsource b masked\nphase 0 a natural b natural\ntail pad\npasses 1\n",
    "batch": "source a small\nphase 0 a 1\nphase 10 batch 12\nphase 30 batch 3\nsteps 40\nskip 9..12\n",
    "length": "source a small\nphase 0 a 1\nphase 10 seq_len 64\nphase 25 seq_len 16 batch 6\nsteps 40\n",
    "mixture": "source a small\nsource b masked epochs<=9\nphase 0 a 3 b 1\nphase 12 a 1 b 2\nsteps 40\nskip 11..14\n",
    "both": "source a small#docs=0..50%\nsource b pair\nphase 0 a 3 b 1\nphase 10 seq_len 64 batch 8\nphase 20 a 1\n"
            "steps 30\nskip 4..6\n",
    "late": "source a small\nsource b masked\nphase 0 a 1\nphase 7 b 1 seq_len 64\nsteps 20\n",
    "blocks": "source a small\norder blocks 4 2\npasses 1\n",
    "exclude": "source a small\nexclude list from 5\nsteps 30\nskip 7..8\n",
    "plan": "source a small plan small.plan\npasses 2\nskip 1..2\n",
    "one": "source a small plan one.plan\nsteps 9\n",
    "plans": "source a masked plan masked.plan\nsource b masked\nphase 0 a 1 b 1\nsteps 12\n",
    "validation": "source a small#docs=0..80%\nvalidation v small#docs=80..100%\npasses 1\n",
}
LENGTHS = {"plan": 48, "one": 48}
PLANS = {"plan": ("small", "--seq-len", "48"), "one": ("small", "--seq-len", "48", "--one-document"),
         "plans": ("masked", "--seq-len", "32")}

def same(name, what, *values):
    assert len({json.dumps(value) for value in values}) == 1, (name, what, values)

for name, text in RUNS.items():
    with open(name + ".run", "w") as file:
        file.write(HEAD.replace("32", str(LENGTHS.get(name, 32))) + text)
    info, audit = tokmap("info", name + ".run"), tokmap("audit", name + ".run", "--ranks", "2")
    assert audit["ok"]
    same(name, "tokens", info["tokens_delivered"], audit["tokens"])
    for key in "steps", "delivered", "seq_len", "batch", "remainder":
        same(name, key, info[key], audit[key])
    padded = info["phases"][-1]["batch"] - info["valid_last"] if info["tail_pad"] else 0  # rows of the last step
    same(name, "draws", info["rows"] - padded, audit["draws"])
    same(name, "skipped", info["steps"] - info["delivered"], sum(b - a for a, b in audit["skipped"]))
    same(name, "excluded", sum(part["documents"] for part in info["excluded"]), 3 if name == "exclude" else 0)
    if audit["windows"] is not None:
        rows = info["sources"][0]["rows"]
        same(name, "windows", rows["windows"], audit["windows"])
        same(name, "tail", rows["tail"], audit["tail"])
        head = said("audit", name + ".run")
        assert f'tail: {rows["tail"]:,} token' in head, head
        same(name, "epochs", sum(epoch["windows"] for epoch in audit["epochs"]), audit["draws"])
    for i, theirs in enumerate(audit["sources"]):
        ours = info["sources"][i]
        for key, other in ("source", "source"), ("draws", "draws"), ("run_tokens", "tokens"), ("epochs", "epochs"):
            same(name, key, ours[key], theirs[other])
        same(name, "limit", ours["epochs_most"] or 0, theirs["epochs_most"])
        same(name, "windows of an epoch", ours["rows"]["windows"], theirs["windows"])
    for ours, theirs in zip(info["phases"], audit["phases"]):
        for key in "first_step", "end_step", "batch", "seq_len", "mixture_step":
            same(name, key, ours[key], theirs[key])
        for one, other in zip(ours["shares"], theirs["shares"]):
            for key in "source", "draws", "weight", "weights", "windows":
                same(name, key, one[key], other[key])
    if audit["sources"] or info["sources"][1:]:
        shown = said("info", name + ".run", "-q") + said("audit", name + ".run")
        for source in info["sources"]:
            assert shown.count(f'{source["rows"]["windows"]:,}') >= 2, (name, shown)
    same(name, "validations", [one["windows"] for one in info["validations"]],
         [one["windows"] for one in audit["validations"]])
    # The windows that show has.
    plans = {source["source"] for source in info["sources"] if source["plan"]}
    held = [(one["name"], one["windows"]) for one in info["validations"]]
    for source, windows in held + [(one["source"], one["windows"]) for one in info["phases"][0]["shares"]]:
        for window in () if source in plans else (windows - 1, windows):
            found = subprocess.run(["tokmap", "show", name + ".run", "--source", source, "--window", str(window), "--ids"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            same(name, f"window {window} of {windows}", found.returncode == 0, window < windows)
    # Rows as they are shown: as many as the run has, of the lengths and sources that the reports name.
    count = {source["source"]: 0 for source in info["sources"]}
    tokens = padding = 0
    for phase in info["phases"] if info["rows"] <= 700 else []:
        for step in range(phase["first_step"], phase["end_step"]):
            lines = said("show", name + ".run", "--step", str(step), "--json", "--ids", "-q", error=subprocess.DEVNULL).splitlines()
            assert len(lines) == phase["batch"], (name, step, len(lines))
            for row in map(json.loads, lines):
                if "epoch" in row and row.get("documents") is not None and row["tokens"]:
                    count[row.get("name", info["sources"][0]["source"])] += 1
                    assert row["tokens"] + row.get("padding", 0) == phase["seq_len"] + info["lookahead"], (name, row)
    if sum(count.values()):
        same(name, "rows", sum(count.values()), audit["draws"])
        for source in info["sources"]:
            same(name, "draws of " + source["source"], count[source["source"]], source["draws"])
    # The data: info of the run, of the dataset, and stats of it.
    for source in info["sources"]:
        stats, data = tokmap("stats", source["data"]), tokmap("info", source["data"])
        for key in "tokens", "documents", "targets", "vocabulary", "eod_id", "masked":
            same(name, key, source[key], data[key], stats[key])
        for key in "p50", "p90", "p99", "max", "mean":
            same(name, key, source["document_tokens"][key], data["document_tokens"][key], stats["document_tokens"][key])
        if source["part_of"] is None:
            same(name, "text", data["text_bytes_a_token"], stats["text_bytes_a_token"])
    # The plan: what its making has printed.
    if name in PLANS:
        plan = tokmap("plan", "-o", "again.plan", "--force", *PLANS[name])
        for key in "rows", "tokens", "documents":
            same(name, key, plan[key], info["sources"][0]["rows"]["windows"] if key == "rows" else info["sources"][0][key])
        same(name, "seq_len", plan["seq_len"], info["seq_len"])
        bound = [check["text"] for check in audit["checks"] if check["check"] == "capacity"][0]
        most = int(bound.split("no row has more than ")[1].split()[0])
        assert most == plan["row_segments"] + 1 and "(padding counts as one)" in bound or name == "plans", (plan, bound)
print("all agree")
PYTHON
