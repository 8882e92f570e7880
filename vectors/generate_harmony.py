#!/usr/bin/env python3
"""Writes vectors/harmony.json: Harmony computed a second time, from the definition, sharing no code with the Rust crates.

Needs nothing but Python: AES is written out below, and checked against FIPS 197.
cases: each fixes a table (in full), the cut and the key, and gives:
  generation         in full: version 1 (u32), key, the hint of each segment
  lookups_made       one after the other: the record, and which content of the unused segments was drawn (a record below N, or empty number drawn - N of
                     those that are left, where those in the wanted record's segment come first); the query; the journal's change (with the contents
                     of the segment, and where each of them moves, 0xffffffff for an empty); the answer; the change that it brings; the record
  generation_after   in full
Everything is little-endian. Walks are made from their beginnings, and contents are listed, cell by cell, instead of computed.
"""
import json, pathlib, random, struct

# AES-128, from FIPS 197.
def xtime(a): return (a << 1 ^ (0x1b if a & 0x80 else 0)) & 0xff
def times(a, b):
    product = 0
    while b:
        if b & 1: product ^= a
        a, b = xtime(a), b >> 1
    return product
def s_box(a):
    inverse = next((b for b in range(256) if times(a, b) == 1), 0)
    rotated = [(inverse << n | inverse >> 8 - n) & 0xff for n in range(5)]
    out = 0x63
    for r in rotated: out ^= r
    return out
SBOX = [s_box(a) for a in range(256)]
TWO, THREE = [times(a, 2) for a in range(256)], [times(a, 3) for a in range(256)]

class AES:
    def __init__(self, key):
        words, rcon = [list(key[4 * i:4 * i + 4]) for i in range(4)], 1
        for i in range(4, 44):
            word = list(words[-1])
            if i % 4 == 0:
                word = [SBOX[b] for b in word[1:] + word[:1]]
                word[0] ^= rcon
                rcon = xtime(rcon)
            words.append([a ^ b for a, b in zip(words[i - 4], word)])
        self.keys = [sum(words[4 * r:4 * r + 4], []) for r in range(11)]
        self.known = {}

    def encrypt(self, block):
        if block not in self.known:
            self.known[block] = self.rounds(block)
        return self.known[block]

    def rounds(self, block):
        state = [a ^ b for a, b in zip(block, self.keys[0])]
        for r in range(1, 11):
            state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
            if r < 10:
                mixed = []
                for c in range(0, 16, 4):
                    a, b, d, e = state[c:c + 4]
                    mixed += [TWO[a] ^ THREE[b] ^ d ^ e, a ^ TWO[b] ^ THREE[d] ^ e, a ^ b ^ TWO[d] ^ THREE[e], THREE[a] ^ b ^ d ^ TWO[e]]
                state = mixed
            state = [a ^ b for a, b in zip(state, self.keys[r])]
        return bytes(state)

assert AES(bytes(range(16))).encrypt(bytes.fromhex("00112233445566778899aabbccddeeff")).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"

def phases(k):
    """The fewest phases of five rounds with 8 C^1.5 / (r+4) * ((Q+C)/2C)^(r/4+1) <= 2^-64 for C = 2^k, Q = C/2; compared as fourth powers, with integers."""
    r = 5
    # 2^12 2^6k 3^(r+4) 2^256 <= (r+4)^4 4^(r+4)
    while 3 ** (r + 4) << (12 + 6 * k + 256) > (r + 4) ** 4 << 2 * (r + 4):
        r += 5
    return r // 5

