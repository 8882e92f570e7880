#!/usr/bin/env python3
"""Writes vectors/dpf.json: DPF-PIR computed a second time, from the paper, sharing no code with the Rust crates.

Boyle, Gilboa, Ishai: Function Secret Sharing: Improvements and Extensions, CCS 2016, Figure 1, with early termination.
Needs: pip install blake3 pycryptodome numpy mpmath
Queries, answers and records are given whole, in hex; everything can be recomputed from the fields of a case:
  table     BLAKE3's output stream of the text "a table"
  table id  sixteen bytes 07
  AES keys  left and right: the two halves of BLAKE3 derive_key("privet 2026-11 dpf tree", table id ‖ nonce)
  G(seed)   AES_left(seed) ^ seed, AES_right(seed) ^ seed: of each, the lowest bit of the first byte is the control bit, the rest is the child's seed
  Convert   AES_left(seed) ^ seed, all 128 bits
  coins     ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`: 16 bytes for the nonce, 16 for the root of party 0,
            16 for that of party 1; the lowest bit of the first byte of each root is replaced by the party's number
  bits      bit r % 128 of leaf r / 128, counted from the lowest bit of the first byte, selects record r
  query     nonce; root; for every level the correction seed with the left control correction as lowest bit; the right control corrections, one bit for
            every level, lowest first, in whole bytes; the final word
"""
import json, pathlib, struct
from blake3 import blake3
from Crypto.Cipher import AES
from generate_simplepir import chacha20_words

TABLE_ID = b"\7" * 16

def ciphers(nonce):
    """AES under the left and the right key of one lookup."""
    seed = blake3(TABLE_ID + nonce, derive_key_context="privet 2026-11 dpf tree").digest()
    return [AES.new(key, AES.MODE_ECB) for key in (seed[:16], seed[16:])]

def chacha20(key, count):
    return struct.pack(f"<{-(-count // 4)}I", *chacha20_words(key, -(-count // 4)))[:count]

def xor(*strings):
    return bytes(a ^ b for a, b in zip(*strings)) if len(strings) == 2 else xor(strings[0], xor(*strings[1:]))

def split(block):
    """A seed, whose lowest bit is zero, and a control bit."""
    return bytes([block[0] & 0xFE]) + block[1:], block[0] & 1

def mmo(cipher, seed):
    return xor(cipher.encrypt(seed), seed)

def grow(both, seed):
    """G: the left child's seed and control bit, and the right child's."""
    return [split(mmo(cipher, seed)) for cipher in both]

def generate(depth, index, coins):
    nonce, coins = coins[:16], coins[16:]
    both = ciphers(nonce)
    leaf, place = divmod(index, 128)
    path = [leaf >> (depth - 1 - level) & 1 for level in range(depth)]
    roots = [split(coins[:16])[0], split(coins[16:])[0]]
    seeds, controls, corrections = list(roots), [0, 1], []
    for turn in path:
        grown = [grow(both, seeds[party]) for party in (0, 1)]
        keep, lose = (1, 0) if turn else (0, 1)
        seed_correction = xor(grown[0][lose][0], grown[1][lose][0])
        control_corrections = [grown[0][0][1] ^ grown[1][0][1] ^ turn ^ 1, grown[0][1][1] ^ grown[1][1][1] ^ turn]
        for party in (0, 1):
            seed, control = grown[party][keep]
            if controls[party]:
                seed, control = xor(seed, seed_correction), control ^ control_corrections[keep]
            seeds[party], controls[party] = seed, control
        corrections.append((seed_correction, control_corrections))
    unit = (1 << place).to_bytes(16, "little")
    final = xor(mmo(both[0], seeds[0]), mmo(both[0], seeds[1]), unit)
    return [(nonce, roots[party], party, corrections, final) for party in (0, 1)]

def leaves(key, depth, count):
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
    assert len(level) == 1 << depth
    return [xor(mmo(both[0], seed), final) if control else mmo(both[0], seed) for seed, control in level][:count]

def encode(key):
    nonce, root, party, corrections, final = key
    out = nonce + bytes([root[0] | party]) + root[1:]
    rights = 0
    for level, (seed, (left, right)) in enumerate(corrections):
        out += bytes([seed[0] | left]) + seed[1:]
        rights |= right << level
    return out + rights.to_bytes(-(-len(corrections) // 8), "little") + final

def answer(bits, table, record_len):
    total = bytes(record_len)
    for r in range(len(table) // record_len):
        if bits[r // 128][r % 128 // 8] >> (r % 8) & 1:
            total = xor(total, table[r * record_len:(r + 1) * record_len])
    return total

def case(records, record_len, index, rng_seed):
    table = blake3(b"a table").digest(length=records * record_len)
    count = -(-records // 128)
    depth = (count - 1).bit_length()
    keys = generate(depth, index, chacha20(bytes([rng_seed] * 32), 48))
    expanded = [leaves(key, depth, count) for key in keys]
    difference = [xor(a, b) for a, b in zip(*expanded)]
    assert int.from_bytes(b"".join(difference), "little") == 1 << index
    answers = [answer(bits, table, record_len) for bits in expanded]
    record = xor(*answers)
    assert record == table[index * record_len:(index + 1) * record_len]
    return {
        "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed, "depth": depth,
        "table_blake3": blake3(table).hexdigest(),
        "queries": [encode(key).hex() for key in keys],
        "leaves_blake3": [blake3(b"".join(bits)).hexdigest() for bits in expanded],
        "answers": [total.hex() for total in answers], "record": record.hex(),
    }

cases = [
    case(1, 1, 0, 1), case(128, 3, 127, 2), case(129, 17, 128, 3), case(1000, 53, 513, 4), case(5000, 100, 0, 5),
    case(33000, 8, 32999, 6), case(140000, 5, 70001, 7), case(300, 1000, 150, 8),
]
path = pathlib.Path(__file__).with_name("dpf.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path}")
