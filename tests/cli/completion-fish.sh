# SPDX-License-Identifier: MIT
# The Tab key in fish.
. "$TOKMAP_CLI/helpers.sh"
completes fish
