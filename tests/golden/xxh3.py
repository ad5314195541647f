# SPDX-License-Identifier: Apache-2.0
"""XXH3, 64 bits, seed 0: written from its specification, so that the independent reader needs nothing but Python."""

import struct

MASK = (1 << 64) - 1
PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def avalanche_64(h):
    h = (h ^ h >> 33) * PRIME64[1] & MASK
    h = (h ^ h >> 29) * PRIME64[2] & MASK
    return h ^ h >> 32


def rotate(h, bits):
    return (h << bits | h >> (64 - bits)) & MASK


def short(data):
    size = len(data)
    if size == 0:
        return avalanche_64(u64(SECRET, 56) ^ u64(SECRET, 64))
    if size <= 3:
        mixed = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return avalanche_64(mixed ^ u32(SECRET, 0) ^ u32(SECRET, 4))
    if size <= 8:
        h = (u32(data, size - 4) + (u32(data, 0) << 32)) ^ u64(SECRET, 8) ^ u64(SECRET, 16)
        h = (h ^ rotate(h, 49) ^ rotate(h, 24)) * 0x9FB21C651E98DF25 & MASK
        h = (h ^ (h >> 35) + size) * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    low = u64(data, 0) ^ u64(SECRET, 24) ^ u64(SECRET, 32)
    high = u64(data, size - 8) ^ u64(SECRET, 40) ^ u64(SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return avalanche((size + swapped + high + fold(low, high)) & MASK)


def mix(data, at, secret_at):
    return fold(u64(data, at) ^ u64(SECRET, secret_at), u64(data, at + 8) ^ u64(SECRET, secret_at + 8))


def medium(data):
    size = len(data)
    h = size * PRIME64[0]
    if size <= 128:
        for i in reversed(range((size - 1) // 32 + 1)):
            h += mix(data, 16 * i, 32 * i) + mix(data, size - 16 * (i + 1), 32 * i + 16)
        return avalanche(h & MASK)
    for i in range(8):
        h += mix(data, 16 * i, 16 * i)
    h = avalanche(h & MASK)
    for i in range(8, size // 16):
        h += mix(data, 16 * i, 16 * (i - 8) + 3)
    return avalanche((h + mix(data, size - 16, 136 - 17)) & MASK)


def accumulate(lanes, data, at, secret_at):
    words = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", SECRET, secret_at)
    for i in range(8):
        key = words[i] ^ keys[i]
        lanes[i ^ 1] = (lanes[i ^ 1] + words[i]) & MASK
        lanes[i] = (lanes[i] + (key & 0xFFFFFFFF) * (key >> 32)) & MASK


def long(data):
    size = len(data)
    lanes = [PRIME32[2], PRIME64[0], PRIME64[1], PRIME64[2], PRIME64[3], PRIME32[1], PRIME64[4], PRIME32[0]]
    for stripe in range((size - 1) // 64):
        accumulate(lanes, data, 64 * stripe, 8 * (stripe % 16))
        if stripe % 16 == 15:
            for i in range(8):
                lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ u64(SECRET, 128 + 8 * i)) * PRIME32[0] & MASK
    accumulate(lanes, data, size - 64, 192 - 64 - 7)
    h = size * PRIME64[0]
    for i in range(4):
        h += fold(lanes[2 * i] ^ u64(SECRET, 11 + 16 * i), lanes[2 * i + 1] ^ u64(SECRET, 19 + 16 * i))
    return avalanche(h & MASK)


def xxh3_64(data):
    if len(data) <= 16:
        return short(data)
    return medium(data) if len(data) <= 240 else long(data)
