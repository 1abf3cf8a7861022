/** Applies a patch to a record. */

/** A field that is missing or undefined stays as it was. The schema of a request removes fields that the client may not change. */
export type Patch<T> = { readonly [Field in keyof T]?: T[Field] | undefined };

export function withPatch<T extends object>(current: T, patch: Patch<T>): T {
  const sent = Object.entries(patch).filter(([, value]) => value !== undefined);
  return { ...current, ...Object.fromEntries(sent) };
}
