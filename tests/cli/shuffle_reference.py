# SPDX-License-Identifier: MIT
"""The order of `tokmap pack --shuffle`, from its definition in src/order/ORDER.md, with the standard library alone.

Usage: shuffle_reference.py SEED <places >order, or shuffle_reference.py --keys SEED <places >keys

Each line of `places` has the number of an input and the position of a document in it. The lines come back in the
shuffled order, or each with its key. XXH3-128 is here as its specification defines it for 17 to 128 bytes.
"""
import sys

M = (1 << 64) - 1
P1, P2, P4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364")


def load(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def mix(data, at, secret):
    product = (load(data, at) ^ load(SECRET, secret)) * (load(data, at + 8) ^ load(SECRET, secret + 8))
    return (product & M) ^ (product >> 64)


def avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & M
    return h ^ h >> 32


def xxh3_128(data):
    assert 17 <= len(data) <= 128
    low, high = len(data) * P1 & M, 0
    for i in reversed(range((len(data) - 1) // 32 + 1)):
        a, b, secret = 16 * i, len(data) - 16 * (i + 1), 32 * i
        low = (low + mix(data, a, secret) & M) ^ (load(data, b) + load(data, b + 8) & M)
        high = (high + mix(data, b, secret + 16) & M) ^ (load(data, a) + load(data, a + 8) & M)
    return avalanche(low + high & M) | (-avalanche(low * P1 + high * P4 + len(data) * P2 & M) & M) << 64


def word(number):
    return number.to_bytes(8, "little")


def key(seed, number, position):
    return xxh3_128(b"document" + word(seed) + word(8) + word(number) + word(position))


def main():
    seed = int(sys.argv[-1])
    places = [tuple(map(int, line.split())) for line in sys.stdin]
    if sys.argv[1] == "--keys":
        for place in places:
            print(*place, f"{key(seed, *place):032x}")
        return
    for place in sorted(places, key=lambda place: (key(seed, *place), place)):
        print(*place)


if __name__ == "__main__":
    main()
