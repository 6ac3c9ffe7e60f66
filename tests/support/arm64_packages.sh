# SPDX-License-Identifier: MIT
# arm64_packages.sh: unpacks packages of Debian for aarch64 below build/, so that this machine's apt gets no second
# architecture. Scripts source it.

# arm64_tools LOG: finds or installs the cross compiler and qemu, with apt, as root or with sudo. If they are missing,
# it prints the reason and returns 1.
arm64_tools_there() { command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null; }
arm64_tools() {
    arm64_tools_there && return
    command -v apt-get >/dev/null ||
        { echo "aarch64-linux-gnu-gcc or qemu-aarch64 is missing, and so is apt-get" && return 1; }
    as_root=
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    arm64_apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
    arm64_install() { arm64_apt install --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; }
    log=$1
    arm64_install || { arm64_apt update && arm64_install; }
    arm64_tools_there && return
    echo "gcc-aarch64-linux-gnu and qemu-user could not be installed: $(tail -n 1 "$log")"
    return 1
}

# arm64_download FOLDER LOG PACKAGE...: downloads packages, and what they depend on, to FOLDER/archives.
arm64_download() {
    folder_of_apt=$1 log_of_apt=$2
    shift 2
    rm -rf "$folder_of_apt"
    mkdir -p "$folder_of_apt/lists/partial" "$folder_of_apt/archives/partial" || return
    : >"$folder_of_apt/status"
    for command in update "install --no-install-recommends --download-only $*"; do
        # shellcheck disable=SC2086 # the words of a command are its arguments
        apt-get -q -y -o Dir::State="$folder_of_apt" -o Dir::State::status="$folder_of_apt/status" \
            -o Dir::Cache="$folder_of_apt" -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
            -o APT::Sandbox::User= -o Acquire::Retries=3 -o Debug::NoLocking=true $command >>"$log_of_apt" 2>&1 || return
    done
}

# arm64_libraries FOLDER LOG: makes FOLDER/root, which has the headers and libraries of aarch64 with which tokmap is
# built, unless it is there. If they cannot be downloaded, it prints the reason and returns 1.
arm64_libraries() {
    [ ! -e "$1/root/complete" ] || return 0
    command -v dpkg-deb >/dev/null || { echo "dpkg-deb is missing, which unpacks the aarch64 libraries" && return 1; }
    rm -rf "$1/root"
    mkdir -p "$1/root" || return
    if ! arm64_download "$1/apt" "$2" libzstd-dev libxxhash-dev libcmocka-dev libpcre2-dev libisal-dev libsnappy-dev \
        liblz4-dev libbrotli-dev libbz2-dev liblzma-dev; then
        echo "the aarch64 libraries could not be downloaded: $(tail -n 1 "$2")"
        return 1
    fi
    for package in "$1"/apt/archives/lib*.deb; do
        case ${package##*/} in
        libzstd* | libxxhash* | libcmocka* | libpcre2-8* | libpcre2-dev* | libisal* | libsnappy* | liblz4* | \
            libbrotli* | libbz2* | liblzma* | libstdc++6* | libgcc-s1*)
            dpkg-deb -x "$package" "$1/root" || return ;;
        esac
    done
    # Debian 12 has some libraries in /lib, and links to them from /usr/lib. They move beside the others.
    [ ! -d "$1/root/lib" ] || cp -a "$1/root/lib/." "$1/root/usr/lib/" || return
    for link in "$1/root/usr"/lib/aarch64-linux-gnu/*.so; do
        case $(readlink "$link") in /*) ln -sf "$(basename "$(readlink "$link")")" "$link" ;; esac
    done
    rm -rf "$1/apt"
    touch "$1/root/complete"
}
