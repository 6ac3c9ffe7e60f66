#!/bin/sh
# SPDX-License-Identifier: MIT
# tokenizers-dropped-characters.sh: BPE without an unknown token drops characters, and merges those on either side.
#
# tokenizers 0.23.3. A BPE model has the tokens a, b, and ab, no unknown token, and no byte fallback; the text has a
# character that is not in the vocabulary. One would expect an error, as WordLevel gives, or at least the tokens a and
# b. The character is left out, and then a and b are neighbors, so they become ab, a token of two characters that are
# not side by side in the text. Its offsets are 0 to 2, as if it were the first two characters. A tokenizer that was
# trained with limit_alphabet, or on too small a sample, has this model without any warning. With unk_token the text is
# cut at the character, with byte_fallback into bytes. Output seen:
#
#   model                    text   tokens         decoded
#   BPE                      axb    ab             ab
#   BPE                      xxx    none
#   BPE, unk_token           axb    a <unk> b      a <unk> b
#   BPE, limit_alphabet=2    abz    ab             ab
#   WordLevel                x      Exception
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tokenizers==0.23.3

cat >"$work/try.py" <<'END'
import sys

from tokenizers import Tokenizer, models, trainers

plain = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
unknown = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2, "<unk>": 3}, [("a", "b")], unk_token="<unk>"))
limited = Tokenizer(models.BPE())
limited.train_from_iterator(["aaabbz"], trainers.BpeTrainer(limit_alphabet=2, show_progress=False))
words = Tokenizer(models.WordLevel({"a": 0}, unk_token="<unk>"))


def tokens(tokenizer, text):
    """Returns the tokens of a text, and the text that its ids are decoded to."""
    try:
        encoded = tokenizer.encode(text)
    except Exception as problem:
        return [type(problem).__name__], ""
    return encoded.tokens, tokenizer.decode(encoded.ids)


cases = [("BPE", plain, "axb"), ("BPE", plain, "xxx"), ("BPE, unk_token", unknown, "axb"),
         ("BPE, limit_alphabet=2", limited, "abz"), ("WordLevel", words, "x")]
print("model                    text   tokens         decoded")
found = []
for name, tokenizer, text in cases:
    seen, decoded = tokens(tokenizer, text)
    found.append(seen)
    print(f"{name:24} {text:6} {' '.join(seen) or 'none':14} {decoded}".rstrip())
assert plain.encode("axb").offsets == [(0, 2)]
sys.exit(found != [["ab"], [], ["a", "<unk>", "b"], ["ab"], ["Exception"]])
END
"$work/venv/bin/python" "$work/try.py"
