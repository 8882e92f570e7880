#!/usr/bin/env python3
"""Writes vectors/apir_dpf.json: APIR-DPF computed a second time, from the papers, sharing no code with the Rust crates.

Colombo, Nikitin, Corrigan-Gibbs, Wu, Ford: Authenticated private information retrieval, USENIX Security 2023; Boyle, Gilboa, Ishai: Function Secret
Sharing: Improvements and Extensions, CCS 2016, Figure 1, without early termination.
Needs: pip install blake3 pycryptodome numpy mpmath
Queries, answers and records are given whole, in hex; everything can be recomputed from the fields of a case:
  table     BLAKE3's output stream of the text "a table"
  table id  sixteen bytes 07
  tree      AES keys, G and Convert as in generate_dpf.py, with one leaf for each record
  coins     ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`: 16 bytes for alpha, 16 for the nonce, 16 for the root of party 0,
            16 for that of party 1; the lowest bit of the first byte of each root is replaced by the party's number
  field     polynomials over the field of two elements modulo x^128 + x^7 + x^2 + x + 1; bit i of a little-endian number is the coefficient of x^i
  elements  a record is cut into pieces of 16 bytes, the last filled up with zeros; each is a little-endian number
  query     nonce; root; for every level the correction seed with the left control correction as lowest bit; the right control corrections, one bit for
            every level, lowest first, in whole bytes; the final word
  answer    value: the XOR of the records whose node of the last level has its control bit set; then the tag: for each element the sum of leaf times element
"""
import json, pathlib
from blake3 import blake3
from generate_dpf import chacha20, ciphers, encode, grow, mmo, split, xor

def times(one, other):
    """A bit at a time."""
    product = 0
    for bit in range(128):
        if other >> bit & 1:
            product ^= one << bit
    for bit in reversed(range(128, 255)):
        if product >> bit & 1:
            product ^= (1 << 128 | 0x87) << (bit - 128)
    assert product < 1 << 128
    return product

def number(data):
    return int.from_bytes(data, "little")

def elements(record):
    return [number(record[at:at + 16]) for at in range(0, len(record), 16)]

def generate(depth, index, coins):
    alpha, nonce, coins = coins[:16], coins[16:32], coins[32:]
    both = ciphers(nonce)
    roots = [split(coins[:16])[0], split(coins[16:])[0]]
    seeds, controls, corrections = list(roots), [0, 1], []
    for level in range(depth):
        turn = index >> (depth - 1 - level) & 1
        grown = [grow(both, seed) for seed in seeds]
        keep, lose = (1, 0) if turn else (0, 1)
        seed_correction = xor(grown[0][lose][0], grown[1][lose][0])
        control_corrections = [grown[0][side][1] ^ grown[1][side][1] ^ (side == turn) for side in (0, 1)]
        for party in (0, 1):
            seed, control = grown[party][keep]
            if controls[party]:
                seed, control = xor(seed, seed_correction), control ^ control_corrections[keep]
            seeds[party], controls[party] = seed, control
        corrections.append((seed_correction, control_corrections))
    assert controls[0] ^ controls[1] == 1
    final = xor(mmo(both[0], seeds[0]), mmo(both[0], seeds[1]), alpha)
    return number(alpha), [(nonce, roots[party], party, corrections, final) for party in (0, 1)]

def ends(key, count):
    """For each record the control bit of its node, and its leaf."""
    nonce, seed, control, corrections, final = key
    both = ciphers(nonce)
    level = [(seed, control)]
    for seed_correction, control_corrections in corrections:
        below = []
        for seed, control in level:
            for side, (child, child_control) in enumerate(grow(both, seed)):
                if control:
                    child, child_control = xor(child, seed_correction), child_control ^ control_corrections[side]
                below.append((child, child_control))
        level = below
    return [(control, number(xor(mmo(both[0], seed), final) if control else mmo(both[0], seed))) for seed, control in level[:count]]

def answer(shares, records):
    value, tag = bytes(len(records[0])), [0] * len(elements(records[0]))
    for (control, leaf), record in zip(shares, records):
        if control:
            value = xor(value, record)
        tag = [total ^ times(leaf, element) for total, element in zip(tag, elements(record))]
    return value, tag

def case(records, record_len, index, rng_seed):
    table = blake3(b"a table").digest(length=records * record_len)
    rows = [table[at:at + record_len] for at in range(0, len(table), record_len)]
    depth = (records - 1).bit_length()
    alpha, keys = generate(depth, index, chacha20(bytes([rng_seed] * 32), 64))
    shares = [ends(key, records) for key in keys]
    for place, ((bit, leaf), (other_bit, other_leaf)) in enumerate(zip(*shares)):
        assert (bit ^ other_bit, leaf ^ other_leaf) == ((1, alpha) if place == index else (0, 0))
    answers = [answer(share, rows) for share in shares]
    record = xor(answers[0][0], answers[1][0])
    assert record == rows[index]
    assert [a ^ b for a, b in zip(answers[0][1], answers[1][1])] == [times(alpha, element) for element in elements(record)]
    encoded = [value + b"".join(element.to_bytes(16, "little") for element in tag) for value, tag in answers]
    return {
        "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed, "depth": depth,
        "table_blake3": blake3(table).hexdigest(), "alpha": alpha.to_bytes(16, "little").hex(),
        "queries": [encode(key).hex() for key in keys],
        "answers": [bytes_.hex() for bytes_ in encoded], "record": record.hex(),
    }

# x^254 by hand, and the inverse of x.
assert times(1 << 127, 1 << 127) == 1 << 127 | 1 << 126 | 0x1067
assert times(2, (1 << 128 | 0x87) >> 1) == 1
cases = [
    case(1, 1, 0, 1), case(2, 16, 1, 2), case(129, 17, 128, 3), case(1000, 53, 513, 4), case(1024, 32, 0, 5),
    case(3000, 8, 2999, 6), case(2500, 5, 1701, 7), case(60, 1000, 30, 8),
]
path = pathlib.Path(__file__).with_name("apir_dpf.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path}")
