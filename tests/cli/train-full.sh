# No room for the output: the system's reason, exit status 1, no file left, old ones untouched.
. "$TOKMAP_CLI/helpers.sh"
corpus
tokmap train -q -o v --vocab-size 300 in
cp v.json old.json
cp v.tiktoken old.tiktoken
# A rank file of 1400 tokens is about 20 kB, a tokenizer.json of them about 60.
seq 1 20000 | tr '02468' 'aeiou' >in/d.txt
for kilobytes in 4 16; do
    # Blocks of 512 bytes in some shells, of 1024 in others: in either, far too little.
    if (trap '' XFSZ; ulimit -f $kilobytes; exec tokmap train -q --force -o v --vocab-size 1400 in) 2>err; then
        echo "the files fit $kilobytes" >&2
        exit 1
    fi
    holds err 'File too large'
    same v.json old.json
    same v.tiktoken old.tiktoken
    equal "$(ls v.* | tr '\n' ' ')" 'v.json v.tiktoken '
done
tokmap train -q --force -o v --vocab-size 1400 in
equal "$(wc -l <v.tiktoken | tr -d ' ')" 1400
