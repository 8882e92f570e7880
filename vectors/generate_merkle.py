#!/usr/bin/env python3
"""Writes vectors/merkle.json: hash trees computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3
  leaf, node     the leaf of record 5, which is "a record", and the node above that leaf and 32 bytes of zeros
  trees          roots of single trees over the first so many records of 32 bytes
  cases          a table cut into vectors, and what is committed to:
    cap_blake3     the digest of the cap of all vectors
    proof_blake3   that of the proof for record offsets[q] of each vector q
    update_blake3  that of what clients are told after the records in `edits` were replaced and the table has grown
    after_blake3   that of the cap then
The table is BLAKE3's output stream of the text "a table"; what is written into it later, that of "an update".
"""
import json, pathlib, struct
from blake3 import blake3

LEAF = blake3(b"", derive_key_context="privet 2026-11 merkle leaf").digest()
NODE = blake3(b"", derive_key_context="privet 2026-11 merkle node").digest()

def leaf(index, record):
    return blake3(struct.pack("<Q", index) + record, key=LEAF).digest()

def node(left, right):
    return blake3(left + right, key=NODE).digest()

def depth(n):
    d = 0
    while 2**d < n:
        d += 1
    return d

class Tree:
    """Records filled up to a power of two; a node with no record below it is zeros."""
    def __init__(self, first, records):
        self.n, self.depth = len(records), depth(len(records))
        self.levels = [[leaf(first + i, record) for i, record in enumerate(records)]]
        self.levels[0] += [None] * (2**self.depth - self.n)
        for _ in range(self.depth):
            below = self.levels[-1]
            pairs = zip(below[::2], below[1::2])
            self.levels.append([None if l is None else node(l, r or bytes(32)) for l, r in pairs])

    def path(self, position, height):
        return [self.levels[h][(position >> h) ^ 1] or bytes(32) for h in range(height)]

    def cap(self, height):
        return [n for n in self.levels[height] if n is not None]

def stream(text, length):
    return blake3(text.encode()).digest(length=length)

def trees(table, record_len, vector_len):
    size = record_len * vector_len
    table += bytes(-len(table) % size)
    vectors = [table[i:i + size] for i in range(0, len(table), size)]
    cut = lambda v: [v[i:i + record_len] for i in range(0, size, record_len)]
    return [Tree(q * vector_len, cut(v)) for q, v in enumerate(vectors)]

def digest(parts):
    return blake3(b"".join(parts)).hexdigest()

def case(records, record_len, vector_len, cap_levels, grown, edits):
    table = bytearray(stream("a table", records * record_len))
    before = trees(bytes(table), record_len, vector_len)
    height = depth(vector_len) - cap_levels
    offsets = [(q * 7 + 3) % vector_len for q in range(len(before))]
    proof = [h for tree, offset in zip(before, offsets) for h in tree.path(offset, height)]

    fresh = stream("an update", (grown - records + len(edits)) * record_len)
    for k, index in enumerate(edits):
        table[index * record_len:(index + 1) * record_len] = fresh[k * record_len:(k + 1) * record_len]
    table += fresh[len(edits) * record_len:]
    after = trees(bytes(table), record_len, vector_len)
    changed = set(edits) | set(range(records, grown))
    told = set()
    for q, tree in enumerate(after):
        for position in range(len(tree.cap(height))):
            below = range(q * vector_len + (position << height), q * vector_len + min((position + 1) << height, vector_len))
            if q >= len(before) or changed & set(below):
                told.add((q, position))
    update = [struct.pack("<II", q, p) + after[q].cap(height)[p] for q, p in sorted(told)]
    return dict(records=records, record_len=record_len, vector_len=vector_len, cap_levels=cap_levels, grown=grown, edits=edits,
                offsets=offsets, cap_blake3=digest(h for t in before for h in t.cap(height)), proof_blake3=digest(proof),
                update_blake3=digest(update), after_blake3=digest(h for t in after for h in t.cap(height)))

single = stream("a table", 32 * 1000)
first = leaf(5, b"a record")
out = dict(
    leaf=first.hex(), node=node(first, bytes(32)).hex(),
    trees=[dict(records=n, root=Tree(0, [single[32 * i:32 * i + 32] for i in range(n)]).levels[-1][0].hex())
           for n in (1, 2, 3, 5, 8, 9, 100, 1000)],
    cases=[
        case(1, 1, 1, 0, 1, [0]),
        case(100, 32, 10, 0, 100, [3, 99, 4, 50]),
        case(100, 32, 10, 1, 130, [3, 99, 4, 50]),
        case(95, 32, 10, 4, 97, [94, 0]),
        case(1000, 7, 64, 3, 1100, [1, 999, 64, 63, 500]),
        case(777, 57, 33, 2, 777, [776]),
        case(40, 1016, 8, 1, 41, [39, 0]),
        case(40, 1017, 8, 2, 49, [39, 0]),
        case(20, 5000, 5, 0, 26, [7]),
    ])
pathlib.Path(__file__).with_name("merkle.json").write_text(json.dumps(out, indent=1) + "\n")
