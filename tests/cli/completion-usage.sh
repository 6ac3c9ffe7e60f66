# SPDX-License-Identifier: MIT
# tokmap completion: the scripts as they are installed, and misuse.
. "$TOKMAP_CLI/helpers.sh"
for shell in bash zsh fish; do
    tokmap completion $shell >script
    same script "$TOKMAP_TREE/tokenize_tools/commands/completion/tokmap.$shell"
done
exits 2 tokmap completion 2>err
holds err "name the shell: bash, zsh, or fish"
exits 2 tokmap completion tcsh 2>err
holds err "not for 'tcsh'"
exits 2 tokmap completion bash zsh 2>err
