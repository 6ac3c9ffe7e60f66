# SPDX-License-Identifier: MIT
# ci: nonroot
# The version, the CPU variant in use, and what this build can read.
. "$TOKMAP_CLI/helpers.sh"
version=$(sed -n 's/^#define TOKMAP_VERSION_STRING "\(.*\)"/\1/p' "$TOKMAP_TREE/include/tokmap/tokmap.h")
tokmap --version >out
equal "$(head -n 1 out)" "tokmap $version"
holds out "reads .gz: "
tokmap -V >two
same out two
tokmap --version --json >out
json out
holds out "\"version\": \"$version\""
holds out '"cpu": "'
# It says what decides whether a file is accepted: the input formats and whether PCRE2 is in.
for name in pcre2 reads_gz reads_zst reads_bz2 reads_xz reads_lz4; do
    case $(field out $name) in true | false) ;; *) equal "$(field out $name)" "true or false" $name ;; esac
done
equal "$(field out input_formats.0)" text
has=$(grep -o '"Snappy"\|"gzip"\|"Brotli"\|"zstd"\|"LZ4"' out | wc -l | tr -d ' ')
equal "$(field out input_formats.1)" jsonl
pcre2=$(field out pcre2)
tokmap --version >out
holds out 'input formats: text, jsonl'
equal "$(sed -n 's/^Parquet codecs: //p' out | tr ',' '\n' | wc -l | tr -d ' ')" "$has"
sed -n 's/^Parquet codecs: //p' out | grep -q zstd || exit 1
case $pcre2 in
true) holds out 'split patterns: all (PCRE2)' ;;
*) holds out 'split patterns: only those with a scanner of their own (built without PCRE2)' ;;
esac
# Every format that it lists is a value of --input-format.
printf x >x
for format in $(sed -n 's/^input formats: //p' out | tr -d ,); do
    tokmap encode --input-format "$format" x >out 2>err || ! grep -q 'takes one of' err
done
# TOKMAP_CPU caps the variant, and an unknown value is refused.
TOKMAP_CPU=scalar tokmap --version >out
holds out 'CPU variant: scalar'
TOKMAP_CPU=scalar tokmap --version --json >out
json out
holds out '"cpu": "scalar"'
for arguments in --version 'order --windows 3 --seed 1'; do
    # shellcheck disable=SC2086 # several words
    exits 2 env TOKMAP_CPU=fast tokmap $arguments 2>err
    holds err "TOKMAP_CPU is 'fast'"
done
exits 2 tokmap --version extra 2>err
holds err "no operand is expected; got 'extra'"
