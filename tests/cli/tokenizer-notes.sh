# SPDX-License-Identifier: MIT
# truncation and padding in a tokenizer.json are ignored: the ids equal those of the file without them, and one note
# says so.
. "$TOKMAP_CLI/helpers.sh"
# made TRUNCATION PADDING: a tokenizer.json with these two values.
made()
{
    printf '{"version": "1.0", "truncation": %s, "padding": %s, "added_tokens": [], "normalizer": null, ' "$1" "$2"
    printf '"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "post_processor": null, "decoder": null, '
    printf '"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}'
}
truncation='{"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}'
padding='{"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}'
made null null >plain.json
made "$truncation" "$padding" >both.json
made "$truncation" null >cut.json
# notes FILE COUNT: fails unless COUNT lines say that something is ignored.
notes()
{
    equal "$(grep -c 'ignored, as transformers\|is ignored' "$1")" "$2" "notes in $1:"
}
printf 'aababbab' >in
for name in plain both cut; do
    tokmap encode -t $name.json in >$name.ids 2>$name.err
    same plain.ids $name.ids
done
notes plain.err 0
notes both.err 1
notes cut.err 1
holds both.err "tokmap encode: warning: both.json: the file's truncation and padding are ignored"
holds cut.err "cut.json: the file's truncation is ignored"
# Several threads and inputs open one tokenizer, so there is one note.
mkdir many
for i in 1 2 3 4 5 6; do cp in many/$i.txt; done
tokmap pack -t both.json --no-eod --threads 3 -o data many 2>err
notes err 1
# A description of the file contains the note, which is then not printed again on stderr.
tokmap tokenizer both.json >out 2>err
notes out 1
notes err 0
tokmap tokenizer --json both.json >out.json 2>err
json out.json
notes err 0
tokmap tokenizer --json plain.json >plain.out.json
if command -v python3 >/dev/null; then
    holds out.json "truncation and padding are ignored"
    equal "$(field plain.out.json note)" null
    equal "$(field out.json fingerprint)" "$(field plain.out.json fingerprint)"
fi
