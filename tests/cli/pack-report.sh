# The closing report, alone and with --quiet and --dry-run.
. "$TOKMAP_CLI/helpers.sh"
corpus
printf '{"text": 1}\n' >>in/c.jsonl
tokmap pack --on-error skip -o d in 2>err | sed 's/ in [0-9.]* .*s ([0-9.]* .*B\/s)$/ in TIME/'
holds err "tokmap pack: skipped: in/c.jsonl:16: the field 'text' is not a string"
tokmap pack -q --on-error skip --force -o d in >out 2>err
[ ! -s out ]
tokmap pack --dry-run --on-error skip in >out 2>err
holds out "would pack "
[ "$(ls | tr '\n' ' ')" = "d.bin d.tmx err in out " ]
