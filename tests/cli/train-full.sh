# SPDX-License-Identifier: MIT
# No room for the output: the message has the system's reason, the exit status is 1, no file is left, and old files stay.
. "$TOKMAP_CLI/helpers.sh"
corpus
tokmap train-tokenizer -q -o v --vocab-size 300 in
cp v.json old.json
cp v.tiktoken old.tiktoken
# A rank file of 1400 tokens has about 20 kB, a tokenizer.json of them about 60 kB.
seq 1 20000 | tr '02468' 'aeiou' >in/d.txt
for kilobytes in 4 16; do
    # Some shells count blocks of 512 bytes, others of 1024; both limits are far too small.
    if (trap '' XFSZ; ulimit -f $kilobytes; exec tokmap train-tokenizer -q --force -o v --vocab-size 1400 in) 2>err; then
        echo "the files fit $kilobytes" >&2
        exit 1
    fi
    holds err 'File too large'
    same v.json old.json
    same v.tiktoken old.tiktoken
    equal "$(ls v.* | tr '\n' ' ')" 'v.json v.tiktoken '
done
tokmap train-tokenizer -q --force -o v --vocab-size 1400 in
equal "$(wc -l <v.tiktoken | tr -d ' ')" 1400
