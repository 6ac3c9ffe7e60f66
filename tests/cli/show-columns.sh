# SPDX-License-Identifier: MIT
# ci: asan
# Columns of the index: kept by pack, listed by info, printed by show, kept by merge, checked by verify.
. "$TOKMAP_CLI/helpers.sh"
{
    printf '{"text": "one", "url": "https://example.org/1", "meta": {"lang": "en", "score": 0.5}}\n'
    printf '{"text": "two", "url": "a\\u0007\\"b\\u00e4", "meta": {"lang": "en"}}\n'
    printf '{"text": "three", "meta": {"lang": null}}\n'
} >c.jsonl
tokmap pack -q -t bytes --columns url,meta.lang,meta -o c c.jsonl
tokmap pack -q -t bytes -o plain c.jsonl
tokmap show c -d 0 2>&1 >/dev/null
tokmap show c -d 1 2>&1 >/dev/null
tokmap show c -d 2 2>&1 >/dev/null
tokmap show c -d 0 --json | sed 's/.*"line"/"line"/'
tokmap show c -d 1 --json >out
json out
grep -o '"columns": .*' out
tokmap show c -d 2 --json >out
json out
grep -o '"columns": .*' out
! tokmap show plain -d 0 --json | grep columns
tokmap info c | grep '^column'
tokmap info c --json >out
json out
grep -o '"columns": \[[^]]*\]' out | head -n 1
tokmap info plain --json | grep -o '"columns": \[[^]]*\]' | head -n 1
tokmap verify -q c
# Parts, and shards of which only some have columns.
tokmap show 'c#docs=1..3' -d 0 2>&1 >/dev/null | tail -n 1
tokmap merge -q -o both plain c
tokmap show both -d 3 2>&1 >/dev/null | tail -n +3
tokmap show both -d 0 2>&1 >/dev/null | wc -l | tr -d ' '
tokmap info both --json | grep -o '"columns": \[[^]]*\]' | head -n 1
# The content id does not depend on them.
[ "$(tokmap info c --json | grep -o '"content": "[^"]*"')" = "$(tokmap info plain --json | grep -o '"content": "[^"]*"')" ]
