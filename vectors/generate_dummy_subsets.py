#!/usr/bin/env python3
"""Writes vectors/dummy_subsets.json: dummy subsets computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome
A case fixes the table, the cut, the number of hints and the key, and gives:
  generation   the BLAKE3 digest of: version 1 (u32), key, the cutoff of each hint (u32), the parity of each single hint, the two parities of each pair
  queries      for some hints, a record that the hint contains: query and answer in full, and which half is the real one
  successors   for some pairs and records: whether the half not below the cutoff is taken, and the parity of the new hint
With two servers the single hints are the same, and what takes their places are the pairs of the same ids:
  two_servers_generation   the BLAKE3 digest of: version 1 (u32), key, the id after the last single hint (u32), parities, ids (u32), cutoffs (u32), extra records (u32, all ones), a zero bit each
  replenish and replenished, in successors   what the offline server is asked and answers
The table is BLAKE3's output stream of the text "a table".
"""
import json, pathlib, struct
from blake3 import blake3
from Crypto.Cipher import AES

def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)

def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))

class Hints:
    def __init__(self, records, record_len, partition, partitions, singles, pairs, key):
        self.n, self.w, self.s, self.p, self.singles, self.pairs = records, record_len, partition, partitions, singles, pairs
        self.key, self.aes = key, AES.new(key, AES.MODE_ECB)
        self.table = blake3(b"a table").digest(length=records * record_len)
        self.cutoffs = [self.cutoff(j, partitions // 2 + (1 if j < singles else 0)) for j in range(singles + pairs)]

    def select(self, j, k):
        return struct.unpack("<4I", self.aes.encrypt(u32(j // 4, k, 1, 0)))[j % 4]

    def offset(self, j, k):
        return struct.unpack("<8H", self.aes.encrypt(u32(j // 8, k, 2, 0)))[j % 8] % self.s

    def cutoff(self, j, rank):
        values = sorted(self.select(j, k) for k in range(self.p))
        return 0 if values[rank - 1] == values[rank] else values[rank]

    def record(self, index):
        return self.table[index * self.w:][:self.w] if index < self.n else bytes(self.w)

    def below(self, j, k):
        return self.select(j, k) < self.cutoffs[j]

    def parity(self, j, above=False):
        parity = bytes(self.w)
        for k in range(self.p):
            if self.below(j, k) != above:
                parity = xor(parity, self.record(k * self.s + self.offset(j, k)))
        return parity

    def generation(self):
        parities = [self.parity(j) for j in range(self.singles)]
        for j in range(self.singles, self.singles + self.pairs):
            parities += [self.parity(j), self.parity(j, above=True)]
        return u32(1) + self.key + u32(*self.cutoffs) + b"".join(parities)

    def two_servers_generation(self):
        valid = [self.cutoffs[j] != 0 for j in range(self.singles)]
        ids = [j if valid[j] else 2**32 - 1 for j in range(self.singles)]
        parities = b"".join(self.parity(j) for j in range(self.singles))
        rest = u32(*ids) + u32(*self.cutoffs[:self.singles]) + b"\xff" * (4 * self.singles) + bytes((self.singles + 7) // 8)
        return u32(1) + self.key + u32(self.singles) + parities + rest

    def query(self, j, index, real_half):
        real = [k for k in range(self.p) if self.below(j, k) and k != index // self.s]
        offsets = [self.offset(j, k) for k in real]
        halves = sum(1 << k for k in range(self.p) if (k in real) == bool(real_half))
        bits = self.s.bit_length() - 1
        packed = sum(offset << (bits * place) for place, offset in enumerate(offsets))
        query = halves.to_bytes((self.p + 7) // 8, "little") + packed.to_bytes((self.p // 2 * bits + 7) // 8, "little")
        sums, places = [bytes(self.w), bytes(self.w)], [0, 0]
        for k in range(self.p):
            half = halves >> k & 1
            sums[half] = xor(sums[half], self.record(k * self.s + offsets[places[half]]))
            places[half] += 1
        assert xor(sums[real_half], self.parity(j)) == self.record(index)
        return query, sums[0] + sums[1]

def case(records, record_len, partition, hint_security, singles, pairs, seed):
    partitions = max(4, -(-records // partition) + (-(-records // partition)) % 2)
    hints = Hints(records, record_len, partition, partitions, singles, pairs, bytes([seed]) * 16)
    queries, successors = [], []
    for j in range(0, singles, 13):
        contained = [k * partition + hints.offset(j, k) for k in range(partitions) if hints.below(j, k)]
        index = next(index for index in contained[j % len(contained):] + contained if index < records)
        query, answer = hints.query(j, index, j % 2)
        queries.append({"hint": j, "index": index, "real_half": j % 2, "query": query.hex(), "answer": answer.hex(), "record": hints.record(index).hex()})
        pair = len(successors)
        above = hints.below(singles + pair, index // partition)
        replenish = hints.key + u32(singles + pair, hints.cutoffs[singles + pair])
        replenished = hints.parity(singles + pair) + hints.parity(singles + pair, above=True)
        successors.append({"pair": pair, "above": above, "replenish": replenish.hex(), "replenished": replenished.hex(), "parity": xor(hints.parity(singles + pair, above), hints.record(index)).hex()})
    return {"records": records, "record_len": record_len, "partition_records": partition, "partitions": partitions, "hint_security": hint_security,
            "singles": singles, "pairs": pairs, "key": hints.key.hex(), "generation_blake3": blake3(hints.generation()).hexdigest(),
            "two_servers_generation_blake3": blake3(hints.two_servers_generation()).hexdigest(),
            "queries": queries, "successors": successors}

cases = [case(37, 3, 4, 8, 64, 64, 1), case(1, 1, 1, 80, 64, 64, 2), case(1000, 16, 32, 10, 320, 192, 3), case(4096, 33, 64, 3, 192, 128, 4)]
out = pathlib.Path(__file__).with_name("dummy_subsets.json")
out.write_text(json.dumps({"scheme": "dummy-subsets", "cases": cases}, indent=1) + "\n")
