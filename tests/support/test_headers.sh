#!/bin/sh
# SPDX-License-Identifier: MIT
# test_headers.sh: each public header compiles alone and without warnings, as strict C and as C++, and may be included
# twice. So do the examples in its comments: the text between the lines " * @code" and " * @endcode".
set -u
scratch=$(mktemp -d "${TMPDIR:-/tmp}/headers.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT

# What the examples use of the program that they are part of.
cat >"$scratch/program.h" <<'END'
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tokmap/tokmap.h"
#include "tokmap/cuda.h"
#include "tokmap/tokenizer.h"
#include "tokmap/pack.h"
void fatal(const struct tokmap_error *error) __attribute__((noreturn));
void train(const int32_t *inputs, const int32_t *targets, uint64_t rows);
void save(const char *text);
int found(void *user, const struct tokmap_place *place);
extern int interrupted;
extern int32_t *inputs, *targets;
extern uint64_t rank, world;
extern const char *saved_text;
extern struct tokmap_dataset *dataset;
extern struct tokmap_run *run;
extern struct tokmap_loader *loader;
extern struct tokmap_tokenizer *tokenizer;
extern struct CUstream_st *stream;
END

# Writes example N of a header to $scratch/example-N.c, as the body of a function; prints the number of examples, or
# "unbalanced" if a marker has no counterpart.
extract()
{
    awk -v folder="$scratch" '
        /^ *\*? *@code$/ {
            if (inside) bad = 1
            inside = 1
            file = folder "/example-" ++count ".c"
            printf "#include \"program.h\"\nvoid example(void);\nvoid example(void)\n{\n" >file
            printf "#line %d \"%s\"\n", NR + 1, FILENAME >file
            next
        }
        /^ *\*? *@endcode$/ {
            if (!inside) bad = 1
            inside = 0
            print "}" >file
            close(file)
            next
        }
        /@code|@endcode/ && !/compiles/ { bad = 1 }
        inside { sub(/^ \* ?/, ""); print >file }
        END { print bad || inside ? "unbalanced" : count + 0 }' "$1"
}

compile_example()
{
    $CC -std=c11 -pedantic -Wall -Wextra -Werror -Iinclude -I"$scratch" -fsyntax-only -x c "$1"
}

for header in include/tokmap/*.h; do
    name=$(basename "$header")
    for standard in c11 c17 gnu11; do
        if printf '#include "tokmap/%s"\nint main(void) { return 0; }\n' "$name" |
            $CC -std=$standard -pedantic -Wall -Wextra -Wstrict-prototypes -Werror -Iinclude -fsyntax-only -x c -; then
            echo "ok - $name as $standard"
        else
            echo "not ok - $name as $standard"
        fi
    done
    for standard in c++11 c++17; do
        if ! printf '#include <new>\n' | $CXX -std=$standard -fsyntax-only -x c++ - 2>/dev/null; then
            echo "ok - $name as $standard # SKIP there is no C++ compiler ($CXX)"
        elif printf '#include "tokmap/%s"\nint main() { return 0; }\n' "$name" |
            $CXX -std=$standard -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ -; then
            echo "ok - $name as $standard"
        else
            echo "not ok - $name as $standard"
        fi
    done
    if printf '#include "tokmap/%s"\n#include "tokmap/%s"\n' "$name" "$name" |
        $CC -std=c11 -Werror -Iinclude -fsyntax-only -x c -; then
        echo "ok - $name included twice"
    else
        echo "not ok - $name included twice"
    fi
    examples=$(extract "$header")
    if [ "$examples" = unbalanced ] || [ "$examples" -lt 1 ]; then
        echo "not ok - the examples of $name are marked by pairs of @code and @endcode ($examples)"
        continue
    fi
    example=0
    while [ $((example += 1)) -le "$examples" ]; do
        if compile_example "$scratch/example-$example.c"; then
            echo "ok - example $example of $name"
        else
            echo "not ok - example $example of $name"
        fi
    done
done

# Every struct whose first member is its size has a macro that initializes it, in C and in C++.
{
    for header in include/tokmap/*.h; do
        printf '#include "tokmap/%s"\n' "$(basename "$header")"
    done
    printf 'int sizes_are_set(void);\nint sizes_are_set(void)\n{\n    int all = 1;\n'
    awk '/^struct tokmap_[a-z_]+ \{/ { name = $2; next }
        name && /^    size_t size;/ {
            printf "    {\n        struct %s made = %s_INIT;\n", name, toupper(name)
            print "        all = all && made.size == sizeof made;\n    }"
        }
        { name = "" }' include/tokmap/*.h
    printf '    return all;\n}\n'
} >"$scratch/macros.c"
if [ "$(grep -c ' made = ' "$scratch/macros.c")" -ge 30 ]; then
    echo "ok - the structs with a size are found"
else
    echo "not ok - the structs with a size are found ($(grep -c ' made = ' "$scratch/macros.c"))"
fi
if $CC -std=c11 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only "$scratch/macros.c"; then
    echo "ok - the _INIT macros in C"
else
    echo "not ok - the _INIT macros in C"
fi
if ! printf '#include <new>\n' | $CXX -std=c++11 -fsyntax-only -x c++ - 2>/dev/null; then
    echo "ok - the _INIT macros in C++ # SKIP no C++ compiler ($CXX)"
elif $CXX -std=c++11 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ "$scratch/macros.c"; then
    echo "ok - the _INIT macros in C++"
else
    echo "not ok - the _INIT macros in C++"
fi

# The check of examples can fail.
printf '/*\n * @code\n *     tokmap_nothing();\n * @endcode\n */\n' >"$scratch/wrong.h"
printf '/*\n * @code\n *     int i = 0;\n */\n' >"$scratch/open.h"
if [ "$(extract "$scratch/wrong.h")" = 1 ] && ! compile_example "$scratch/example-1.c" 2>/dev/null &&
    [ "$(extract "$scratch/open.h")" = unbalanced ]; then
    echo "ok - a wrong example is found"
else
    echo "not ok - a wrong example is found"
fi
