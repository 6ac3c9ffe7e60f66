# SPDX-License-Identifier: MIT
# Descriptions of tokenizer files as rows and as JSON; the message about a file that cannot be used says why.
. "$TOKMAP_CLI/helpers.sh"
tokmap tokenizer bytes | sed '/^ready in/d' >out
holds out "ends a document    256  <|endoftext|>"
holds out "largest id         256"
tokmap tokenizer --json bytes >json
json json
if command -v python3 >/dev/null; then
    equal "$(field json largest_id)" 256
    equal "$(field json added_tokens.0.text)" "<|endoftext|>"
    equal "$(field json bos)" null
fi
# Opening keeps nothing for other runs, with --no-cache, which has no effect, and without.
cp "$TOKMAP_TREE/tests/fuzz/corpus/fuzz_vocabulary/gpt2.json" gpt2.json
mkdir home
printf abcab | HOME=$PWD/home XDG_CACHE_HOME=$PWD/home tokmap encode -t gpt2.json >ids
printf abcab | HOME=$PWD/home XDG_CACHE_HOME=$PWD/home tokmap encode --no-cache -t gpt2.json >ids.no
same ids ids.no
equal "$(ls -A home)" ""
# A rank file of 256 bytes and two tokens, which does not contain its split pattern.
i=0
while [ $i -lt 256 ]; do
    printf "$(printf '\\%03o' $i)" | base64 | sed "s/\$/ $i/"
    i=$((i + 1))
done >small.tiktoken
printf 'YWI= 256\nYWJj 257\n' >>small.tiktoken
exits 1 tokmap tokenizer small.tiktoken 2>err
holds err "--pattern"
tokmap tokenizer --pattern gpt2 small.tiktoken >out
holds out "rank file"
exits 1 tokmap tokenizer --pattern nonsense small.tiktoken 2>err
holds err "nonsense"
printf '{"<|end|>": 300, "<x>": 258}' >special.json
tokmap tokenizer --pattern gpt2 --special-tokens special.json small.tiktoken >out
holds out "largest id         300"
holds out "258  special  <x>"
# special JSON MESSAGE: these special tokens are refused.
special() {
    printf '%s' "$1" >special.json
    exits 1 tokmap tokenizer --pattern gpt2 --special-tokens special.json small.tiktoken 2>err
    holds err "$2"
}
special '{"<|end|>": 97}' "which is a token of the file"
special '{"<|end|>": 300, "<x>": 300}' "two special tokens have the id 300"
special '{"<x>": 300, "<x>": 301}' "special.json: the special token '<x>' has two ids, 300 and 301; remove one of them"
special '{"<x>": "300"}' "special.json: the file is not a JSON object that maps the texts of special tokens to ids"
# A pattern of the user, if this build can match it; a folder means its only rank file.
mkdir folder
mv small.tiktoken folder
if tokmap tokenizer --pattern-regex '[a-z]+|[^a-z]' folder >out 2>err; then
    holds out "PCRE2"
else
    holds err "PCRE2"
fi
exits 1 tokmap tokenizer --pattern-regex '(?<name>a)' folder 2>err
holds err "pattern"
exits 1 tokmap tokenizer nowhere 2>err
holds err "nowhere"
exits 2 tokmap tokenizer 2>err
exits 2 tokmap tokenizer bytes bytes 2>err
exits 2 tokmap tokenizer --special sometimes bytes 2>err
# What is there in place of a file: a pointer of Git LFS, and a page that shows the file; alone, and in a folder.
mkdir cloned saved
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n' >cloned/tokenizer.json
printf '<!DOCTYPE html>\n<title>tokenizer.json</title>\n' >saved/tokenizer.json
for name in cloned/tokenizer.json cloned saved/tokenizer.json saved; do
    case $name in
    cloned*) wanted="the file is only a pointer of Git LFS; fetch the data that it stands for with 'git lfs pull'" ;;
    *) wanted='the file is a web page; download the file itself (on huggingface.co its URL has /resolve/, not /blob/)' ;;
    esac
    exits 1 tokmap tokenizer $name 2>err
    holds err "${name%/tokenizer.json}/tokenizer.json: $wanted"
    exits 1 tokmap tokenizer --pattern gpt2 $name 2>err
    holds err "$wanted"
done
# A named pipe is not waited for.
mkfifo pipe
exits 1 timeout 20 tokmap tokenizer pipe 2>err
holds err 'pipe: this is not a regular file, so it cannot be read as a vocabulary'
