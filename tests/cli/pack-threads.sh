# SPDX-License-Identifier: MIT
# ci: tsan
# WARC files and conversations: the same bytes for each number of threads, also where records are left out. The records
# are far more than a thread takes at once. (pack-content.sh has the same for ids, prompts, and columns.)
. "$TOKMAP_CLI/helpers.sh"
need base64 awk
for_each_count()
{
    tokmap pack -q --force -j 1 --on-error skip "$@" -o one --skipped-list list 2>one.err
    mv list one.list
    for threads in 2 3 8; do
        tokmap pack -q --force -j $threads --on-error skip "$@" -o many --skipped-list list 2>many.err
        mv list many.list
        for ending in bin tmx list err; do
            same one.$ending many.$ending
        done
        [ ! -e one.mask ] || same one.mask many.mask
    done
    tokmap verify one >out 2>&1
}

# WET: records of text among others, of lengths from 0 to 900 bytes, and some that are not UTF-8. The crawl cuts its
# files in any place, so the parts are several files, two of them compressed.
awk 'BEGIN {
    for (i = 0; i < 6000; i++) {
        text = ""
        for (k = i % 37; k > 0; k--)
            text = text "line " k " of page " i "\n"
        if (i % 500 == 499)
            text = text "caf\351"
        type = i % 3 ? "conversion" : "warcinfo"
        printf "WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: http://x/%d\r\nContent-Type: %s\r\n", type, i, \
            i % 3 ? "text/plain" : "application/warc-fields"
        printf "Content-Length: %d\r\n\r\n%s\r\n\r\n", length(text), text
    }
}' >all.wet
bytes=$(wc -c <all.wet | tr -d ' ')
[ "$bytes" -gt 1000000 ]
for_each_count --invalid-utf8 skip all.wet
equal "$(wc -l <one.list | tr -d ' ')" 8
for_each_count --invalid-utf8 replace all.wet
if command -v gzip >/dev/null 2>&1 && tokmap --version | grep -q 'reads .gz: yes'; then
    cp one.bin whole.bin
    gzip -k all.wet
    for_each_count --invalid-utf8 replace all.wet.gz
    same one.bin whole.bin
    for_each_count --invalid-utf8 replace all.wet all.wet.gz all.wet
fi

# Conversations, of which the turns of the assistant count. Some have a role that the template refuses.
rank_file v.tiktoken he ll hell hello ' hello'
printf '{"<|im_start|>": 300, "<|im_end|>": 301, "<|endoftext|>": 302}' >specials.json
awk 'BEGIN {
    for (i = 0; i < 12000; i++) {
        printf "{\"u\": %d, \"messages\": [", i % 11
        for (k = 0; k <= i % 5; k++) {
            text = ""
            for (n = (i + k) % 23; n > 0; n--)
                text = text " hello"
            printf "%s{\"role\": \"%s\", \"content\": \"%d%s \\u00e9\"}", k ? ", " : "", \
                k % 2 ? "assistant" : "user", i, text
        }
        printf "]}\n"
        if (i % 1000 == 999)
            printf "{\"messages\": [{\"content\": \"without a role\"}]}\n"
    }
}' >chat.jsonl
for_each_count -t v.tiktoken --pattern gpt2 --special-tokens specials.json --messages-field messages \
    --chat-template chatml --columns u --eod=302 chat.jsonl
equal "$(wc -l <one.list | tr -d ' ')" 12
[ -s one.mask ]
