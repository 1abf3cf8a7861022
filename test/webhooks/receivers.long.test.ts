/**
 * Tests that the samples of docs/receivers store each delivery once and no invalid request, and call the API once for each delivery, and that
 * the commands of the guide in that folder work as written.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { buffer, text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { signatureHeaders } from "#shared/webhooks/deliver/request.ts";
import { root } from "../../infra/build/bundle.ts";
import { freePort } from "../../infra/local/engines/dynamodb.ts";
import { newKey } from "../harness/api-key.ts";
import { at, baseUrl } from "../harness/client.ts";
import { forwarded } from "../harness/forwarded.ts";
import { closeAfterEach, http } from "../harness/listening.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { newReceiver, newWebhook } from "./subscribed.ts";

const as = await newTeam();
closeAfterEach();

type Command = readonly [string, ...string[]];
const samples: readonly (readonly [language: string, command: Command, version: string])[] = [
  ["TypeScript", [process.execPath, "receiver.ts"], "--version"],
  ["Python", ["python3", "receiver.py"], "--version"],
  ["Go", ["go", "run", "receiver.go"], "version"],
];
const languages = samples.map(([language, command, version]) => {
  const isMissing = spawnSync(command[0], [version]).status !== 0;
  return { language, command, isMissing };
});
const secrets = ["a secret in plain text", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"];
const cases = languages.flatMap((language) => secrets.map((secret) => ({ ...language, secret })));

function newInbox(): string {
  const inbox = mkdtempSync(join(tmpdir(), "receiver-"));
  onTestFinished(() => rmSync(inbox, { recursive: true, force: true }));
  return inbox;
}

async function start([command, ...args]: Command, secret: string, more: NodeJS.ProcessEnv = {}) {
  const { INBOX: inbox = newInbox() } = more;
  const child: ChildProcess = spawn(command, args, {
    cwd: join(root, "docs/receivers"),
    env: { ...process.env, WEBHOOK_SECRET: secret, HOST: "127.0.0.1", PORT: "0", ...more, INBOX: inbox },
    stdio: ["ignore", "pipe", "inherit"],
    // `go run` starts a child process, which must be killed too.
    detached: true,
  });
  async function stop(): Promise<void> {
    const ended = once(child, "exit");
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-child.pid, "SIGKILL");
    await ended;
  }
  onTestFinished(stop);
  const [line] = await once(createInterface(present(child.stdout)), "line");
  const url = /^listening on (http:\/\/127\.0\.0\.1:\d+)$/.exec(String(line))?.[1];
  return {
    url: present(url),
    /** Returns the ids of the stored deliveries. */
    kept: () => readdirSync(inbox).map((name) => name.replace(/\.json$/, "")),
    bodyOf: (id: string) => readFileSync(join(inbox, `${id}.json`), "utf8"),
    /** Resolves when the receiver has called the API for a delivery and has marked this call with a file. */
    untilDone: (id: string) => expect.poll(() => existsSync(join(inbox, `${id}.done`))).toBe(true),
    /** Removes this mark, as if the receiver had been killed between its call of the API and the mark. */
    forgetDone: (id: string) => rmSync(join(inbox, `${id}.done`)),
    stop,
    removeInbox: () => rmSync(inbox, { recursive: true }),
  };
}

async function send(url: string, headers: object, body: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  request(url, { method: "POST", headers: { ...headers, "Content-Length": Buffer.byteLength(body) } }, (response) => {
    response.resume().on("end", () => resolve(response.statusCode ?? 0));
  })
    .on("error", reject)
    .end(body);
  return promise;
}

const register = async (url: string, secretKey: string) =>
  (await newWebhook(as.admin, { url, secretKey, registrations: [{ event: "prospect.created" }] })).id;

const newProspect = async () => dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada ö 🏠" } }), 201);

async function delivered(id: number, count: number) {
  const query = { params: { path: { id }, query: { status: "delivered" as const } } };
  const read = async () => dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", query)).items;
  await expect.poll(read).toHaveLength(count);
  return read();
}

