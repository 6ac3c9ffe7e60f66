#!/bin/sh
# SPDX-License-Identifier: MIT
# tokenizers-train-added-token.sh: training a tokenizer gives an added token and a trained token the same id.
#
# tokenizers 0.23.3. A token is added with add_tokens() to an empty BPE tokenizer, which is then trained. One would
# expect that the added token keeps its id, and that training begins behind it, or that it is given a new id behind the
# trained vocabulary. Both have the id 0 while the program runs: the text "x" is encoded as 0, and 0 is decoded as "QQ",
# so texts that were encoded by the program that trained the tokenizer decode wrongly. Saving and loading the tokenizer
# puts the added token behind the vocabulary, so the same text with "QQ" has other ids in the next process, and ids that
# were stored before mean other tokens. A token that is added after the training has an id of its own. Output seen:
#
#   tokenizer                     id of x    id of QQ    "x" encoded and decoded
#   added, then trained           0          0           QQ
#   the same, saved and loaded    0          5           x
#   trained, then added           0          5           x
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tokenizers==0.23.3

cat >"$work/try.py" <<'END'
import sys

from tokenizers import Tokenizer, models, trainers


def trained(order):
    tokenizer = Tokenizer(models.BPE())
    for step in order:
        if step == "add":
            tokenizer.add_tokens(["QQ"])
        else:
            tokenizer.train_from_iterator(["xyz"], trainers.BpeTrainer(show_progress=False))
    return tokenizer


before, after = trained(["add", "train"]), trained(["train", "add"])
tokenizers = {
    "added, then trained": before,
    "the same, saved and loaded": Tokenizer.from_str(before.to_str()),
    "trained, then added": after,
}
print('tokenizer                     id of x    id of QQ    "x" encoded and decoded')
found = []
for name, tokenizer in tokenizers.items():
    decoded = tokenizer.decode(tokenizer.encode("x").ids)
    found.append((tokenizer.token_to_id("x"), tokenizer.token_to_id("QQ"), decoded))
    print(f"{name:29} {found[-1][0]:<10} {found[-1][1]:<11} {decoded}")
sys.exit(found != [(0, 0, "QQ"), (0, 5, "x"), (0, 5, "x")])
END
"$work/venv/bin/python" "$work/try.py"
