/** The checksum with which the client compares its records with those of the service. docs/offline.md describes it. */
import type { ChangesPage } from "./api.ts";
import type { StoredRecord } from "./store.ts";

export type CheckedType = keyof NonNullable<ChangesPage["checksums"]>;

/** All types of records of which the service has checksums. */
export const checkedTypes: readonly CheckedType[] = ["prospects", "territories", "statuses", "tags", "users"];

/** Hashes the text `type:id:version` of each record with 64-bit FNV-1a. Returns the XOR of all hashes as 16 hexadecimal digits. */
export function checksumOf(records: readonly Pick<StoredRecord, "type" | "id" | "version">[]): string {
  const sum = records.reduce((xor, { type, id, version }) => xor ^ fnv1a(`${type}:${id}:${version}`), 0n);
  return sum.toString(16).padStart(16, "0");
}

function fnv1a(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}
