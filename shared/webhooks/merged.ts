/** The deliveries of a webhook stand in several partitions, each in its own order: this makes one order of them. */

/** Of all parts the one whose next entry comes first goes next. */
export async function* merged<T>(
  parts: readonly AsyncGenerator<T, undefined, undefined>[],
  isBefore: (a: T, b: T) => boolean,
): AsyncGenerator<T, void, undefined> {
  const heads = await Promise.all(parts.map((part) => part.next()));
  for (;;) {
    let first = -1;
    for (const [i, head] of heads.entries()) {
      const best = heads[first];
      if (head.done !== true && (best === undefined || best.done === true || isBefore(head.value, best.value)))
        first = i;
    }
    const [head, part] = [heads[first], parts[first]];
    if (head === undefined || part === undefined || head.done === true) return;
    yield head.value;
    heads[first] = await part.next();
  }
}
