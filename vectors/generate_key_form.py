#!/usr/bin/env python3
"""Writes vectors/key_form.json: what becomes of keys before they are hashed, written a second time, sharing no code with the Rust crates.

Needs nothing but Python. Each case has the form of keys as the end of a key map has it, a key as it
is written, and the bytes that are hashed; none if the table can have no such key.
"""
import base64, binascii, json, pathlib, re, unicodedata

STEPS = ["trim", "lower", "upper", "alphanumeric", "number", "nfc", "fold", "trim-invisible"]
INVISIBLE = "".join(map(chr, [0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F),
                              *range(0x2060, 0x2070), 0xFEFF]))
SPACE = "\t\n\x0b\x0c\r \x85\xa0\u3000"


def normalised(names, key):
    key = key.strip(SPACE + INVISIBLE) if "trim-invisible" in names else key
    key = key.strip(SPACE) if "trim" in names else key
    if "nfc" in names:
        key = unicodedata.normalize("NFD", key)
    key = key.casefold() if "fold" in names else key
    return unicodedata.normalize("NFC", key) if "nfc" in names else key


def text(names, key):
    bits = sum(1 << STEPS.index(name) for name in names)
    hashed = normalised(names, key).encode()
    return {"form": bytes([0, bits]).hex(), "steps": names, "written": key, "hashed": hashed.hex()}


def hexadecimal(key):
    try:
        hashed = bytes.fromhex(re.fullmatch(r"(?:0[xX])?([0-9a-fA-F]*)", key.strip())[1]).hex()
    except (ValueError, TypeError):
        hashed = None
    return {"form": "0201", "steps": [], "written": key, "hashed": hashed}


def base_64(key):
    letters = key.strip().replace("-", "+").replace("_", "/")
    padded = letters if letters.endswith("=") else letters + "=" * (-len(letters) % 4)
    try:
        hashed = base64.b64decode(padded, validate=True)
        # Bits that say nothing are zero.
        hashed = hashed.hex() if base64.b64encode(hashed).decode() == padded else None
    except (ValueError, binascii.Error):
        hashed = None
    return {"form": "0202", "steps": [], "written": key, "hashed": hashed}


WORDS = ["Café", "Cafe\u0301", "CAFE\u0301", "ΣΑΣ", "σας", "Straße", "STRASSE", "ŉ İ ǰ ΐ ﬃ",
         "\u03b1\u0345\u0301", "\u1fb4", "α\u0316\u0301\u0345", "q\u0307\u0323", "한글",
         "\u1112\u1161\u11ab", "Å Ω K", "\u200bb\u200b", " \ufeff\u00ad x\u200by \u2060", "❤\ufe0f"]

cases = [text(names, word) for word in WORDS for names in (
    ["nfc"], ["fold"], ["nfc", "fold"], ["trim-invisible"], ["trim", "nfc", "fold"],
    ["trim-invisible", "nfc", "fold"])]
cases += map(hexadecimal, ["0x00ff", "00FF", "0Xaa", " ab ", "", "0x", "abc", "0xgg", "0x0x00", "é"])
cases += map(base_64, ["AP8=", "AP8", "-_-_", "+/+/", " AA== ", "", "A", "AP9", "AP8==", "A=A=", "é"])
path = pathlib.Path(__file__).with_name("key_form.json")
path.write_text(json.dumps(cases, indent=1) + "\n")
