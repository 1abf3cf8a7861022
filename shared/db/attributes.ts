/** Values as DynamoDB's JSON has them: each under a key that names its type. */

export type Attribute =
  | { readonly S: string }
  | { readonly N: string }
  | { readonly BOOL: boolean }
  | { readonly NULL: true }
  /** Base64. */
  | { readonly B: string }
  | { readonly M: Attributes }
  | { readonly L: readonly Attribute[] }
  | { readonly SS: readonly string[] }
  | { readonly NS: readonly string[] };
export type Attributes = Readonly<Record<string, Attribute>>;

/** Fields that are undefined are left out. Throws for what the table cannot hold as it is. */
export const attributesOf = (item: Readonly<Record<string, unknown>>): Attributes =>
  Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) => (value === undefined ? [] : [[name, attributeOf(value)]])),
  );

export function attributeOf(value: unknown): Attribute {
  if (typeof value === "string") return { S: value };
  if (typeof value === "number") return { N: numberText(value) };
  if (typeof value === "boolean") return { BOOL: value };
  if (value === null) return { NULL: true };
  if (Array.isArray(value)) return { L: value.filter((entry) => entry !== undefined).map(attributeOf) };
  if (value instanceof Uint8Array) {
    return { B: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  }
  if (value instanceof Set) return setOf([...value]);
  if (isPlain(value)) return { M: attributesOf(value) };
  throw new TypeError(`the table holds no ${typeof value}`);
}

/** The table's numbers are longer than ours: one that ours do not hold exactly would come back as another. */
function numberText(value: number): string {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(`the table holds no ${value} as a number`);
  }
  return String(value);
}

function setOf(members: readonly unknown[]): Attribute {
  if (members.length > 0 && members.every((member) => typeof member === "string")) return { SS: members };
  if (members.length > 0 && members.every((member) => typeof member === "number"))
    return { NS: members.map(numberText) };
  throw new TypeError("a set has strings or numbers, and at least one");
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export const itemOf = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).map(([name, attribute]) => [name, plainOf(attribute)]));

/** In memory of their own: small buffers share theirs, and what is kept of one would keep all of it. */
function bytesOf(base64: string): Uint8Array {
  const decoded = Buffer.from(base64, "base64");
  const isOwn = decoded.byteLength === decoded.buffer.byteLength;
  return isOwn ? new Uint8Array(decoded.buffer) : new Uint8Array(decoded);
}

export function plainOf(attribute: Attribute): unknown {
  if ("S" in attribute) return attribute.S;
  if ("N" in attribute) return Number(attribute.N);
  if ("M" in attribute) return itemOf(attribute.M);
  if ("L" in attribute) return attribute.L.map(plainOf);
  if ("BOOL" in attribute) return attribute.BOOL;
  if ("NULL" in attribute) return null;
  if ("B" in attribute) return bytesOf(attribute.B);
  if ("SS" in attribute) return new Set(attribute.SS);
  return new Set(attribute.NS.map(Number));
}
