#!/usr/bin/env python3
"""Writes vectors/simplepir_packed.json: SimplePIR with a packed hint, computed a second time from the definition (crates/core/src/ring.rs), sharing no code with the Rust crates.
Products of polynomials are exact integers, by numpy's complex transforms of short limbs.

Needs: pip install blake3 pycryptodome numpy mpmath
Two kinds of cases:
  "packings"  one encryption, packing, answer and decryption, with all randomness given: SHAKE-256 of a label, read in order
                <name> a, <name> wg, <name> wh   seven bytes for each coefficient, little-endian, the lowest 50 bits: the public polynomials of the columns, of the packing key, of the fold key
                <name> table                     a byte for each cell, column after column
                <name> secret                    a byte for each coefficient, modulo 3, minus 1
                <name> errors                    a byte for each error, modulo 13, minus 6: of all coefficients of the columns' polynomials, then of both keys
              at degree 16 with all values; at degree 2048 by BLAKE3 digests of little-endian numbers
  "lookups"   whole lookups, as BLAKE3 digests of messages
                table        BLAKE3's output stream of the text "a table"; its id is sixteen bytes 07
                polynomials  AES-128 in counter mode (block = little-endian u64 counter, eight zero bytes) under the first half of BLAKE3 derive_key of "privet 2026-11 simplepir-packed columns",
                             "... packing key" and "... fold key" of the id; eight bytes for each coefficient, little-endian, the lowest 50 bits
                coins        ChaCha20 (64-bit counter from 0, nonce 0) under a key of 32 bytes `rng_seed`
                secret       four words of coins for each coefficient, two numbers of 64 bits u and v: (3 v + (3 u >> 64)) >> 64, minus 1
                error        as SimplePIR's (generate_simplepir.py), of one sample, four words of coins: those of the columns, of the packing key, of the fold key
                messages     numbers directly after one another as strings of bits, lowest bit first
  "lookups_on_demand"  the same with masks on demand: units of as many records as 2048 rows hold, and the masks of each as a column of a second matrix
                polynomials  those of its columns under "... masks"
                coins        the errors of its columns after those of the table's, before those of the keys
                messages     its words after those of the table, its symbols after those of the table; the hint is its masks
"""
import hashlib, json, math, pathlib, struct
import numpy as np
from blake3 import blake3
from Crypto.Cipher import AES
from generate_simplepir import chacha20_words, sample

Q = 50                                       # bits of the modulus
U64 = np.uint64

class Form:
    def __init__(self, d, vy, zg, vh, zh, ma=17, mb=10):
        self.d, self.vy, self.zg, self.vh, self.zh, self.ma, self.mb = d, vy, zg, vh, zh, ma, mb

STANDARD = Form(2048, 45, 23, 35, 18)
SMALL = Form(16, 44, 19, 35, 17)

def unsigned(x):
    x = np.asarray(x)
    return x if x.dtype == U64 else x.astype(np.int64).view(U64)

def center(x, bits):                         # the representative in [-2^(bits-1), 2^(bits-1))
    return (unsigned(x) << U64(64 - bits)).view(np.int64) >> (64 - bits)

def rounded(x, start, to):                   # wraps
    low = unsigned(x) & U64((1 << start) - 1)
    return ((low + U64(1 << (start - to - 1))) >> U64(start - to)) & U64((1 << to) - 1)

def rotated(x, e):                           # X^e x
    d = x.shape[-1]
    e %= 2 * d
    negative, e = e >= d, e % d
    y = np.concatenate((-x[..., d - e:], x[..., :d - e]), axis=-1) if e else x.copy()
    return -y if negative else y

def automorphism(x, t):                      # X -> X^t
    d = x.shape[-1]
    place = np.arange(d, dtype=np.int64) * t % (2 * d)
    y = np.empty_like(x)
    y[..., place % d] = x * np.where(place >= d, -1, 1)
    return y

def limbs(x, bits, count):                   # transforms of balanced limbs
    twist, x, out = np.exp(1j * np.pi * np.arange(x.shape[-1]) / x.shape[-1]), x.copy(), []
    for k in range(count):
        low = x if k == count - 1 else ((x + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))
        x = (x - low) >> bits
        out.append(np.fft.fft(low * twist, axis=-1))
    return out

