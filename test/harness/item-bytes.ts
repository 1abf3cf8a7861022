/** Computes the size of an item as DynamoDB bills it: names and values, 3 bytes for each list or map, and 1 for each of its entries. */

export function bytesOf(item: Record<string, unknown>): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);
}

function valueBytes(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return Math.ceil(String(value).replace(/\D/g, "").length / 2) + 1;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== "object" || value === null) return 1;
  const parts = Object.entries(value).map(
    ([name, part]) => 1 + (Array.isArray(value) ? 0 : Buffer.byteLength(name)) + valueBytes(part),
  );
  return 3 + parts.reduce((sum, bytes) => sum + bytes, 0);
}
