# SPDX-License-Identifier: MIT
# reference_venv.sh: finds or creates a Python environment that contains the reference tokenizers. Scripts source it.
#
# reference_venv MODULE...: sets REFERENCE_PYTHON to a Python that has these modules. Otherwise prints the reason and
# returns 1. It uses $TOKMAP_REFERENCE_PYTHON if that has the modules, and else build/venv, which the first caller
# creates.
#
# What is installed is named, with its hashes, by the file $REFERENCE_PACKAGES, so that a package that was changed on
# its way, or later, is refused: wheels only, and only those. Their own requirements are in the file as far as tests
# use them. One environment, build/venv-pip, has pip for all of them, because to install pip takes longer than most
# packages. Modules are compiled when they are first imported, since most never are.
REFERENCE_PACKAGES=tests/reference/tokenizers.txt

reference_has()
{
    [ -n "$1" ] && for reference_module in $reference_modules; do
        env -u PYTHONDONTWRITEBYTECODE "$1" -c "import $reference_module" >/dev/null 2>&1 || return 1
    done
}

reference_make()
{
    command -v "${PYTHON:-python3}" >/dev/null 2>&1 || { echo "Python is missing" && return 1; }
    mkdir -p "$BUILD_DIR" || return 1
    (
        command -v flock >/dev/null 2>&1 && flock 9
        reference_has "$reference_venv_folder/bin/python" && exit 0
        rm -rf "$reference_venv_folder"
        pip=$BUILD_DIR/venv-pip
        if ! [ -e "$pip/complete" ]; then
            rm -rf "$pip"
            "${PYTHON:-python3}" -m venv "$pip" >"$BUILD_DIR/venv.log" 2>&1 && touch "$pip/complete" || exit
        fi
        modules=$("$pip/bin/python" -c 'import os, pip; print(os.path.dirname(os.path.dirname(pip.__file__)))')
        "${PYTHON:-python3}" -m venv --without-pip "$reference_venv_folder" >"$BUILD_DIR/venv.log" 2>&1 &&
            PYTHONPATH=$modules "$reference_venv_folder/bin/python" -m pip install -q --disable-pip-version-check \
                --retries 1 --timeout 30 --no-compile --require-hashes --only-binary :all: --no-deps \
                -r "$REFERENCE_PACKAGES" >>"$BUILD_DIR/venv.log" 2>&1
    ) 9>"$BUILD_DIR/venv.lock"
    reference_has "$reference_venv_folder/bin/python" && return 0
    echo "$reference_modules are missing and could not be installed: $(grep . "$BUILD_DIR/venv.log" 2>/dev/null | tail -n 1)"
    return 1
}

reference_venv()
{
    reference_modules=$*
    reference_venv_folder=$BUILD_DIR/${REFERENCE_FOLDER:-venv}
    REFERENCE_PYTHON=${TOKMAP_REFERENCE_PYTHON:-}
    reference_has "$REFERENCE_PYTHON" && return 0
    REFERENCE_PYTHON=$reference_venv_folder/bin/python
    reference_has "$REFERENCE_PYTHON" || reference_make
}
