# SPDX-License-Identifier: MIT
# ci: asan
# The text is that of the file's own decoder: added tokens made of U+2581, special tokens that the normalizer changes,
# bytes that are not UTF-8, and steps that only some files have. The texts expected here are those of the reference.
. "$TOKMAP_CLI/helpers.sh"
mark=$(printf '\342\226\201')
unknown=$(printf '\357\277\275')
# file DECODER ADDED [NORMALIZER]: a vocabulary of characters, like those of Gemma and Llama 2.
file()
{
    cat >tokenizer.json <<END
{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [$2],
 "normalizer": ${3:-{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"\}, \"content\": \"$mark\"\}},
 "pre_tokenizer": null, "post_processor": null, "decoder": $1,
 "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": false, "fuse_unk": true, "vocab": {
  "<unk>": 0, "<0x0A>": 1, "<0xE2>": 2, "<0x96>": 3, "<0x81>": 4, "$mark": 5, "r": 6, "1": 7, "${mark}r": 8,
  "$mark$mark": 9, "$mark$mark$mark$mark": 10, "x": 11, "</w>": 12, "##r": 13, ".": 14},
  "merges": ["$mark r", "$mark $mark"]}}
END
}
added()
{
    printf '{"id": %s, "content": "%s", "single_word": false, "lstrip": false, "rstrip": false, "normalized": %s, "special": %s}' \
        "$@"
}
decoded()
{
    wanted=$1
    shift
    equal "$(tokmap decode -t tokenizer.json "$@" <in; echo .)" "$wanted." "$(cat in):"
}
gemma='{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "'$mark'"}, "content": " "},
  {"type": "ByteFallback"}, {"type": "Fuse"}]}'
llama='{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "'$mark'"}, "content": " "},
  {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}'
prepend='{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "'$mark'"},
  {"type": "Replace", "pattern": {"String": " "}, "content": "'$mark'"}]}'

# Gemma 2: runs of the mark are added tokens.
file "$gemma" "$(added 9 "$mark$mark" false false), $(added 10 "$mark$mark$mark$mark" false false)"
echo 10 6 9 7 >in
decoded '    r  1'
echo 2 6 2 150 129 >in
exits 1 tokmap decode -t tokenizer.json <in 2>err
holds err "standard input:1: id 150 is not in the vocabulary of the tokenizer"
holds err "(byte 6)"
# A run of bytes is text if all of it is UTF-8.
echo 6 2 3 4 6 >in
decoded "r${mark}r"
echo 6 2 3 4 2 6 >in
decoded "r$unknown$unknown$unknown${unknown}r"

# show uses the same decoder.
printf '    r  1' >text
tokmap pack -q -t tokenizer.json --no-eod -o data text
equal "$(tokmap show data -d 0 -q; echo .)" '    r  1.'

# Llama 2: the special token is normalized, so it begins with a blank, and the reference never leaves it out.
file "$llama" "$(added 0 '<unk>' true true)" "$prepend"
echo 8 0 8 >in
decoded 'r <unk> r' --specials
decoded 'r <unk> r'
# One that is not normalized is left out.
file "$llama" "$(added 0 '<unk>' false true)" "$prepend"
decoded 'r<unk> r' --specials
decoded 'r r'

# Other steps. The first token loses all its marks.
file '{"type": "Metaspace", "replacement": "'$mark'", "prepend_scheme": "always", "split": true}' ''
echo 10 8 9 8 >in
decoded ' r   r'
file '{"type": "BPEDecoder", "suffix": "</w>"}' ''
echo 6 12 7 12 >in
decoded 'r 1'
file '{"type": "WordPiece", "prefix": "##", "cleanup": true}' ''
echo 6 13 7 14 >in
decoded 'rr 1.'
file '{"type": "CTC", "pad_token": "x", "word_delimiter_token": "1", "cleanup": true}' ''
echo 6 6 11 6 7 7 6 >in
decoded 'rr r'
file '{"type": "Strip", "content": "'$mark'", "start": 2, "stop": 1}' ''
echo 10 8 6 >in
decoded "${mark}rr"

# A decoder that cannot be reproduced: encoding works, decoding names the field.
file '{"type": "Unknown"}' ''
printf 'r' | tokmap encode -t tokenizer.json >out
equal "$(cat out)" 6
exits 1 tokmap decode -t tokenizer.json <out 2>err
holds err "decoder.type is 'Unknown'"
file '{"type": "Strip", "content": " ", "stop": 1}' ''
exits 1 tokmap decode -t tokenizer.json <out 2>err
holds err 'decoder.Strip.start is missing'
file '{"type": "Replace", "pattern": {"String": "r"}, "content": "'"$(printf '%05000d' 0)"'"}' ''
exits 1 tokmap decode -t tokenizer.json <out 2>err
holds err 'one byte of a token into more than 4096 bytes'
