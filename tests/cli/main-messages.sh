# SPDX-License-Identifier: MIT
# ci: nonroot
# A name that a user passes cannot act on the terminal through a message, and may have any length.
. "$TOKMAP_CLI/helpers.sh"
name=$(printf 'a\033]0;title\007b\177')
exits 1 tokmap info "$name" 2>err
holds err 'a^[]0;title^Gb^?'
exits 2 tokmap "$name" 2>err
holds err 'a^[]0;title^Gb^?'
exits 2 tokmap info "--$name" 2>err
holds err 'a^[]0;title^Gb^?'
long=$(printf '%6000s' x | tr ' ' y)
exits 1 tokmap info "$long" 2>err
exits 2 tokmap "$long" 2>err
exits 2 tokmap info "--$long" 2>err
exits 2 tokmap info --seq-len "$long" x 2>err
