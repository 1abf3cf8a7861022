/** Returns an element that must exist. Each kind of typed array has its own function, because V8 makes faster code for a single kind. */

/** Throws if there is no element at `index`, because this is a programming error of the calling code. */
export function at<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  return item === undefined ? none(items, index) : item;
}

export const doubleAt = (items: Float64Array, index: number): number => items[index] ?? none(items, index);
export const uint32At = (items: Uint32Array, index: number): number => items[index] ?? none(items, index);
export const uint16At = (items: Uint16Array, index: number): number => items[index] ?? none(items, index);
export const byteAt = (items: Uint8Array, index: number): number => items[index] ?? none(items, index);

function none({ length }: { readonly length: number }, index: number): never {
  throw new Error(`no element ${index} of ${length}`);
}
