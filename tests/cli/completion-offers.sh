# SPDX-License-Identifier: MIT
# What the commands offer to a shell for the word at the cursor.
. "$TOKMAP_CLI/helpers.sh"
# offers WORD...: the offers of `tokmap` without descriptions, sorted and on one line.
offers()
{
    tokmap --complete "$@" >out
    equal "$(sed 's/	.*//' out | sort | tr '\n' ' ' | sed 's/ $//')" "$wanted" "offers for '$*':"
}
tokmap --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | sort >commands
tokmap --complete '' | sed 's/	.*//' | grep -v '^-\|^help$' | sort >got
same got commands
wanted="verify" offers ve
wanted="verify" offers help ve
wanted="--version" offers --v
wanted="--json" offers --version --j
wanted="bash fish zsh" offers completion ''
# Options come from the table of the command: exactly those of --help-all.
while read -r command; do
    tokmap "$command" --help-all | sed -n 's/^  \(-., \|    \)--\([a-z][a-z0-9-]*\).*/--\2/p' | sort >options
    tokmap --complete "$command" -- | sed 's/	.*//' | sort >got
    same got options
done <commands
tokmap --complete pack --tok | grep -q '^--tokenizer	the tokenizer file' || exit 1
tokmap-bench --complete train --batch-t | grep -q '^--batch-tokens	' || exit 1
tokmap-bench --complete '' | grep -qx train || exit 1
tokmap-bench --list | sed 's/ .*//' | sort >cases
tokmap-bench --complete '' | grep -vx all | sort >got
same got cases
! tokmap-bench --complete -- | grep -q '^--child' || exit 1
# Values: choices as documented, in both forms; files; nothing where any number is possible.
wanted="error recognize text" offers encode --special ''
wanted="--special=recognize" offers encode --special=re
wanted="error" offers pack --invalid-utf8 e
wanted=":files" offers pack --tokenizer ''
wanted=":files" offers pack -t x
wanted=":files" offers pack -qt ''
wanted=":files" offers pack -qo ''
wanted="" offers pack --max-record ''
wanted=":files" offers pack -o out ''
wanted=":files" offers pack -- --f
wanted="" offers pack --no-such-option=x
wanted="" offers nothing ''
tokmap-bench --complete loader --dir '' >out
equal "$(cat out)" ":folders"
# Datasets without .tmx, manifests, run files, and the folders on the way; if the folder has nothing of this, all files.
mkdir -p 'data/a b' data/.hidden data/empty
printf text >text
tokmap pack -q -o data/web text
tokmap pack -q -o 'data/with blank' text
printf 'seq_len 4\nbatch 1\nseed 1\nsource web data/web\n' >train.run
printf 'tokmap-shards 1\ndata/web\n' >data/both
printf 'tokmap' >data/short
wanted="data/ train.run" offers info ''
wanted="data/a b/ data/both data/empty/ data/web data/with blank" offers info data/
wanted="data/web data/with blank" offers verify data/w
wanted="data/.hidden/" offers verify data/.
wanted="train.run" offers show --step 5 t
wanted=":files" offers show te
wanted=":files" offers info no/such/folder/x
HOME=$PWD wanted='~/data/web' offers audit '~/data/we'
tokmap-bench --complete loader data/we >out
equal "$(cat out)" data/web
# Words that an option knows: templates of conversations, and else files; words of a list, each after a comma.
wanted="qwen2.5 qwen3 qwen3-2507" offers pack --chat-template qw
wanted="--chat-template=zephyr" offers pack --chat-template=ze
wanted=":files" offers pack --chat-template my-
wanted="-calls -thinking assistant last system tool user" offers pack --learn ''
wanted="assistant,-calls assistant,-thinking" offers pack --learn assistant,-
wanted="--learn=assistant,tool,last" offers pack --learn=assistant,tool,l
wanted="datatrove llmc megatron nanogpt olmo" offers pack --also ''
wanted="megatron,olmo" offers pack --also megatron,o
wanted="kimi llama3 llama4" offers encode --cut-as ''
wanted="auto" offers pack --task a
wanted="document" offers pack --fim-unit d
wanted=":files" offers show --exposures ''
# The message about a wrong one has the same words.
ranks
for option in '--pattern gpt2 --chat-template' --pattern; do
    # shellcheck disable=SC2086 # words
    exits 1 tokmap pack -t v.tiktoken --messages-field m $option no -o none text 2>err
    holds err "'no'"
    tokmap --complete pack ${option##* } '' | while read -r word; do holds err "$word"; done
done
# The sources and validation sets of the run that was named before.
printf ' source\tweb  data/web # text\nsource code data/web\r\nvalidation  web-val data/web\nphase 0 web 1\nsources x y\n' \
    >mixed.run
cp mixed.run home.run
wanted="code web web-val" offers find mixed.run --source ''
wanted="web web-val" offers show --step 5 mixed.run --source w
wanted="--source=code" offers find mixed.run -d 3 --source=c
HOME=$PWD wanted="code" offers find '~/home.run' --source c
wanted="" offers find --source ''
wanted="" offers find data/web --source ''
wanted="" offers find no-such.run --source ''
# Subjects of manual pages.
tokmap --help | sed -n 's/^Subjects.*: //p' | tr -d , | tr ' ' '\n' >subjects
tokmap --complete help '' | sed -n 's/	open the manual page$//p' >got
[ -s got ] && same got subjects
# Every command that takes datasets or files offers them.
while read -r command; do
    case $command in order | completion) continue ;; esac
    [ "$(tokmap --complete "$command" data/we)" = data/web ] || [ "$(tokmap --complete "$command" data/we)" = :files ] ||
        { echo "tokmap $command offers nothing for its operands" >&2; exit 1; }
done <commands
# A name with a newline cannot be offered, and a long one does no harm.
mkdir 'new
line'
wanted=":files" offers info ne
long=$(printf '%6000s' x | tr ' ' y)
wanted=":files" offers info "$long"
wanted="" offers pack "--$long"
wanted="" offers pack "--$long=x"
wanted=":files" offers pack "-q$long" ''
# Without words it is an unknown option, as any other.
exits 2 tokmap --complete 2>err
holds err "unknown option '--complete'"
exits 2 tokmap pack --complete 2>err
holds err "unknown option '--complete'"
