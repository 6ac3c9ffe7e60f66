# SPDX-License-Identifier: MIT
# The Tab key in bash.
. "$TOKMAP_CLI/helpers.sh"
completes bash
