# SPDX-License-Identifier: MIT
# The Tab key in zsh.
. "$TOKMAP_CLI/helpers.sh"
completes zsh
