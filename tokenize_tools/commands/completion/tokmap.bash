# SPDX-License-Identifier: MIT
# Completion of tokmap and tokmap-bench in bash. The commands themselves print what can come next; src/cli/complete.h
# describes their answer.
#
# Installed, the package bash-completion loads it. Without that: source <(tokmap completion bash)

# Sets the array `words` to the words of $1, without their quotes. Readline also splits at = and :, so COMP_WORDS does not
# have the words that the command will get.
_tokmap_words()
{
    local line=$1 word='' quote='' char
    local -i i inside=0
    words=()
    for ((i = 0; i < ${#line}; i++)); do
        char=${line:i:1}
        if [[ $quote ]]; then
            if [[ $char == "$quote" ]]; then
                quote=
                continue
            elif [[ $char == \\ && $quote == '"' ]]; then
                char=${line:++i:1}
            fi
        elif [[ $char == [[:space:]] ]]; then
            ((inside)) && words+=("$word")
            word=
            inside=0
            continue
        elif [[ $char == [\'\"] ]]; then
            quote=$char
            inside=1
            continue
        elif [[ $char == \\ ]]; then
            char=${line:++i:1}
        fi
        word+=$char
        inside=1
    done
    words+=("$word")
}

_tokmap()
{
    local program=$1 offers line word before=''
    local -a words
    COMPREPLY=()
    [[ $program == '~/'* ]] && program=$HOME/${program#'~/'}
    _tokmap_words "${COMP_LINE:0:COMP_POINT}"
    offers=$("$program" --complete "${words[@]:1}" 2>/dev/null) || return 0
    word=${words[-1]}
    # Readline replaces only what follows the last = or :.
    [[ $word == *[=:]* && $COMP_WORDBREAKS == *=* ]] && before=${word%"${word##*[=:]}"}
    while IFS= read -r line; do
        case $line in
        '') ;;
        :files) return 0 ;; # `complete -o default` below then offers files
        :folders)
            compopt -o filenames
            while IFS= read -r line; do
                COMPREPLY+=("$line")
            done < <(compgen -d -- "${word#"$before"}")
            ;;
        *)
            line=${line%%$'\t'*}
            # Readline quotes blanks in the names of files only. A folder is not followed by a blank.
            [[ $line == *[/\ ]* ]] && compopt -o filenames
            [[ $line == */ ]] && compopt -o nospace
            COMPREPLY+=("${line#"$before"}")
            ;;
        esac
    done <<<"$offers"
    ((${#COMPREPLY[@]})) || compopt +o default +o bashdefault
    return 0
}

complete -o bashdefault -o default -F _tokmap tokmap tokmap-bench
