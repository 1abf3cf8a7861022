/** Writes answers of AWS's query protocol and of S3 as XML. */

export type XmlValue =
  | string
  | number
  | boolean
  | undefined
  | readonly XmlValue[]
  | { readonly [name: string]: XmlValue };

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`).replace(/[^\t\n\r -\uFFFD]/g, "");

/** Converts a value to XML. The entries of a list become elements with the name `member`, as in AWS's query protocol. */
export function xml(value: XmlValue): string {
  if (value === undefined) return "";
  if (typeof value !== "object") return escaped(String(value));
  if (isList(value)) return value.map((part) => `<member>${xml(part)}</member>`).join("");
  return Object.entries(value)
    .map(([name, part]) => (part === undefined ? "" : `<${name}>${xml(part)}</${name}>`))
    .join("");
}

const isList = (value: object): value is readonly XmlValue[] => Array.isArray(value);
