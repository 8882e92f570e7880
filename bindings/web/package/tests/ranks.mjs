/** Whether two samples differ. */

/**
 * By how many standard deviations the ranks of `one` among both samples differ from what chance
 * would give (Mann and Whitney's U). If each measurement was of one sample or the other by a toss,
 * that holds whatever else the machine did meanwhile.
 */
export function rankDistance(one, other) {
    const all = [...one.map((value) => [value, 1]), ...other.map((value) => [value, 0])];
    all.sort(([left], [right]) => left - right);
    const count = all.length;
    let [sum, ties] = [0, 0];
    for (let from = 0, to; from < count; from = to) {
        for (to = from; to < count && all[to][0] === all[from][0]; to += 1);
        const rank = (from + to + 1) / 2;
        sum += rank * all.slice(from, to).filter(([, isOne]) => isOne).length;
        ties += (to - from) ** 3 - (to - from);
    }
    const expected = (one.length * (count + 1)) / 2;
    const variance =
        ((one.length * other.length) / 12) * (count + 1 - ties / (count * (count - 1)));
    return variance === 0 ? 0 : (sum - expected) / Math.sqrt(variance);
}

/** The items in an order that chance decides. */
export function shuffled(items) {
    const order = items.map((item) => [Math.random(), item]);
    return order.sort(([one], [other]) => one - other).map(([, item]) => item);
}
