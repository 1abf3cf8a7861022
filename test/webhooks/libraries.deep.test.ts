/** Tests that the sample code of docs/receivers for the libraries of Standard Webhooks and Svix accepts real deliveries. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";
import { at } from "../harness/client.ts";
import type { Receipt } from "../harness/receiver.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { newReceiver, newWebhook } from "./subscribed.ts";

const as = await newTeam();

const guide = readFileSync(join(root, "docs/receivers/README.md"), "utf8");
const libraries = [...guide.matchAll(/^```js\n(import .*? from "([^"]+)";\n)(.*?)^```$/gms)].map(
  ([, importLine = "", name = "", lines = ""]) => ({ name, importLine, lines }),
);

const Verdicts = z.array(z.union([z.object({ id: z.string() }), z.object({ refused: z.string() })]));

interface Trial {
  readonly standardWebhooksSecret: string;
  readonly receipt: Pick<Receipt, "body" | "headers">;
}

/** Runs the sample code in a separate process. Returns the event's id or the error message for each trial. */
async function verify({ importLine, lines }: (typeof libraries)[number], trials: readonly Trial[]) {
  const program = `${importLine}
    import { readFileSync } from "node:fs";
    const receive = ({ standardWebhooksSecret, receipt: { body: rawBody, headers } }) => { ${lines}; return event; };
    const verdicts = JSON.parse(readFileSync(0, "utf8")).map((trial) => {
      try { return { id: receive(trial).id }; } catch (error) { return { refused: error.message }; }
    });
    console.log(JSON.stringify(verdicts));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
  child.stdin.end(JSON.stringify(trials));
  const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(complaints).toBe("");
  return Verdicts.parse(JSON.parse(printed));
}

test("the guide shows both libraries in three lines each", () => {
  expect(libraries.map(({ name }) => name)).toEqual(["standardwebhooks", "svix"]);
  for (const { importLine, lines } of libraries) expect(`${importLine}${lines}`.trim().split("\n")).toHaveLength(3);
});

describe.each([
  ["a secret of the service", undefined],
  ["a chosen secret in plain text", "a secret: clé 🔑 / in plain text"],
  ["a chosen secret with whsec_", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
])("%s", (_, secretKey) => {
  test("verifies deliveries unchanged, and the old and the new secret verify them during a rotation", async () => {
    const receiver = await newReceiver();
    const chosen = secretKey === undefined ? {} : { secretKey };
    const registrations = [{ event: "prospect.created" }];
    const made = await newWebhook(as.admin, { url: receiver.url, registrations, ...chosen });
    const deliver = async (count: number): Promise<Receipt> => {
      dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada ö 🏠" } }), 201);
      await receiver.until(count);
      return present(receiver.receipts[count - 1]);
    };
    const before = await deliver(1);
    const rotated = dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", { ...at(made.id), body: {} }), 201);
    const during = await deliver(2);
    const [old, now] = [made.standardWebhooksSecret, rotated.standardWebhooksSecret];
    const changed = { ...during, body: during.body.replace("Ada", "Eve") };
    const trials: Trial[] = [
      { standardWebhooksSecret: old, receipt: before },
      { standardWebhooksSecret: old, receipt: during },
      { standardWebhooksSecret: now, receipt: during },
      { standardWebhooksSecret: now, receipt: before },
      { standardWebhooksSecret: now, receipt: changed },
    ];
    const refused = { refused: "No matching signature found" };
    const [first, second] = [{ id: before.event.id }, { id: during.event.id }];
    for (const library of libraries) {
      expect(await verify(library, trials), library.name).toEqual([first, second, second, refused, refused]);
    }
  });
});
