# The Tab key in zsh.
. "$TOKMAP_CLI/helpers.sh"
completes zsh
