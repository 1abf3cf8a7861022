/** Orders of a segment's rows: by id, and as a list shows them, newest created first; of the same instant, the higher id first. */

/** Whole numbers are exact in so many bits. */
const EXACT_BITS = 53;

/** Row numbers in the order of their ids. */
export const idOrder = (ids: Float64Array): Uint16Array => ascending(ids, rowNumbers(ids.length));

/** Row numbers in the order of a list: two bytes a row. */
export function listOrder({ createdAt, ids }: { createdAt: Float64Array; ids: Float64Array }): Uint16Array {
  const byId = idOrder(ids);
  const ranks = new Uint16Array(ids.length);
  for (let rank = 0; rank < byId.length; rank++) ranks[byId[rank] ?? 0] = rank;
  const order = ascending(createdAt, ranks).reverse();
  for (let at = 0; at < order.length; at++) order[at] = byId[order[at] ?? 0] ?? 0;
  return order;
}

/**
 * What `low` says of each row, ordered by the rows' values and then by itself. Both stand in one number where they fit, for numbers
 * alone are ordered in half the time.
 */
function ascending(values: Float64Array, low: Uint16Array): Uint16Array {
  const room = 2 ** Math.ceil(Math.log2(values.length + 1));
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let row = 0; row < values.length; row++) {
    const value = values[row] ?? 0;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if ((most - least + 1) * room > 2 ** EXACT_BITS) return compared(values, low);
  const packed = new Float64Array(values.length);
  for (let row = 0; row < values.length; row++) packed[row] = ((values[row] ?? 0) - least) * room + (low[row] ?? 0);
  packed.sort();
  const ordered = new Uint16Array(values.length);
  for (let at = 0; at < ordered.length; at++) {
    const value = packed[at] ?? 0;
    ordered[at] = value - Math.floor(value / room) * room;
  }
  return ordered;
}

function compared(values: Float64Array, low: Uint16Array): Uint16Array {
  const lowOf = (row: number): number => low[row] ?? 0;
  const rows = rowNumbers(values.length);
  return rows.sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0) || lowOf(a) - lowOf(b)).map(lowOf);
}

function rowNumbers(count: number): Uint16Array {
  const rows = new Uint16Array(count);
  for (let row = 0; row < count; row++) rows[row] = row;
  return rows;
}
