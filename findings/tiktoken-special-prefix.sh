#!/bin/sh
# SPDX-License-Identifier: MIT
# tiktoken-special-prefix.sh: which of two special tokens tiktoken finds depends on how many others there are.
#
# tiktoken 0.14.0. Two special tokens of which the second begins with the first, such as <a> and <a>b, are both allowed,
# and the text is the second. One would expect the longest match, or the order in which they were given, or at least one
# rule. <a>b is found as one token if the encoding has 2 to 5 further special tokens, unrelated to both, and as <a> and
# a letter with 0, 1, or 6 and more of those tried. With other names it is otherwise again: of two pairs without further
# tokens, the longer one is found for <c>, and the shorter for <x>. So adding a special token to a vocabulary, which is
# done to fine-tune a model, can change the ids of texts that do not contain it, and another tokenizer with the same
# tokens gives other ids. It is the same in each process. Output seen, with 300 for the first token and 301 for the
# second:
#
#   text    further special tokens    ids
#   <x>y    0                         300 121
#   <c>d    0                         301
#   <a>b    0                         300 98
#   <a>b    2                         301
#   <a>b    5                         301
#   <a>b    6                         300 98
#   <a>b    60                        300 98
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tiktoken==0.14.0

cat >"$work/try.py" <<'END'
import sys

import tiktoken

BYTES = {bytes([i]): i for i in range(256)}


def ids(first, text, further):
    """Encodes a text that is the second special token, and begins with the first one."""
    names = [first, text] + [f"<|extra_{i}|>" for i in range(further)]
    special = {name: 300 + i for i, name in enumerate(names)}
    encoding = tiktoken.Encoding("t", pat_str="(?s).", mergeable_ranks=BYTES, special_tokens=special)
    found = encoding.encode(text, allowed_special="all")
    assert encoding.decode(found) == text
    return found


print("text    further special tokens    ids")
found = []
for first, text, further in (("<x>", "<x>y", 0), ("<c>", "<c>d", 0), ("<a>", "<a>b", 0), ("<a>", "<a>b", 2),
                             ("<a>", "<a>b", 5), ("<a>", "<a>b", 6), ("<a>", "<a>b", 60)):
    found.append(ids(first, text, further))
    print(f"{text:7} {further:<25}", *found[-1])
sys.exit(found != [[300, 121], [301], [300, 98], [301], [301], [300, 98], [300, 98]])
END
"$work/venv/bin/python" "$work/try.py"
