# SPDX-License-Identifier: MIT
# Completion of tokmap and tokmap-bench in fish. The commands themselves print what can come next; src/cli/complete.h
# describes their answer.
#
# Installed, fish loads it. Without that: tokmap completion fish | source

function __tokmap_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -e words[1]
    # An offer is the whole word: what precedes a value in the same word, such as --dir=, is part of it.
    set -l before (string match -r '^--[^=]*=' -- $current)
    set -l value (string replace -r '^--[^=]*=' '' -- $current)
    for line in ($program --complete $words "$current" 2>/dev/null)
        switch $line
            case ':files'
                string replace -r '^' -- "$before" (__fish_complete_path $value)
            case ':folders'
                string replace -r '^' -- "$before" (__fish_complete_directories $value)
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c tokmap -f -a '(__tokmap_complete)'
complete -c tokmap-bench -f -a '(__tokmap_complete)'
