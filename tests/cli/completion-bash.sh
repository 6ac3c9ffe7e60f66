# The Tab key in bash, without and with the package bash-completion.
. "$TOKMAP_CLI/helpers.sh"
completes bash
[ -f /usr/share/bash-completion/bash_completion ] || skip "the package bash-completion is not installed"
rm -r data; completes bash bash-completion