describe.each(cases)("$language, $secret", ({ command, isMissing, secret }) => {
  const sampleTest = test.skipIf(isMissing);

  sampleTest(
    "the receiver stores the id and body that the service's delivery log shows, also during a rotation of the secret",
    async () => {
      const sample = await start(command, secret);
      const webhook = await register(sample.url, secret);
      await newProspect();
      const [first] = await delivered(webhook, 1);
      const path = { params: { path: { id: webhook, deliveryId: present(first).id } } };
      const detail = dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries/{deliveryId}", path));
      expect(detail.attempts).toMatchObject([{ status: 204 }]);
      expect(sample.kept()).toEqual([detail.id]);
      expect(sample.bodyOf(detail.id)).toBe(detail.body);

      // After a rotation, a receiver that knows only the old secret still accepts deliveries.
      dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", { ...at(webhook), body: {} }), 201);
      await newProspect();
      const both = await delivered(webhook, 2);
      expect(sample.kept().toSorted()).toEqual(both.map(({ id }) => id).toSorted());
      expect(both.map(({ attemptCount }) => attemptCount)).toEqual([1, 1]);
    },
  );

  sampleTest("a delivery that cannot be stored is answered with 500, so that the service sends it again", async () => {
    const sample = await start(command, secret);
    sample.removeInbox();
    const headers = signatureHeaders({ secretKey: secret }, "1", "{}", Date.now());
    expect(await send(sample.url, headers, "{}")).toBe(500);
  });

  sampleTest(
    "a repeated delivery is kept once; a delivery that is changed, old or signed with another secret is not kept",
    async () => {
      const copy = await newReceiver();
      await register(copy.url, secret);
      await newProspect();
      await copy.until(1);
      const { headers, body, event } = present(copy.receipts[0]);
      const sample = await start(command, secret);
      const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
      const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]));
      const minutes = (count: number) =>
        signatureHeaders({ secretKey: secret }, event.id, body, Date.now() + count * 60_000);

      for (const [headers, sent] of [
        [signed, body.replace("Ada", "Eve")],
        [signed, `${body}\n`],
        [{ ...signed, "webhook-id": `${event.id}0` }, body],
        [{ ...signed, "webhook-signature": "v1," }, body],
        [{ ...signed, "webhook-signature": "" }, body],
        [{}, body],
        [minutes(-6), body],
        [minutes(6), body],
        [signatureHeaders({ secretKey: "another secret" }, event.id, body, Date.now()), body],
        [signatureHeaders({ secretKey: secret }, "../escaped", body, Date.now()), body],
      ] as const) {
        expect(await send(sample.url, headers, sent), JSON.stringify(headers)).toBe(401);
      }
      // The receiver may close the connection before the client has sent the whole body.
      const tooLarge = await send(sample.url, signed, "x".repeat(1_000_001)).catch(() => "cut off");
      expect([413, "cut off"]).toContain(tooLarge);
      expect(sample.kept()).toEqual([]);

      const again = await Promise.all(
        [signed, signed, minutes(4), minutes(-4)].map((one) => send(sample.url, one, body)),
      );
      expect(again).toEqual([204, 204, 204, 204]);
      expect(sample.kept()).toEqual([event.id]);
      expect(sample.bodyOf(event.id)).toBe(body);
    },
  );
});

/** A gateway that refuses the first request, and loses the answer of the second one. `keys` are the idempotency keys of all requests. */
async function startUnreliableGateway() {
  const keys: unknown[] = [];
  const { endpoint } = await http(async (response, request) => {
    const body = await buffer(request);
    const count = keys.push(request.headers["idempotency-key"]);
    if (count === 1) return response.writeHead(503, { "Retry-After": "1" }).end();
    const answer = await forwarded(baseUrl(), request, body);
    const content = await buffer(answer);
    if (count === 2) return response.destroy();
    return response.writeHead(answer.statusCode ?? 502, answer.headers).end(content);
  });
  return { url: endpoint, keys };
}

