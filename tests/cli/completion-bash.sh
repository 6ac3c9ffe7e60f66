# The Tab key in bash.
. "$TOKMAP_CLI/helpers.sh"
completes bash
