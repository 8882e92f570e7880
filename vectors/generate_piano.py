#!/usr/bin/env python3
"""Writes vectors/piano.json: Piano computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome
permutations: for a number of records and a seed of equal bytes, some records and their positions in the shuffled table.
cases: each fixes the table, the cut, the numbers of hints and the key (equal bytes), and gives:
  streamed_blake3    the BLAKE3 digest of the shuffled table
  for either form of answers:
    generation_blake3  the BLAKE3 digest of: version 1 (u32), key, the parity of each primary, the parity of each chunk's backups; and the records of each chunk's pairs, where there are such
    queries            one after the other, for some hints a record that the hint contains: query and answer in full, the record, and the parity of the hint that takes the used one's place
The table is BLAKE3's output stream of the text "a table"; its id is 16 bytes of 7, and its order follows from that.
"""
import json, math, pathlib, struct
from blake3 import blake3
from Crypto.Cipher import AES

ROUNDS = 10

class Permutation:
    """A Feistel network over Z_a x Z_b, walked until it lands below n."""
    def __init__(self, n, seed):
        self.n, self.aes = n, AES.new(seed[:16], AES.MODE_ECB)
        self.a = math.isqrt(n - 1) + 1
        self.b = -(-n // self.a)

    def f(self, i, argument, modulus):
        block = self.aes.encrypt(struct.pack("<QII", argument, i, 0))
        return int.from_bytes(block[:8], "little") * modulus >> 64

    def position(self, index):
        x, y = divmod(index, self.b)
        while True:
            for i in range(ROUNDS):
                if i % 2 == 0:
                    x = (x + self.f(i, y, self.a)) % self.a
                else:
                    y = (y + self.f(i, x, self.b)) % self.b
            if x * self.b + y < self.n:
                return x * self.b + y

def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))

class Piano:
    def __init__(self, n, w, s, primaries, spares, key):
        self.n, self.w, self.s, self.primaries, self.spares, self.key = n, w, s, primaries, spares, key
        self.p = max(2, -(-n // s))
        self.backups = self.p * spares
        self.aes = AES.new(key, AES.MODE_ECB)
        natural = blake3(b"a table").digest(length=n * w)
        seed = blake3(bytes([7]) * 16, derive_key_context="privet 2026-11 piano order of records").digest()
        self.permutation = Permutation(n, seed)
        self.index_at = {self.permutation.position(index): index for index in range(n)}
        assert sorted(self.index_at) == list(range(n))
        self.records = [natural[self.index_at[at] * w:][:w] for at in range(n)] + [bytes(w)] * (self.p * s - n)

    def offset(self, j, k):
        return struct.unpack("<8H", self.aes.encrypt(struct.pack("<4I", j // 8, k, 2, 0)))[j % 8] % self.s

    def record(self, k, offset):
        return self.records[k * self.s + offset]

    def parity(self, offsets):
        """Of a dictionary from chunks to offsets."""
        parity = bytes(self.w)
        for k, offset in offsets.items():
            parity = xor(parity, self.record(k, offset))
        return parity

    def contents(self, j, without=None):
        return {k: self.offset(j, k) for k in range(self.p) if k != without}

    def generation(self, single):
        out = struct.pack("<I", 1) + self.key
        out += b"".join(self.parity(self.contents(j)) for j in range(self.primaries))
        for k in range(self.p):
            for t in range(self.spares):
                out += self.parity(self.contents(self.primaries + k * self.spares + t, without=k))
        if single:
            for k in range(self.p):
                for t in range(self.spares):
                    out += self.record(k, self.offset(self.primaries + self.backups + k * self.spares + t, k))
        return out

    def pack(self, offsets):
        bits = self.s.bit_length() - 1
        packed = sum(offset << (bits * place) for place, offset in enumerate(offsets))
        return packed.to_bytes((len(offsets) * bits + 7) // 8, "little")

    def queries(self, single):
        rows = {j: self.contents(j) for j in range(self.primaries)}
        used, asked, out = [0] * self.p, set(), []
        for number in range(12):
            # Some rows come twice, so that backups are used as well.
            j = (number // 2) * 7 % self.primaries
            contents = rows[j]
            fits = [k for k in range(self.p) if k * self.s + contents[k] < self.n and k * self.s + contents[k] not in asked and used[k] < self.spares]
            if not fits:
                continue
            chunk = fits[(number * 5) % len(fits)]
            position = chunk * self.s + contents[chunk]
            asked.add(position)
            spare = chunk * self.spares + used[chunk]
            used[chunk] += 1
            rest = {k: offset for k, offset in contents.items() if k != chunk}
            if single:
                pair = self.offset(self.primaries + self.backups + spare, chunk)
                sent = {**rest, chunk: pair}
                query, answer = self.pack([sent[k] for k in range(self.p)]), self.parity(sent)
            else:
                offsets = [rest[k] for k in sorted(rest)]
                possible = [[k for k in range(self.p) if k != left_out] for left_out in range(self.p)]
                query = self.pack(offsets)
                answer = b"".join(self.parity(dict(zip(chunks, offsets))) for chunks in possible)
            record = self.record(chunk, contents[chunk])
            successor = {**self.contents(self.primaries + spare, without=chunk), chunk: contents[chunk]}
            rows[j] = successor
            out.append({"hint": j, "index": self.index_at[position], "position": position, "query": query.hex(), "answer": answer.hex(),
                        "record": record.hex(), "successor_parity": self.parity(successor).hex()})
        return out

def case(n, w, s, primaries, spares, key_byte):
    piano = Piano(n, w, s, primaries, spares, bytes([key_byte]) * 16)
    case = {"records": n, "record_len": w, "chunk_records": s, "chunks": piano.p, "primaries": primaries, "spares": spares, "key_byte": key_byte,
            "streamed_blake3": blake3(b"".join(piano.records[:n])).hexdigest()}
    for name, single in [("piano", True), ("piano-all-parities", False)]:
        case[name] = {"generation_blake3": blake3(piano.generation(single)).hexdigest(), "queries": piano.queries(single)}
    return case

def permutation(n, seed_byte):
    permutation = Permutation(n, bytes([seed_byte]) * 32)
    numbers = sorted(k for k in {0, 1, 2, 3, n // 3, n // 2, n - 1} if k < n)
    return {"records": n, "seed_byte": seed_byte, "positions": [[k, permutation.position(k)] for k in numbers]}

permutations = [permutation(n, n % 251) for n in [1, 2, 3, 5, 7, 10, 1000, 1025, 100_003, 2**24, 2**24 + 1, 2**32 + 5, 2**40 + 7]]
cases = [case(37, 3, 4, 64, 8, 1), case(1, 1, 2, 64, 8, 2), case(1000, 16, 64, 128, 24, 3), case(700, 33, 32, 64, 16, 4)]
out = pathlib.Path(__file__).with_name("piano.json")
out.write_text(json.dumps({"scheme": "piano", "permutations": permutations, "cases": cases}, indent=1) + "\n")
