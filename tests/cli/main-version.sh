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