def of_limbs(a, a_bits, b, b_bits):          # the product modulo X^d + 1 and 2^64
    d, total = a[0].shape[-1], 0
    twist = np.exp(-1j * np.pi * np.arange(d) / d)
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            c = np.rint((np.fft.ifft(one * other, axis=-1) * twist).real).astype(np.int64)
            total = total + (c.view(U64) << U64(a_bits * i + b_bits * j))
    return total.view(np.int64)

def product(x, y, x_limbs=4, y_limbs=4):
    return of_limbs(limbs(x, 13, x_limbs), 13, limbs(y, 13, y_limbs), 13)

def ring_dft(x, root):                       # F_u = sum of x_v X^(root u v)
    n = len(x)
    bits = n.bit_length() - 1
    y, size = x[[int(format(i, f"0{bits}b")[::-1], 2) for i in range(n)]].copy(), 2
    while size <= n:
        half, w = size // 2, root * (n // size)
        for k in range(half):
            a, b = y[k::size].copy(), rotated(y[k + half::size], w * k)
            y[k::size], y[k + half::size] = a + b, a - b
        size *= 2
    return y

def packed(form, a, wg, wh, table):
    """Of a table of rows x columns: masks, packing words 2^31 - M row by row, fold digits."""
    d, (rows, columns) = form.d, table.shape
    blocks, m = -(-rows // d), len(a)
    padded = np.zeros((blocks * d, m * d), dtype=np.int64)
    padded[:rows, :columns] = table
    columns_limbs = [limbs(center(x, Q), 13, 4) for x in a]
    twist = np.exp(1j * np.pi * np.arange(d) / d)
    words, masks, folds = [], [], []
    for block in range(blocks):
        A = np.zeros((d, d), dtype=np.int64)
        for k in range(d):
            if block * d + k >= rows:
                continue
            for j in range(m):
                row = padded[block * d + k, j * d:(j + 1) * d]
                reverse = np.concatenate((row[:1], -row[:0:-1]))
                A[k] += of_limbs([np.fft.fft(reverse * twist)], 0, columns_limbs[j], 13)
        A = (center(A, Q) + d // 2) >> (d.bit_length() - 1)
        G = ring_dft(np.stack([rotated(A[k], k) for k in range(d)]), 2)
        component = {}
        for v in range(d):
            t = pow(2 * v + 1, -1, 2 * d)
            component[t] = automorphism(G[v], t)
        digits, drop = np.zeros((d, d), dtype=np.int64), Q - form.zg
        for sign in (1, 2 * d - 1):
            sequence = [sign * pow(5, i, 2 * d) % (2 * d) for i in range(d // 2)]
            for i in range(d // 2 - 1, 0, -1):
                at, to = sequence[i], sequence[i - 1]
                digit = center((center(component[at], Q) + (1 << (drop - 1))) >> drop, form.zg)
                if sign != 1 and i == d // 2 - 1:            # so that the chains do not mirror each other
                    digit[0] = center(digit[0] + 1, form.zg)
                digits[(to - 1) // 2] = digit
                component[to] = component[to] - product(digit, center(automorphism(wg, to), Q), 2, 4)
        drop = Q - form.zh
        fold = center((center(component[2 * d - 1], Q) + (1 << (drop - 1))) >> drop, form.zh)
        folds.append(fold)
        masks.append(rounded(component[1] - product(fold, center(wh, Q), 2, 4), Q, form.ma))
        F = ring_dft(digits, 2)
        M = np.stack([rotated(F[u], u) for u in range(d)]).T
        assert np.abs(M).max() < 1 << 31
        words.append((-M + (1 << 31)).astype(np.uint32))
    return np.stack(masks), np.concatenate(words)[:rows], np.stack(folds)

def encrypted(form, a, wg, wh, secret, errors, column_errors, columns, column, wq):
    """Query words, both keys, and the sum of the effective errors."""
    masks = np.concatenate([product(center(x, Q), secret, 4, 1) for x in a])[:columns]
    clean = masks.copy()
    clean[column] += 1 << (Q - 8)
    words = rounded(clean + column_errors, Q, wq)
    error_sum = int(center((words.view(np.int64) << (Q - wq)) - clean, Q).sum())
    def key(w, t, error, bits, digit):
        return rounded(product(center(w, Q), secret, 4, 1) + error + (automorphism(secret, t) << (Q - digit)), Q, bits)
    return words, key(wg, 5, errors[0], form.vy, form.zg), key(wh, 2 * form.d - 1, errors[1], form.vh, form.zh), error_sum

def pass_words(form, wq, words, key, padding):
    parts = [(words << U64(32 - wq)).astype(np.uint32), np.zeros(padding, dtype=np.uint32)]
    parts += [rounded(key << U64(8 * plane), form.vy, 32).astype(np.uint32) for plane in range(4)]
    return np.concatenate(parts)

def answered(form, table, packing, folds, words, key, fold_key):
    rows = len(table)
    planes = [(packing >> np.uint32(8 * i) & np.uint32(255)).astype(np.uint8) for i in range(4)]
    full = np.concatenate([table.astype(np.uint8), *planes], axis=1).astype(np.uint64)
    sums = np.array([int((row * words.astype(np.uint64)).sum()) & 0xFFFFFFFF for row in full], dtype=np.uint64)
    offset = (int(key.sum()) << (63 - form.vy)) & 0xFFFFFFFF
    folded = np.concatenate([product(x, center(fold_key, form.vh), 2, 3) for x in folds])[:rows]
    folded = (folded.view(np.int64).view(U64) << U64(64 - form.vh)) >> U64(32)
    sums = (sums - U64(offset) - folded) & U64(0xFFFFFFFF)
    return sums, rounded(sums, 32, form.mb)

def decrypted(form, masks, secret, error_sum, answer):
    h = np.concatenate([product(center(mask, form.ma), secret, 2, 1) for mask in masks])[:len(answer)]
    v = (answer << U64(64 - form.mb)) - (h.view(U64) << U64(64 - form.ma)) - U64((128 * error_sum << (64 - Q)) % 2**64)
    return (v + U64(1 << 55)) >> U64(56)

class Stream:
    def __init__(self, label):
        self.hash, self.place = hashlib.shake_256(label.encode()), 0

    def bytes(self, count):
        self.place += count
        return np.frombuffer(self.hash.digest(self.place)[self.place - count:], dtype=np.uint8)

    def polynomials(self, count, d):
        groups = self.bytes(7 * count * d).reshape(count, d, 7).astype(U64)
        return (sum(groups[:, :, i] << U64(8 * i) for i in range(7)) & U64((1 << Q) - 1)).astype(np.int64)

def packing_case(form, name, rows, columns, column, wq, everything):
    d = form.d
    m = -(-columns // d)
    a = Stream(name + " a").polynomials(m, d)
    wg, wh = (Stream(f"{name} {which}").polynomials(1, d)[0] for which in ("wg", "wh"))
    table = Stream(name + " table").bytes(rows * columns).reshape(columns, rows).T.astype(np.int64)
    secret = Stream(name + " secret").bytes(d).astype(np.int64) % 3 - 1
    errors = Stream(name + " errors").bytes((m + 2) * d).astype(np.int64).reshape(-1, d) % 13 - 6
    masks, packing, folds = packed(form, a, wg, wh, table)
    column_errors = errors[:m].reshape(-1)[:columns]
    query, key, fold_key, error_sum = encrypted(form, a, wg, wh, secret, errors[m:], column_errors, columns, column, wq)
    words = pass_words(form, wq, query, key, 0)
    sums, answer = answered(form, table, packing, folds, words, key, fold_key)
    got = decrypted(form, masks, secret, error_sum, answer)
    assert np.array_equal(got, table[:, column].astype(U64))
    found = {
        "masks_u32": (masks, "<u4"), "matrix_u32": (packing, "<u4"), "fold_digits_i32": (folds, "<i4"),
        "query_u32": (query, "<u4"), "packing_key_u64": (key, "<u8"), "fold_key_u64": (fold_key, "<u8"),
        "pass_words_u32": (words, "<u4"), "answer_u16": (answer, "<u2"), "column_u8": (got, "u1"),
    }
    digest = lambda x, kind: blake3(np.ascontiguousarray(x).astype(kind).tobytes()).hexdigest()
    case = {
        "name": name, "degree": d, "rows": rows, "columns": columns, "column": column, "query_bits": wq, "error_sum": error_sum,
        "blake3": {name: digest(*value) for name, value in found.items()},
    }
    if everything:
        case["values"] = {name: np.asarray(value).reshape(-1).tolist() for name, (value, _) in found.items()}
    return case

def bit_string(parts):
    total, place = 0, 0
    for numbers, bits in parts:
        for number in numbers.tolist():
            total |= number << place
            place += bits
    return total.to_bytes(-(-place // 8), "little")

def fast_bit_string(parts):
    bits = [((numbers.astype(U64)[:, None] >> np.arange(width, dtype=U64)) & U64(1)).astype(np.uint8).reshape(-1) for numbers, width in parts]
    return np.packbits(np.concatenate(bits), bitorder="little").tobytes()

def expanded(purpose, d, count):
    key = blake3(b"\7" * 16, derive_key_context=purpose).digest()[:16]
    counters = b"".join(struct.pack("<QQ", i, 0) for i in range(count * d // 2))
    words = np.frombuffer(AES.new(key, AES.MODE_ECB).encrypt(counters), dtype="<u8")
    return (words & U64((1 << Q) - 1)).astype(np.int64).reshape(count, d)

def spread(table, unit_rows, d):
    """The same rows with zeros after each unit of them, up to whole blocks, and where they went."""
    rows = np.arange(len(table))
    places = rows // unit_rows * (-(-unit_rows // d) * d) + rows % unit_rows
    out = np.zeros((-(-(places[-1] + 1) // d) * d, table.shape[1]), dtype=np.int64)
    out[places] = table
    return out, places

def on_demand_case(records, record_len, per_column, wq, index, rng_seed):
    form, size = STANDARD, records * record_len
    d = form.d
    assert record_len <= d                   # so that a unit is a block
    whole = blake3(b"a table").digest(length=size)
    rows, columns = per_column * record_len, -(-records // per_column)
    m = -(-columns // d)
    table = np.frombuffer(whole.ljust(rows * columns, b"\0"), dtype=np.uint8).reshape(columns, rows).T.astype(np.int64)
    unit_rows = d // record_len * record_len
    table, places = spread(table, unit_rows, d)
    purpose = "privet 2026-11 simplepir-packed "
    a, of_masks = expanded(purpose + "columns", d, m), expanded(purpose + "masks", d, 1)
    wg, wh = (expanded(purpose + which, d, 1)[0] for which in ("packing key", "fold key"))
    masks, packing, folds = packed(form, a, wg, wh, table)
    units = len(masks)
    second = np.stack([np.frombuffer(fast_bit_string([(mask, form.ma)]), dtype=np.uint8) for mask in masks]).T.astype(np.int64)
    second_masks, second_packing, second_folds = packed(form, of_masks, wg, wh, second)
    coins = chacha20_words(bytes([rng_seed] * 32), 4 * d + 4 * (columns + units + 2 * d))
    numbers = [coins[i] | coins[i + 1] << 32 for i in range(0, 4 * d, 2)]
    secret = np.array([((3 * v + (3 * u >> 64)) >> 64) - 1 for u, v in zip(numbers[::2], numbers[1::2])])
    errors = np.array([sample(coins[i:i + 4]) for i in range(4 * d, len(coins), 4)])
    of_keys = errors[columns + units:].reshape(2, d)
    column, slot = divmod(index, per_column)
    first = slot * record_len
    unit = first // unit_rows
    query, key, fold_key, error_sum = encrypted(form, a, wg, wh, secret, of_keys, errors[:columns], columns, column, wq)
    second_query, _, _, second_sum = encrypted(form, of_masks, wg, wh, secret, of_keys, errors[columns:columns + units], units, unit, wq)
    _, answer = answered(form, table, packing, folds, pass_words(form, wq, query, key, 0), key, fold_key)
    _, second_answer = answered(form, second, second_packing, second_folds, pass_words(form, wq, second_query, key, 0), key, fold_key)
    # The client: the mask, and with it the record.
    bits = np.unpackbits(decrypted(form, second_masks, secret, second_sum, second_answer).astype(np.uint8), bitorder="little")
    mask = (bits.reshape(d, form.ma).astype(U64) << np.arange(form.ma, dtype=U64)).sum(axis=1)
    assert np.array_equal(mask, masks[unit])
    within = decrypted(form, mask[None], secret, error_sum, answer[unit * d:(unit + 1) * d])
    record = bytes(within[first % unit_rows:][:record_len].astype(np.uint8))
    assert record == whole[index * record_len:(index + 1) * record_len]
    digest = lambda data: blake3(data).hexdigest()
    sent = fast_bit_string([(query, wq), (second_query, wq), (key, form.vy), (fold_key, form.vh)])
    received = fast_bit_string([(answer[places], form.mb), (second_answer, form.mb)])
    return {
        "records": records, "record_len": record_len, "records_per_column": per_column, "query_bits": wq,
        "index": index, "rng_seed": rng_seed, "table_blake3": digest(whole),
        "hint_blake3": digest(fast_bit_string([(second_masks.reshape(-1), form.ma)])),
        "query_blake3": digest(sent), "answer_blake3": digest(received), "record": record.hex(),
    }

def lookup_case(records, record_len, per_column, wq, index, rng_seed):
    form, size = STANDARD, records * record_len
    d = form.d
    whole = blake3(b"a table").digest(length=size)
    rows, columns = per_column * record_len, -(-records // per_column)
    m = -(-columns // d)
    table = np.frombuffer(whole.ljust(rows * columns, b"\0"), dtype=np.uint8).reshape(columns, rows).T.astype(np.int64)
    purpose = "privet 2026-11 simplepir-packed "
    a = expanded(purpose + "columns", d, m)
    wg, wh = (expanded(purpose + which, d, 1)[0] for which in ("packing key", "fold key"))
    masks, packing, folds = packed(form, a, wg, wh, table)
    coins = chacha20_words(bytes([rng_seed] * 32), 4 * d + 4 * (columns + 2 * d))
    numbers = [coins[i] | coins[i + 1] << 32 for i in range(0, 4 * d, 2)]
    secret = np.array([((3 * v + (3 * u >> 64)) >> 64) - 1 for u, v in zip(numbers[::2], numbers[1::2])])
    errors = np.array([sample(coins[i:i + 4]) for i in range(4 * d, len(coins), 4)])
    column, slot = divmod(index, per_column)
    query, key, fold_key, error_sum = encrypted(
        form, a, wg, wh, secret, errors[columns:].reshape(2, d), errors[:columns], columns, column, wq)
    words = pass_words(form, wq, query, key, 0)
    _, answer = answered(form, table, packing, folds, words, key, fold_key)
    first = slot * record_len
    record = bytes(decrypted(form, masks, secret, error_sum, answer)[first:first + record_len].astype(np.uint8))
    assert record == whole[index * record_len:(index + 1) * record_len]
    digest = lambda data: blake3(data).hexdigest()
    hint = fast_bit_string([(masks.reshape(-1), form.ma)])
    sent = fast_bit_string([(query, wq), (key, form.vy), (fold_key, form.vh)])
    received = fast_bit_string([(answer, form.mb)])
    return {
        "records": records, "record_len": record_len, "records_per_column": per_column, "query_bits": wq,
        "index": index, "rng_seed": rng_seed, "table_blake3": digest(whole), "hint_blake3": digest(hint),
        "query_blake3": digest(sent), "answer_blake3": digest(received), "record": record.hex(),
    }

if __name__ == "__main__":
    some = [(np.arange(9) * 77 % 128, 7), (np.array([1]), 3)]
    assert bit_string(some) == fast_bit_string([(x.astype(U64), bits) for x, bits in some])
    content = {
        "packings": [
            packing_case(SMALL, "packed kat small fold", 19, 20, 17, 22, True),
            packing_case(STANDARD, "packed kat full fold", 2500, 3000, 2999, 26, False),
        ],
        "lookups": [
            lookup_case(100, 3, 10, 21, 99, 1),
            lookup_case(5000, 17, 130, 22, 4998, 2),
        ],
        "lookups_on_demand": [
            on_demand_case(150, 30, 75, 20, 149, 3),
        ],
    }
    path = pathlib.Path(__file__).with_name("simplepir_packed.json")
    path.write_text(json.dumps(content, indent=None, separators=(", ", ": ")) + "\n")
    print(f"written to {path}")
