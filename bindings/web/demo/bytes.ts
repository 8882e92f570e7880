/** What can be measured of bytes. */

/** The share of bits in which two queries agree, as far as the shorter one goes. */
export function agreement(one: Uint8Array, other: Uint8Array): number {
    const length = Math.min(one.length, other.length);
    let different = 0;
    for (let place = 0; place < length; place += 1) {
        let bits = (one[place] ?? 0) ^ (other[place] ?? 0);
        for (; bits; bits &= bits - 1) {
            different += 1;
        }
    }
    return length ? 1 - different / (8 * length) : 1;
}

/** How many bytes lie in each of `bins` equal ranges of values. */
export function histogram(bytes: Uint8Array, bins: number): number[] {
    const counts = new Array<number>(bins).fill(0);
    for (const byte of bytes) {
        counts[Math.floor((byte * bins) / 256)]! += 1;
    }
    return counts;
}
