#!/usr/bin/env python3
"""Writes vectors/tapir.json: TAPIR-MT computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome
It is SinglePass and Merkle trees put together, and so is this program: it takes both from the programs beside it (which write their own files when they are loaded).
A case fixes the table, the cut, how many levels of each tree clients keep, and the seed of the permutations, and gives:
  generation_blake3  the digest of: version 1 (u32), the seed of later permutations, the kept level of each tree, the generation of SinglePass
  lookups            some lookups, one after the other: the journal's record of each, the digests of both answers in full, and the record
  generation_after   that of the generation that the client then has
The table is BLAKE3's output stream of the text "a table".
"""
import json, pathlib, struct
from blake3 import blake3
from generate_merkle import depth, trees
from generate_singlepass import Client

def digest(parts):
    return blake3(b"".join(parts)).hexdigest()

def case(records, record_len, m, cap_levels, seed_byte, lookups):
    seed = bytes([seed_byte]) * 32
    client = Client(records, record_len, m, seed)
    padded = client.table + bytes(client.q * m * record_len - len(client.table))
    forest, height = trees(padded, record_len, m), depth(m) - cap_levels
    later = blake3(seed, derive_key_context="privet 2026-11 tapir seed of later permutations").digest()
    cap = b"".join(node for tree in forest for node in tree.cap(height))
    generation = lambda: digest([struct.pack("<I", 1), later, cap, client.generation()])

    def answer(query):
        offsets = struct.unpack(f"<{client.q}H", bytes.fromhex(query))
        return digest([client.record(q, o) for q, o in enumerate(offsets)] + [h for tree, o in zip(forest, offsets) for h in tree.path(o, height)])

    def look_up(number, index):
        coins = bytes([seed_byte, number]) * 16
        done = client.look_up(index, coins)
        change = bytes([1, 1]) + struct.pack("<QQ", number, index) + coins
        return {"change": change.hex(), "query_0": done["query_0"], "query_1": done["query_1"],
                "answer_0_blake3": answer(done["query_0"]), "answer_1_blake3": answer(done["query_1"]), "record": done["record"]}

    before = generation()
    done = [look_up(number, index) for number, index in enumerate(lookups)]
    return {"records": records, "record_len": record_len, "partition_records": m, "cap_levels": cap_levels, "seed": seed.hex(),
            "generation_blake3": before, "lookups": done, "generation_after_blake3": generation()}

cases = [
    case(10, 3, 4, 1, 1, [0, 9, 9, 9, 5, 0, 3]),
    case(1, 1, 2, 0, 2, [0, 0]),
    case(1000, 16, 37, 3, 3, [999, 0, 36, 37, 500, 500]),
    case(1000, 60, 64, 6, 4, [999, 0, 64]),
]
pathlib.Path(__file__).with_name("tapir.json").write_text(json.dumps({"scheme": "tapir-mt", "cases": cases}, indent=1) + "\n")
