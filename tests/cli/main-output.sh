# SPDX-License-Identifier: MIT
# ci: nonroot
# If standard output cannot be written, the command fails with a message.
. "$TOKMAP_CLI/helpers.sh"
[ -w /dev/full ] || skip "no /dev/full here"
for arguments in --help --version "order --windows 10 --seed 1" "order --help"; do
    # shellcheck disable=SC2086 # several words
    exits 1 tokmap $arguments >/dev/full 2>err
    holds err "standard output could not be written: No space left on device"
    # A closed descriptor is a failure, too.
    exits 1 tokmap $arguments >&- 2>err
    holds err "standard output could not be written"
done
# The reason is not lost if results are flushed one by one.
printf 'text' >text
tokmap pack -q -o text text
printf '10 1 0 2 3\n' >lines
for arguments in 'order --stdin' 'verify text' 'show text -d 0' 'encode' 'decode'; do
    # shellcheck disable=SC2086 # several words
    case $arguments in decode) echo '97 98' ;; *) cat lines ;; esac >in
    exits 1 tokmap $arguments <in >/dev/full 2>err
    holds err "standard output could not be written: No space left on device"
done
