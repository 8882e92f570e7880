#!/usr/bin/env bash
# Installs what a fresh machine lacks to build Privet, or says in one sentence what is missing.
#   --tests      also what the tests of the documents' commands call
#   --cross      also the targets, the C compiler and Node, for checks on arm64 and WebAssembly
#   --valgrind   also valgrind, which checks that secrets decide no branch and no address
#   --emulator   also Bochs, which emulates AVX-512, and what makes a disc to start it from
#   --apt-index  also Debian's package index, which the example reads
#   --fronts     also the web servers of the recipes in docs/operating.md, which their tests start
#   --page       also Node and the target for browsers, for the client for the web
#   --web        the same, and Chromium, in which it is tested
#   --python     also Python with virtual environments, for the package
set -euo pipefail

tests=no cross=no valgrind=no emulator=no apt_index=no python=no fronts=no page=no web=no
for argument in "$@"; do
    case "$argument" in
        --tests) tests=yes ;;
        --cross) cross=yes ;;
        --valgrind) valgrind=yes ;;
        --emulator) emulator=yes ;;
        --apt-index) apt_index=yes ;;
        --fronts) fronts=yes ;;
        --python) python=yes ;;
        --page) page=yes ;;
        --web) page=yes web=yes ;;
        *) echo "install-tools.sh: unknown argument $argument" >&2; exit 2 ;;
    esac
done

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

updated=no
update_index() {
    [ "$updated" = yes ] || as_root apt-get update -qq
    updated=yes
}

# need COMMAND PACKAGE: installs Debian's PACKAGE if COMMAND is not there.
need() {
    command -v "$1" >/dev/null && return
    if command -v apt-get >/dev/null && update_index && as_root apt-get install -y -qq "$2" >/dev/null; then
        return
    fi
    echo "Privet needs the command $1 (on Debian: package $2); install it and try again." >&2
    exit 1
}

if ! command -v cargo >/dev/null; then
    echo "Privet needs Rust: install it from https://rustup.rs and try again." >&2
    exit 1
fi
# ring, the cryptography below TLS, compiles some C.
need cc gcc

if command -v rustup >/dev/null; then
    # The version and components that rust-toolchain.toml names.
    rustup show active-toolchain >/dev/null 2>&1 || rustup toolchain install
fi

if [ "$tests" = yes ]; then
    need openssl openssl
fi

if [ "$fronts" = yes ]; then
    PATH=$PATH:/usr/sbin need nginx nginx-light
    need caddy caddy
fi

if [ "$cross" = yes ]; then
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    # Its headers: a recommendation that some machines leave out.
    dpkg -s libc6-dev-arm64-cross >/dev/null 2>&1 || { update_index; as_root apt-get install -y -qq libc6-dev-arm64-cross >/dev/null; }
    rustup target add wasm32-unknown-unknown wasm32-wasip1 aarch64-unknown-linux-gnu
    need node nodejs
    rustup component add rustfmt clippy
fi

if [ "$page" = yes ]; then
    rustup target add wasm32-unknown-unknown
    need node nodejs
    need npm npm
fi

if [ "$web" = yes ]; then
    need chromium-headless-shell chromium-headless-shell
fi

if [ "$python" = yes ]; then
    need python3 python3
    # A part of Python that Debian has in a package of its own.
    python3 -c 'import ensurepip' 2>/dev/null || { update_index; as_root apt-get install -y -qq python3-venv >/dev/null; }
fi

if [ "$valgrind" = yes ]; then
    need valgrind valgrind
fi

if [ "$emulator" = yes ]; then
    # Most have no command of their own to look for.
    packages=(
        bochs bochsbios bochs-term vgabios busybox-static isolinux syslinux-common xorriso cpio
        binutils
    )
    if ! dpkg -s "${packages[@]}" >/dev/null 2>&1; then
        if ! command -v apt-get >/dev/null || ! update_index || ! as_root \
            apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null; then
            echo "The emulator of AVX-512 needs these packages of Debian; install them and try" \
                "again: ${packages[*]}" >&2
            exit 1
        fi
    fi
fi

if [ "$apt_index" = yes ]; then
    update_index
fi
