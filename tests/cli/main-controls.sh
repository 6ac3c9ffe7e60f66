# SPDX-License-Identifier: MIT
# ci: nonroot
# Names may come from anyone: their control characters reach neither the terminal's escape sequences nor its 8-bit ones.
. "$TOKMAP_CLI/helpers.sh"
name=$(printf 'x\033]0;title\007\302\23331m')
printf 'a text\n' >plain.txt
# clean COMMAND...: runs the command, whatever its status, and checks what it prints.
clean()
{
    "$@" >out 2>err </dev/null || true
    cat out err | tr -d '\n\t' | LC_ALL=C grep -q "$(printf '[\001-\037\177]\|\302\233')" || return 0
    echo "FAULT: control characters in the output of $*" | cat -v >&2
    exit 1
}
clean tokmap pack -o "$name" plain.txt
holds out 'x^[]0;title^G\xc2\x9b31m.bin'
clean tokmap info "$name"
holds out 'x^[]0;title^G\xc2\x9b31m'
clean tokmap verify "$name"
holds out 'x^[]0;title^G\xc2\x9b31m: sound'
clean tokmap merge -o "all$name" "$name" "$name"
holds out 'allx^[]0;title^G\xc2\x9b31m: '
clean tokmap info "no$name"
holds err 'nox^[]0;title^G\xc2\x9b31m: '
mkdir "folder$name"
cp "$name.bin" "$name.tmx" "folder$name/"
head -c 3000 /dev/urandom | od -An -tx1 >other.txt
tokmap train-tokenizer -q --vocab-size 300 -o other other.txt
tokmap pack -q --no-eod -t other.json -o "folder$name/other" plain.txt
clean tokmap info "folder$name"
holds out 'folderx^[]0;title^G\xc2\x9b31m holds datasets'
holds out 'folderx^[]0;title^G\xc2\x9b31m/x^[]0;title^G\xc2\x9b31m '
tokmap merge -q -o list "$name"
printf 'seq_len 2\nbatch 1\nsource web list\npasses 1\n' >"$name.run"
clean tokmap audit --ranks 1 "$name.run"
holds out 'x^[]0;title^G\xc2\x9b31m.run: '
# JSON keeps the name: escape sequences of JSON are harmless, and a program must find the file.
tokmap info --json "$name" >out
holds out 'x\u001b]0;title\u0007'
