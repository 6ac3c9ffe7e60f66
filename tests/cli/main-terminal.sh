# SPDX-License-Identifier: MIT
# ci: nonroot
# Names, texts, values, and vocabularies that came from anyone do not act on a terminal, in any command.
. "$TOKMAP_CLI/helpers.sh"
need_terminals
PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 "$TOKMAP_CLI/terminal_commands.py"
