#!/usr/bin/env python3
"""Writes vectors/pointproofs.json: Pointproofs computed a second time, from the paper, sharing no code with the Rust crates.

Gorbunov, Reyzin, Wee, Zhang: Pointproofs: Aggregating Proofs for Multiple Vector Commitments, CCS 2020, sections 4 and 5.2.
Needs: pip install blake3 py_ecc
Here α is known, so everything is a power of a generator whose exponent is computed with numbers alone; the equation that a client checks is
checked once more, with py_ecc's pairing. Points are compressed in the usual way (48 and 96 bytes), numbers are little-endian:
  table      BLAKE3's output stream of the text "a table", zeros behind it up to whole vectors
  m(record)  48 bytes of BLAKE3 derive_key("privet 2026-11 pointproofs record", record) modulo r
  string     g1^(α^e) for e = 1 ... 2M without M + 1, g2^(α^e) for e = 1 ... M
  share      g1^α ‖ g2^(α^e) for e = 1 ... M
  reference  derive_key("privet 2026-11 pointproofs reference string", M as u32 ‖ share)
  weights    of derive_key("privet 2026-11 pointproofs answer", role as u8 ‖ reference ‖ M as u32 ‖ vector length as u32 ‖ vectors as u32 ‖ record
             length as u64 ‖ derive_key("privet 2026-11 pointproofs commitments", all commitments) ‖ offsets as u16 ‖ records) the output stream from
             byte 32 on, 16 bytes for each vector
"""
import json, pathlib, struct
from blake3 import blake3
from py_ecc.bls.g2_primitives import G1_to_pubkey as compress_1, G2_to_signature as compress_2
from py_ecc.optimized_bls12_381 import FQ12, G1, G2, add, curve_order as r, final_exponentiate, multiply, neg, pairing


def derive(purpose, data, length=32):
    return blake3(data, derive_key_context="privet 2026-11 pointproofs " + purpose).digest(length=length)


def power(base, exponent):
    return multiply(base, exponent % r)


def case(size, vector_len, records, record_len, alpha, offsets):
    count = -(-records // vector_len)
    table = blake3(b"a table").digest(length=records * record_len).ljust(count * vector_len * record_len, b"\0")
    record = lambda q, o: table[(q * vector_len + o) * record_len:][:record_len]
    m = [[int.from_bytes(derive("record", record(q, o), 48), "little") % r for o in range(vector_len)] for q in range(count)]
    first = [compress_1(power(G1, pow(alpha, e, r))) for e in range(1, 2 * size + 1) if e != size + 1]
    second = [compress_2(power(G2, pow(alpha, e, r))) for e in range(1, size + 1)]
    share = first[0] + b"".join(second)
    reference = derive("reference string", struct.pack("<I", size) + share)
    commitments = [power(G1, sum(x * pow(alpha, j, r) for j, x in enumerate(vector, 1))) for vector in m]
    encoded = b"".join(map(compress_1, commitments))
    content = b"PRIVETRS" + struct.pack("<HI", 1, size) + share + b"".join(first[1:])
    answers = []
    for role in (0, 1):
        records_of_answer = b"".join(record(q, o) for q, o in enumerate(offsets[role]))
        claim = bytes([role]) + reference + struct.pack("<IIIQ", size, vector_len, count, record_len) + derive("commitments", encoded)
        claim += struct.pack(f"<{count}H", *offsets[role]) + records_of_answer
        stream = derive("answer", claim, 32 + 16 * count)
        weights = [int.from_bytes(stream[32 + 16 * q:][:16], "little") for q in range(count)]
        exponent = 0
        for t, o, vector in zip(weights, offsets[role], m):
            exponent += t * sum(x * pow(alpha, size + 1 - (o + 1) + j, r) for j, x in enumerate(vector, 1) if j != o + 1)
        proof = power(G1, exponent)
        # The paper's equation, with everything but α's powers in the second group on its left side.
        product = pairing(neg(G2), proof, False)
        product *= pairing(power(G2, pow(alpha, size, r)), power(G1, -alpha * sum(t * v[o] for t, o, v in zip(weights, offsets[role], m))), False)
        for t, o, commitment in zip(weights, offsets[role], commitments):
            product *= pairing(power(G2, pow(alpha, size - o, r)), power(commitment, t), False)
        assert final_exponentiate(product) == FQ12.one()
        answers.append({
            "offsets": offsets[role], "records": records_of_answer.hex(), "weights": [struct.pack("<QQ", t % 2**64, t >> 64).hex() for t in weights],
            "proof": compress_1(proof).hex(),
        })
    return {
        "size": size, "vector_len": vector_len, "records": records, "record_len": record_len, "alpha": alpha.to_bytes(32, "little").hex(),
        "reference_string": (content + blake3(content).digest()).hex(), "reference": reference.hex(),
        "commitments": encoded.hex(), "answers": answers,
    }


alpha = int.from_bytes(blake3(b"a number that nobody must know").digest(length=48), "little") % r
cases = [
    case(1, 1, 3, 5, 3, [[0, 0, 0], [0, 0, 0]]),
    case(5, 5, 13, 7, alpha, [[4, 0, 2], [4, 3, 4]]),
    case(6, 3, 10, 32, alpha + 1, [[2, 1, 0, 0], [0, 1, 2, 2]]),
]
path = pathlib.Path(__file__).with_name("pointproofs.json")
path.write_text(json.dumps({"cases": cases}, indent=2) + "\n")
print(f"{len(cases)} cases written to {path.name}")