class SwapOrNot:
    """Hoang, Morris, Rogaway: x changes places with x ^ K if the coin of that pair says so. The coins of five rounds come from one block."""
    def __init__(self, key, k):
        self.k, self.coins, keys = k, AES(key[:16]), AES(key[16:])
        word = lambda i: struct.unpack("<4I", keys.encrypt(struct.pack("<4I", i // 4, 0, 0, 0)))[i % 4] % (1 << k)
        self.keys = [word(i) for i in range(5 * phases(k))]
        self.cosets = {}

    def round(self, n, x):
        key = self.keys[n]
        if key == 0:
            return x
        phase, j = divmod(n, 5)
        if (phase, x) not in self.cosets:
            coset = {x}
            for other in self.keys[5 * phase:5 * phase + 5]:
                coset |= {y ^ other for y in coset}
            for y in coset:
                self.cosets[phase, y] = sorted(coset)
        coset = self.cosets[phase, x]
        pairs = [y for y in coset if y < y ^ key]
        number = pairs.index(min(x, x ^ key))
        coins = int.from_bytes(self.coins.encrypt(struct.pack("<4I", coset[0], phase, 0, 0)), "little")
        return x ^ key if coins >> (16 * j + number) & 1 else x

    def permute(self, x):
        for n in range(len(self.keys)):
            x = self.round(n, x)
        return x

def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))

class Harmony:
    """The arrangement is a list: content[c] is a record below N, an empty as N + its number, or None in used segments."""
    def __init__(self, n, w, t, k, key, table):
        self.n, self.w, self.t, self.k, self.key = n, w, t, k, key
        self.c, self.m = 1 << self.k, (1 << self.k) // t
        self.records = [table[i * w:][:w] for i in range(n)] + [bytes(w)]
        permutation = SwapOrNot(key, self.k)
        self.content = [None] * self.c
        for value in range(self.c):
            cell = permutation.permute(value)
            assert self.content[cell] is None
            self.content[cell] = value
        self.used = 0
        self.hints = [bytes(w)] * self.m
        for cell, value in enumerate(self.content):
            if value < n:
                self.hints[cell // t] = xor(self.hints[cell // t], self.records[value])

    def generation(self):
        return struct.pack("<I", 1) + self.key + b"".join(self.hints)

    def contents_of(self, segment):
        return self.content[segment * self.t:][:self.t]

    def lookup(self, index, drawn):
        n, t = self.n, self.t
        cell = self.content.index(index)
        segment, place = divmod(cell, t)
        contents = self.contents_of(segment)
        shown = [min(value, n) for value in contents]
        asked = list(shown)
        if drawn < n:
            if drawn not in shown: asked[place] = drawn
        elif drawn - n >= shown.count(n): asked[place] = n
        bits = n.bit_length()
        query = sum(value << bits * i for i, value in enumerate(asked)).to_bytes((t * bits + 7) // 8, "little")
        answer = b"".join(self.records[value] for value in asked)
        # The segment's i-th content moves to the empty number used * t + i.
        self.content[segment * t:(segment + 1) * t] = [None] * t
        moving = {n + self.used * t + i: value for i, value in enumerate(contents)}
        for other in range(self.c):
            value = self.content[other]
            while value in moving:
                value = moving[value]
            self.content[other] = value
        moved = [self.content.index(value) // t if value < n else 0xffffffff for value in contents]
        change = b"\x01" + struct.pack("<QI", self.used, cell) + struct.pack(f"<{2 * t}I", *shown, *moved)
        brought = b"\x02" + struct.pack("<Q", self.used) + answer
        record = self.hints[segment]
        for i, value in enumerate(shown):
            if i != place: record = xor(record, self.records[value])
        assert record == self.records[index]
        self.hints[segment] = bytes(self.w)
        for value, to in zip(shown, moved):
            if value < n: self.hints[to] = xor(self.hints[to], self.records[value])
        self.used += 1
        return {"index": index, "drawn": drawn, "query": query.hex(), "lookup_change": change.hex(), "answer": answer.hex(), "answer_change": brought.hex(), "record": record.hex()}

def case(n, w, t, k, seed):
    rng = random.Random(seed)
    table, key = rng.randbytes(n * w), rng.randbytes(32)
    harmony = Harmony(n, w, t, k, key, table)
    case = {"records": n, "record_len": w, "segment_records": t, "cells_log2": harmony.k, "lookups": harmony.m // 2, "table": table.hex(), "key": key.hex(), "generation": harmony.generation().hex()}
    made = []
    for number in range(harmony.m // 2):
        index = [rng.randrange(n), n - 1, 0][number % 3]
        left = harmony.c - number * t
        inside = [value for value in harmony.contents_of(harmony.content.index(index) // t) if value < n]
        # Now and then what is drawn is in the segment, or the wanted record, or an empty.
        drawn = [rng.randrange(left), rng.choice(inside), index, rng.randrange(n, left), n][number % 5]
        made.append(harmony.lookup(index, drawn))
    return {**case, "lookups_made": made, "generation_after": harmony.generation().hex()}

cases = [case(37, 3, 4, 7, 1), case(1, 1, 2, 4, 2), case(64, 5, 8, 7, 3), case(5, 4, 2, 5, 4), case(100, 1, 16, 8, 5), case(50, 2, 4, 10, 6)]
out = pathlib.Path(__file__).with_name("harmony.json")
out.write_text(json.dumps({"scheme": "harmony", "cases": cases}, indent=1) + "\n")
