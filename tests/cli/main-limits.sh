# SPDX-License-Identifier: MIT
# ci: nonroot
# What is too much ends with a message: the limit on the size of files, pipes in place of files, and rows of very many
# documents. Zero bytes after gzip data are no damage.
. "$TOKMAP_CLI/helpers.sh"
need mkfifo timeout
awk 'BEGIN { for (i = 0; i < 20000; i++) print "line " i " of a text, with words " i * i % 9973 }' >long.txt
for threads in 1 2; do
    for what in pack train; do
        status=0
        case $what in
        pack) set -- tokmap pack -q --eod --threads $threads -o new long.txt ;;
        train) set -- tokmap train-tokenizer -q --threads $threads --vocab-size 3000 -o new long.txt ;;
        esac
        (ulimit -f 16 && "$@") 2>err || status=$?
        equal $status 1
        holds err 'File too large'
        ls new* >left 2>/dev/null || :
        [ ! -s left ]
    done
done

mkfifo pipe
exits 1 timeout 20 tokmap encode -t pipe long.txt 2>err
holds err 'not a regular file'
tokmap pack -q --eod -o data long.txt
printf 'seq_len 64\nbatch 2\nsource web data\n' >a.run
exits 1 timeout 20 tokmap replay --trace pipe a.run 2>err
holds err 'this is not a file; name a trace'

if tokmap --version | grep -q 'reads .gz: yes' && command -v gzip >/dev/null 2>&1; then
    gzip -c long.txt >padded.txt.gz
    head -c 100000 /dev/zero >>padded.txt.gz
    tokmap pack -q --eod -o padded padded.txt.gz
    cmp padded.bin data.bin
    printf x >>padded.txt.gz
    exits 1 tokmap pack -q --eod --force -o padded padded.txt.gz 2>err
    holds err 'the bytes that follow are not gzip data'
fi

timeout 60 tokmap info 'synthetic:tokens=1099511627776,vocab=1000,document=1' --seq-len 2147483647 >out
holds out 'not counted; each row has many millions'

# A size in powers of 1000, where one in powers of 1024 is needed.
for size in 5M:5000000 16M:16000000 4Mi:4194304 6000000000:6000000000; do
    exits 2 tokmap copy --part-bytes ${size%:*} data other 2>err
    holds err "--part-bytes is ${size#*:} bytes, and must be a whole number of MiB from 5Mi to 1Gi (5M are 5000000 bytes: write 5Mi)"
done
