/** Stretches of an import's rows: sorted along the curve, compressed as segments are, and kept in the bucket until all are there. */

import type { Objects } from "#shared/aws/objects.ts";
import { encodeSegment, type Group, groups, type RowWithNotes } from "#shared/company-index/segment.ts";
import { alongCurve, arranged, cutIntoSegments, unpacked } from "#shared/company-index/write/order.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";

interface Place {
  readonly companyId: number;
  readonly id: number;
}

const LENGTH_BYTES = 4;

export async function keepStretch(
  objects: Objects,
  { companyId, id }: Place,
  number: number,
  rows: readonly RowWithNotes[],
): Promise<void> {
  const pieces = [...cutIntoSegments(arranged(rows))].map(encodeSegment).flatMap((segment) =>
    groups.flatMap((group) => {
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt32LE(segment[group].length);
      return [length, segment[group]];
    }),
  );
  await objects.put(fileKeys.stretch(companyId, id, number), Buffer.concat(pieces), "application/octet-stream");
}

/** All rows of the stretches in the order of the curve. Of each stretch one segment is unpacked at a time. To be read once. */
export async function rowsAlongCurve(
  objects: Objects,
  { companyId, id }: Place,
  stretches: number,
): Promise<Iterable<RowWithNotes>> {
  const found = [];
  for (let number = 0; number < stretches; number++) {
    found.push(segmentsIn(await objects.get(fileKeys.stretch(companyId, id, number))));
  }
  return alongCurve(found.map(unpacked));
}

function segmentsIn(bytes: Uint8Array): Record<Group, Uint8Array>[] {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const segments: Record<Group, Uint8Array>[] = [];
  let at = 0;
  const next = (): Uint8Array => {
    const from = at + LENGTH_BYTES;
    at = from + view.readUInt32LE(at);
    return view.subarray(from, at);
  };
  while (at < view.length) segments.push({ main: next(), geo: next(), text: next() });
  return segments;
}
