/** All matches in list order, one after the other; they stand in typed arrays meanwhile, for there may be millions. */
import type { Matches } from "#shared/company-index/match.ts";
import type { Place } from "#shared/company-index/page.ts";

/** Newest created first; of the same instant, the higher id first. */
export function* inOrder({ segments, unflushed, total }: Matches): Generator<Place, void, undefined> {
  const ids = new Float64Array(total);
  const versions = new Float64Array(total);
  const createdAt = new Float64Array(total);
  let size = 0;
  const add = (place: Place): void => {
    ids[size] = place.id;
    versions[size] = place.version;
    createdAt[size++] = place.createdAt;
  };
  for (const { inView, rows } of segments) {
    const { main } = inView.segment;
    for (const row of rows) {
      add({ id: main.ids[row] ?? 0, version: main.versions[row] ?? 0, createdAt: main.createdAt[row] ?? 0 });
    }
  }
  for (const row of unflushed) add(row);
  const order = Uint32Array.from({ length: size }, (_, at) => at).sort(
    (a, b) => (createdAt[b] ?? 0) - (createdAt[a] ?? 0) || (ids[b] ?? 0) - (ids[a] ?? 0),
  );
  for (const at of order) yield { id: ids[at] ?? 0, version: versions[at] ?? 0, createdAt: createdAt[at] ?? 0 };
}
