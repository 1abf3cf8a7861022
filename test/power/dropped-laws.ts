/**
 * Drops the conditions with the given numbers in turn, and runs the laws for the verbs that send them. conditions.ts starts it in a copy. Prints a line for
 * each condition: its number, and the law that has failed.
 */
import { dropping } from "./dropping.ts";
import { startInterleaving } from "./interleaved.ts";
import { laws } from "./laws.ts";

/** Time after which a law counts as failed, because a dropped condition may make a verb repeat for ever. */
const HANGS_MS = 60_000;

process.env.WEBHOOK_URL_POLICY = "local";
// A dropped condition may make a call fail that nobody waits for.
process.on("unhandledRejection", () => undefined);
let started = await startInterleaving();
const known: { name: string; run: () => Promise<unknown>; ms: number; sent: ReadonlySet<number> }[] = [];
for (const [title, law] of Object.entries(laws)) {
  for (const verb of law.verbs) {
    const begun = performance.now();
    const run = () => law.run(started, "writes", [verb]);
    await law.run(started, "writes", [verb], () => dropping.sent.clear());
    const ms = performance.now() - begun;
    known.push({ name: `${title}: ${verb}`, run, ms, sent: new Set(dropping.sent) });
  }
}
known.sort((a, b) => a.ms - b.ms);

async function fails({ run }: (typeof known)[number]): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const hangs = new Promise<"hangs">((resolve) => {
    timer = setTimeout(() => resolve("hangs"), HANGS_MS);
  });
  const failed = run().then(
    () => false,
    () => true,
  );
  const result = await Promise.race([failed, hangs]);
  clearTimeout(timer);
  // The law that hangs still uses the other table.
  if (result === "hangs") started = await startInterleaving();
  return result !== false;
}

for (const number of process.argv.slice(2).map(Number)) {
  dropping.number = number;
  let by = "";
  for (const one of known) if (by === "" && one.sent.has(number) && (await fails(one))) by = one.name;
  console.log(`dropped ${number} ${by}`);
}
// If a law with all conditions fails here, the table was lost during the run, and the results above are not valid.
dropping.number = Number.NaN;
await known[0]?.run();
process.exit();