test.for(languages)(
  "a receiver with a key writes one note on each new prospect, although requests fail, an answer is lost and the receiver is killed: $language",
  async ({ command, isMissing }, { skip }) => {
    if (isMissing) skip(`${command[0]} is not installed`);
    const secret = "a secret in plain text";
    const gateway = await startUnreliableGateway();
    const API_KEY = await newKey(as.admin, ["prospects:write"]);
    const settings = { API_KEY, API_URL: gateway.url, INBOX: newInbox() };
    const first = await start(command, secret, settings);
    const webhook = await register(first.url, secret);
    const prospect = await newProspect();
    const [delivery] = await delivered(webhook, 1);
    const { id } = present(delivery);
    await first.untilDone(id);
    // The second request has written the note, but its answer was lost. The third one has the same idempotency key, so it writes no note.
    expect(gateway.keys).toEqual([id, id, id]);
    await first.stop();
    first.forgetDone(id);
    const second = await start(command, secret, settings);
    await second.untilDone(id);
    await second.stop();

    const third = await start(command, secret, settings);
    dataOf(await as.admin.PATCH("/api/webhooks/{id}", { ...at(webhook), body: { url: third.url } }));
    await newProspect();
    const other = present((await delivered(webhook, 2)).find((one) => one.id !== id)).id;
    await third.untilDone(other);
    expect(gateway.keys).toEqual([id, id, id, id, other]);
    const notes = dataOf(await as.admin.GET("/api/prospects/{id}/notes", at(prospect.id)));
    expect(notes).toMatchObject([{ createdBy: { type: "service" } }]);
  },
);

test("the TypeScript sample fails with a message if its port is in use, also at its first start", async () => {
  const other = await startReceiver();
  const inbox = join(newInbox(), "new");
  const child = spawn(process.execPath, ["receiver.ts"], {
    cwd: join(root, "docs/receivers"),
    env: { ...process.env, WEBHOOK_SECRET: "a secret in plain text", PORT: new URL(other.url).port, INBOX: inbox },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  await other.close();
  expect(code).toBe(1);
  expect(errors).toContain("EADDRINUSE");
});

const guide = readFileSync(join(root, "docs/receivers/README.md"), "utf8");
const [receive = "", use = ""] = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code);

/** The PATH of a new terminal. It contains no `node_modules` folder, which npm adds for this test run. */
const PATH = (process.env.PATH ?? "")
  .split(":")
  .filter((folder) => !folder.includes("node_modules"))
  .join(":");

/** Returns a PATH that begins with the folder of this version of Node.js, or undefined if the npm registry cannot be reached. */
function pathWith(version: string): string | undefined {
  const command = ["exec", "--yes", `--package=node@${version}`, "--", "sh", "-c", "command -v node"];
  const { status, stdout } = spawnSync("npm", command, {
    cwd: tmpdir(),
    encoding: "utf8",
    env: { ...process.env, PATH },
  });
  return status === 0 ? `${dirname(stdout.trim())}:${PATH}` : undefined;
}

/** Runs a shell command in a process group, which the test can end with all child processes. */
function run(command: string, env: Record<string, string>) {
  const { HOME = "", TMPDIR = "" } = process.env;
  const child = spawn("sh", ["-euc", command], {
    cwd: root,
    env: { HOME, TMPDIR, PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  const ended = once(child, "close");
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  onTestFinished(async () => {
    if (child.pid !== undefined && !hasEnded()) process.kill(-child.pid, "SIGTERM");
    await ended;
  });
  return { lines, ended, hasEnded };
}

async function untilLine({ lines, hasEnded }: ReturnType<typeof run>, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = lines.map((line) => pattern.exec(line)).find((found) => found !== null);
    if (match !== undefined && match !== null) return match;
    if (hasEnded()) return expect.fail(`the command ended without ${pattern}: ${lines.join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test.for(["the installed version", "20", "22"])("the commands work with Node.js: %s", async (version, { skip }) => {
  const path = /^\d/.test(version) ? pathWith(version) : PATH;
  if (path === undefined) return skip("the npm registry cannot be reached");
  const major = spawnSync("node", ["--version"], { encoding: "utf8", env: { PATH: path } }).stdout;
  if (/^\d/.test(version)) expect(major).toMatch(new RegExp(`^v${version}\\.`));

  const service = run("npm start -- --memory", { PATH: path, PORT: "0" });
  const [, url = ""] = await untilLine(service, /^ready (\S+)$/);
  const receiverPort = String(await freePort());
  const inbox = newInbox();
  // Another program may use port 8080, so the commands get a free port.
  const here = (command: string): string => command.replaceAll("8080", receiverPort);
  const receiver = run(here(receive), { PATH: path, INBOX: inbox });
  await untilLine(receiver, /^listening on /);
  const user = run(here(use), { PATH: path, PORT: new URL(url).port });
  const [, delivery] = await untilLine(receiver, /^(dlv_\w+) prospect\.created$/);
  await user.ended;
  expect(user.lines.join("")).toContain('"name":"Ada"');
  expect(readdirSync(inbox)).toEqual([`${present(delivery)}.json`]);
});
