#!/bin/sh
# SPDX-License-Identifier: MIT
# sentencepiece-patch-release.sh: a Unigram model gives other ids with sentencepiece 0.2.3 than with 0.2.1.
#
# sentencepiece 0.2.1 and 0.2.3. The same model, plain encode() without sampling. A model is trained once, and its ids
# stay for years, so one would expect equal ids from two patch releases. But "---" can be divided into "--" and "-",
# or into "-" and "--", with the same sum of scores, and the releases choose differently: 0.2.1 takes either way, as
# the digits of the scores have it; 0.2.2 and 0.2.3 take the short piece first here. Where three short pieces and a
# long one have the same sum (to the precision of a float), even the number of tokens differs. Runs of one character
# often have such ties, also with models in use: T5's gives other ids for "----", XLNet's for "eee". A corpus that was
# encoded before an update does not agree with prompts that are encoded after it. Output seen:
#
#   scores of - and --         0.2.1      0.2.3
#   -1.0  -1.4                 -- -       - --
#   -1.1  -1.5                 - --       - --
#   -2.7  -3.1                 -- -       - --
#   of 30 pairs, -- first      9          0
#   scores of - and ---        0.2.1      0.2.3
#   -1.6  -4.8                 - - -      ---
#   of 30 pairs, 3 tokens      11         7
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
for package in sentencepiece==0.2.1 sentencepiece==0.2.3; do
	"$work/venv/bin/pip" install -q --disable-pip-version-check --target "$work/${package#*==}" "$package"
done

cat >"$work/encode.py" <<'END'
# Prints how the text "---" is divided by models whose scores are tenths: "-" has -s / 10, the long piece -t / 10.
import struct
import sys

import sentencepiece


def part(number, content):
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def piece(text, score, kind):
    return part(1, part(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))


def encoded(long, s, t):
    model = piece("<unk>", 0, 2) + piece("-", -s / 10, 1) + piece(long, -t / 10, 1)
    model += part(2, b"\x18\x01")  # Unigram
    model += part(3, part(1, b"identity") + b"\x18\x00")  # no normalizer, no space before the text
    return " ".join(sentencepiece.SentencePieceProcessor(model_proto=model).encode("---", out_type=str))


assert sentencepiece.__version__ == sys.argv[1]
pairs = [encoded("--", s, s + 4) for s in range(10, 40)]
triples = [encoded("---", s, 3 * s) for s in range(10, 40)]
for line in pairs[0], pairs[1], pairs[17], pairs.count("-- -"), triples[6], triples.count("- - -"):
    print(line)
END
for version in 0.2.1 0.2.3; do
	PYTHONPATH="$work/$version" "$work/venv/bin/python" "$work/encode.py" $version >"$work/$version.txt"
done
printf '%s\n' "-1.0  -1.4" "-1.1  -1.5" "-2.7  -3.1" "of 30 pairs, -- first" \
	"-1.6  -4.8" "of 30 pairs, 3 tokens" >"$work/names"
paste -d '|' "$work/names" "$work/0.2.1.txt" "$work/0.2.3.txt" | tee "$work/seen" | awk -F '|' '
	NR == 1 || NR == 5 { printf "%-26s %-10s %s\n", "scores of - and " (NR == 1 ? "--" : "---"), "0.2.1", "0.2.3" }
	{ printf "%-26s %-10s %s\n", $1, $2, $3 }'
printf '%s\n' "-- -|- --" "- --|- --" "-- -|- --" "9|0" "- - -|---" "11|7" >"$work/expected"
cut -d '|' -f 2,3 "$work/seen" | cmp -s - "$work/expected" || exit 1
