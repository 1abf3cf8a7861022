/** Parses comma-separated lists character by character, as the specification describes them. It uses no code of the tested parser. */

export function valuesIn(raw: string): string[] {
  const values: string[] = [];
  for (let at = 0; at <= raw.length; ) {
    const { value, end } = quotedAt(raw, at) ?? plainAt(raw, at);
    if (value.trim() !== "") values.push(value.trim());
    at = end + 1;
  }
  return values;
}

/** A parsed value. `end` is the position of the comma after the value, or the end of the text. */
interface Value {
  readonly value: string;
  readonly end: number;
}

function plainAt(raw: string, start: number): Value {
  let end = start;
  while (end < raw.length && raw[end] !== ",") end++;
  return { value: raw.slice(start, end), end };
}

/** Parses a value in quotes. Returns undefined unless quotes enclose the whole value. */
function quotedAt(raw: string, start: number): Value | undefined {
  let at = start;
  while (raw[at] === " ") at++;
  if (raw[at] !== '"') return undefined;
  let value = "";
  for (at++; at < raw.length; at++) {
    if (raw[at] !== '"') value += raw[at];
    else if (raw[at + 1] === '"') value += raw[at++];
    else {
      do at++;
      while (raw[at] === " ");
      return at === raw.length || raw[at] === "," ? { value, end: at } : undefined;
    }
  }
  return undefined;
}
