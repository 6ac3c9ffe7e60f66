# The version, and what this build can do.
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
