#!/usr/bin/env python3
"""Writes vectors/singlepass.json: SinglePass computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome
A case fixes the table, the cut and the seed of the permutations, and gives:
  rejected                 how many words of the streams were passed over, because they would have made a number biased
  hints_blake3             the BLAKE3 digest of all hints, which are the hint server's reply
  generation_blake3        that of: version 1 (u32), each permutation's numbers (u16), all hints
  lookups                  some lookups, one after the other: both queries in full, and the record
  generation_after_blake3  the digest of the generation that the client then has
The table is BLAKE3's output stream of the text "a table".
"""
import json, pathlib, struct
from blake3 import blake3
from Crypto.Cipher import AES

def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))

class Stream:
    """Uniform numbers from AES-128 in counter mode, from block number·2^32 on."""
    rejected = 0

    def __init__(self, seed, purpose, number):
        key = blake3(seed, derive_key_context=f"privet 2026-11 singlepass {purpose}").digest()[:16]
        self.aes, self.block, self.words = AES.new(key, AES.MODE_ECB), number << 32, []

    def word(self):
        if not self.words:
            blocks = b"".join(struct.pack("<QQ", self.block + k, 0) for k in range(256))
            self.words = list(struct.unpack("<1024I", self.aes.encrypt(blocks)))[::-1]
            self.block += 256
        return self.words.pop()

    def below(self, bound):
        while True:
            product = self.word() * bound
            if product % 2**32 >= 2**32 % bound:
                return product >> 32
            Stream.rejected += 1

def permutation(seed, partition, m):
    stream, sigma = Stream(seed, "permutations", partition), [0] * m
    for i in range(1, m):
        j = stream.below(i + 1)
        sigma[i] = sigma[j]
        sigma[j] = i
    assert sorted(sigma) == list(range(m))
    return sigma

class Client:
    def __init__(self, records, record_len, m, seed):
        self.n, self.w, self.m, self.q = records, record_len, m, max(2, -(-records // m))
        self.table = blake3(b"a table").digest(length=records * record_len)
        self.sigma = [permutation(seed, q, m) for q in range(self.q)]
        self.hints = self.hints_from_scratch()

    def record(self, q, offset):
        index = q * self.m + offset
        return self.table[index * self.w:][:self.w] if index < self.n else bytes(self.w)

    def hints_from_scratch(self):
        hints = []
        for x in range(self.m):
            hint = bytes(self.w)
            for q in range(self.q):
                hint = xor(hint, self.record(q, self.sigma[q][x]))
            hints.append(hint)
        return hints

    def generation(self):
        return struct.pack("<I", 1) + b"".join(struct.pack(f"<{self.m}H", *sigma) for sigma in self.sigma) + b"".join(self.hints)

    def look_up(self, index, seed):
        wanted, offset = divmod(index, self.m)
        hint = self.sigma[wanted].index(offset)
        stream = Stream(seed, "lookup", 0)
        partners = [stream.below(self.m) for _ in range(self.q)]
        decoy = stream.below(self.m)
        query_0 = [sigma[partner] for sigma, partner in zip(self.sigma, partners)]
        query_1 = [decoy if q == wanted else self.sigma[q][hint] for q in range(self.q)]
        record = self.hints[hint]
        for q in range(self.q):
            if q != wanted:
                record = xor(record, self.record(q, query_1[q]))
                sigma, partner = self.sigma[q], partners[q]
                sigma[hint], sigma[partner] = sigma[partner], sigma[hint]
        assert record == self.record(wanted, offset)
        # Not patched as the Rust client does, but computed again from the table.
        self.hints = self.hints_from_scratch()
        encode = lambda query: struct.pack(f"<{self.q}H", *query).hex()
        return {"index": index, "seed": seed.hex(), "query_0": encode(query_0), "query_1": encode(query_1), "record": record.hex()}

def case(records, record_len, m, seed_byte, lookups):
    Stream.rejected = 0
    seed = bytes([seed_byte]) * 32
    client = Client(records, record_len, m, seed)
    of_permutations = Stream.rejected
    hints, generation = b"".join(client.hints), client.generation()
    done = [client.look_up(index % records, bytes([seed_byte, number]) * 16) for number, index in enumerate(lookups)]
    return {"records": records, "record_len": record_len, "partition_records": m, "partitions": client.q, "seed": seed.hex(), "rejected": of_permutations,
            "hints_blake3": blake3(hints).hexdigest(), "generation_blake3": blake3(generation).hexdigest(), "lookups": done,
            "generation_after_blake3": blake3(client.generation()).hexdigest()}

cases = [
    case(10, 3, 4, 1, [0, 9, 9, 9, 5, 0, 3]),
    case(1, 1, 2, 2, [0, 0, 0]),
    case(1000, 16, 37, 3, [999, 0, 36, 37, 500, 500]),
    case(100, 5, 1000, 4, [99, 0, 99]),
    case(1200, 2, 3, 5, [1199, 1, 600, 1]),
]
# The largest partitions, and a seed for which a word is passed over.
large = next(found for found in (case(70000, 1, 65536, byte, [69999, 0]) for byte in range(6, 99)) if found["rejected"] > 0)
out = pathlib.Path(__file__).with_name("singlepass.json")
out.write_text(json.dumps({"scheme": "singlepass", "cases": cases + [large]}, indent=1) + "\n")
