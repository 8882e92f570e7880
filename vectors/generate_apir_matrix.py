#!/usr/bin/env python3
"""Writes vectors/apir_matrix.json: APIR-Matrix with a Merkle tree computed a second time, from its description, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome numpy mpmath
Queries, answers and records are given whole, in hex; everything can be recomputed from the fields of a case:
  table    BLAKE3's output stream of the text "a table"
  leaf     BLAKE3 of the record's number (u64, little-endian) and the record, under the key derive_key("privet 2026-11 merkle leaf", nothing);
           records beyond the table's end are zeros
  node     BLAKE3 of the left and the right node below, under the key derive_key("privet 2026-11 merkle node", nothing);
           a node with no row below it is 32 zero bytes
  row      its records, and the siblings on the way from its node to the root, the lowest first
  coins    ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`: a bit for each row, in whole bytes, the lowest first;
           bits that are for no row are cleared
  query    of server 0, the coins; of server 1, the same with the wanted row's bit flipped
"""
import json, pathlib, struct
from blake3 import blake3
from generate_simplepir import chacha20_words

LEAF_KEY = blake3(b"", derive_key_context="privet 2026-11 merkle leaf").digest()
NODE_KEY = blake3(b"", derive_key_context="privet 2026-11 merkle node").digest()

NOTHING = bytes(32)

def chacha20(key, count):
    return struct.pack(f"<{-(-count // 4)}I", *chacha20_words(key, -(-count // 4)))[:count]

def leaf(index, record):
    return blake3(struct.pack("<Q", index) + record, key=LEAF_KEY).digest()

def node(left, right):
    return NOTHING if left == NOTHING else blake3(left + right, key=NODE_KEY).digest()

def above(nodes):
    return [node(nodes[i], nodes[i + 1]) for i in range(0, len(nodes), 2)]

def levels(count):
    return (count - 1).bit_length()

def sizes(records, record_len, row_records):
    """The number of rows, and the bytes of one."""
    rows = -(-records // row_records)
    return rows, row_records * record_len + 32 * levels(rows)

def cost(records, record_len, row_records):
    rows, row_len = sizes(records, record_len, row_records)
    return 2 * (-(-rows // 8) + row_len) + rows * row_len // 2**14

def choice(records, record_len):
    """The cheapest number of records in a row, and of several such the largest."""
    return min((cost(records, record_len, 1 << c), -(1 << c)) for c in range(levels(records) + 1))[1] * -1

def matrix(table, records, record_len, row_records):
    rows, _ = sizes(records, record_len, row_records)
    padded = table + bytes(rows * row_records * record_len - len(table))
    of_rows = [padded[r * row_records * record_len:][:row_records * record_len] for r in range(rows)]
    nodes = [leaf(i, padded[i * record_len:(i + 1) * record_len]) for i in range(rows * row_records)]
    while len(nodes) > rows:
        nodes = above(nodes)
    nodes += [NOTHING] * ((1 << levels(rows)) - rows)
    for level in range(levels(rows)):
        of_rows = [row + nodes[r >> level ^ 1] for r, row in enumerate(of_rows)]
        nodes = above(nodes)
    return of_rows, nodes[0]

def answer(query, of_rows):
    total = 0
    for r, row in enumerate(of_rows):
        if query[r // 8] >> r % 8 & 1:
            total ^= int.from_bytes(row, "little")
    return total.to_bytes(len(of_rows[0]), "little")

def case(records, record_len, index, rng_seed):
    table = blake3(b"a table").digest(length=records * record_len)
    row_records = choice(records, record_len)
    of_rows, root = matrix(table, records, record_len, row_records)
    rows, row_len = sizes(records, record_len, row_records)
    assert len(of_rows) == rows and {len(row) for row in of_rows} == {row_len}

    coins = int.from_bytes(chacha20(bytes([rng_seed] * 32), -(-rows // 8)), "little") & (1 << rows) - 1
    row, place = divmod(index, row_records)
    queries = [bits.to_bytes(-(-rows // 8), "little") for bits in (coins, coins ^ 1 << row)]
    answers = [answer(query, of_rows) for query in queries]
    sum_of_both = bytes(a ^ b for a, b in zip(*answers))
    assert sum_of_both == of_rows[row]
    record = sum_of_both[place * record_len:(place + 1) * record_len]
    assert record == table[index * record_len:(index + 1) * record_len]
    return {
        "records": records, "record_len": record_len, "index": index, "rng_seed": rng_seed,
        "row_records": row_records, "rows": rows, "row_len": row_len,
        "table_blake3": blake3(table).hexdigest(), "rows_blake3": blake3(b"".join(of_rows)).hexdigest(), "root": root.hex(),
        "queries": [query.hex() for query in queries], "answers": [total.hex() for total in answers], "record": record.hex(),
    }

assert choice(1 << 20, 32) == 64
cases = [
    case(1, 1, 0, 1), case(2, 1, 1, 2), case(3, 700, 2, 3), case(129, 17, 128, 4), case(1000, 53, 513, 5), case(5000, 100, 0, 6),
    case(33000, 8, 32999, 7), case(60000, 1, 40001, 8), case(300, 1100, 150, 9),
]
path = pathlib.Path(__file__).with_name("apir_matrix.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path}")
