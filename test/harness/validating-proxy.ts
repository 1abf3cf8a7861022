/**
 * Starts Prism, a validating HTTP proxy. Prism gets a copy of each request of the tests, and forwards it to a server that returns a copy of
 * the service's answer. Prism checks each request and answer against docs/openapi.json, with closed schemas of answers. The test run fails
 * if an answer violates the document, or if the service accepts a request that violates it.
 *
 * The tests themselves call the service, because Prism changes what it forwards: it parses JSON and writes it again, follows redirects, and
 * damages compressed bodies.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, createServer, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import type { TestProject } from "vitest/node";
import * as z from "zod/mini";
import { installedTools } from "./client-tools.ts";
import { closedDocument } from "./closed-document.ts";
import { copying, EXCHANGE, type Exchange, endToEnd, repeating } from "./exchanges.ts";

/**
 * The global setup of vitest. It runs after the setup in local-service.ts, and replaces the URL of the service with the URL of the server
 * that copies the requests.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const answers = new Map<string, Exchange["answer"]>();
  const repeater = repeating(answers);
  const { prism, url } = await startPrism(await listening(repeater));
  const seen = { validated: 0, skipped: new Map<string, number>(), violations: new Set<string>() };
  const waiting = new Set<Promise<void>>();
  let count = 0;

  async function validate(exchange: Exchange): Promise<void> {
    const { method, path, answer } = exchange;
    const reason = reasonToSkip(exchange);
    if (reason !== undefined) return void seen.skipped.set(reason, (seen.skipped.get(reason) ?? 0) + 1);
    const name = String(count++);
    answers.set(name, answer);
    const { violations, body } = await validated(url, name, exchange);
    // Prism asks the server `repeater` for the answer, and this server then removes it from `answers`. If the answer is still there, Prism
    // could not read the request, and the body of Prism's own answer says why.
    const isUnread = answers.delete(name);
    seen.validated++;
    for (const fault of faults(exchange, isUnread ? [unread(body)] : violations)) {
      seen.violations.add(`${method} ${path} ${answer.status}: ${fault}`);
    }
  }

  const { baseUrl } = project.getProvidedContext();
  const front = copying(baseUrl, (exchange) => {
    if (!isDescribed(exchange)) return;
    const validation = validate(exchange).finally(() => waiting.delete(validation));
    waiting.add(validation);
  });
  project.provide("baseUrl", await listening(front));
  return async () => {
    while (waiting.size > 0) await Promise.all(waiting);
    for (const server of [front, repeater]) end(server);
    prism.kill();
    report(seen);
  };
}

/** Returns false for preflights, the pages of the console and the paths below /local/, which the OpenAPI document does not describe. */
const isDescribed = ({ method, path }: Exchange): boolean =>
  method !== "OPTIONS" && /^\/(?:api|docs|openapi|health)\b/.test(path);

/** Returns why Prism cannot validate this exchange, or undefined if it can. */
function reasonToSkip({ headers, body, answer }: Exchange): string | undefined {
  const mediaType = header(headers, "content-type") ?? "";
  // Prism 5 ends with a TypeError if a part of a form has no media type.
  if (/^multipart\//i.test(mediaType)) return "forms";
  // Prism follows a redirect, and would validate the answer of another address.
  if (answer.status > 300 && answer.status < 400 && answer.status !== 304) return "redirects";
  // Prism sends no answer if the JSON of a request is damaged. Such a request is skipped if the service has refused it, as it must. If the
  // service has accepted the request, Prism gets it, and the run fails because Prism does not answer.
  if (/^application\/(?:.*\+)?json\b/i.test(mediaType) && isDamaged(body) && answer.status >= 400)
    return "damaged bodies";
  return undefined;
}

const header = (headers: readonly string[], name: string): string | undefined =>
  headers.find((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === name);

function isDamaged(body: Buffer): boolean {
  try {
    return body.length > 0 && JSON.parse(body.toString()) === undefined;
  } catch {
    return true;
  }
}

interface Seen {
  readonly validated: number;
  readonly skipped: ReadonlyMap<string, number>;
  readonly violations: ReadonlySet<string>;
}

/** Prints the violations and sets the exit code. It does not throw, because vitest would then not stop the service. */
function report({ validated, skipped, violations }: Seen): void {
  console.log(`Prism validated ${validated} requests and their answers: ${violations.size} violations`);
  for (const [reason, times] of skipped) console.log(`Prism cannot validate ${times} ${reason}`);
  for (const violation of [...violations].slice(0, 40)) console.error(violation.slice(0, 1000));
  if (validated === 0 || violations.size > 0) process.exitCode = 1;
}

function end(server: Server): void {
  server.closeAllConnections();
  server.close();
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

/** Returns a free port, because Prism cannot choose one itself. */
async function freePort(): Promise<string> {
  const server = createServer();
  const { port } = new URL(await listening(server));
  server.close();
  return port;
}

async function startPrism(upstream: string): Promise<{ prism: ChildProcess; url: string }> {
  const command = join(await installedTools(), "node_modules/.bin/prism");
  const port = await freePort();
  const options = ["--host", "127.0.0.1", "--port", port, "--cors", "false", "--verboseLevel", "fatal"];
  const document = join(tmpdir(), "closed-openapi.json");
  writeFileSync(document, JSON.stringify(closedDocument()));
  const prism = spawn(command, ["proxy", document, upstream, ...options], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const url = `http://127.0.0.1:${port}`;
  while (prism.exitCode === null) {
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      return { prism, url };
    await wait(100);
  }
  throw new Error(`Prism ended with ${prism.exitCode}`);
}

/**
 * Prism handles one request after the other, so more than these four connections would not be faster. Each request has a connection of its
 * own, because Prism closes idle connections after five seconds, perhaps at the moment of the next request.
 */
const agent = new Agent({ keepAlive: false, maxSockets: 4 });

interface Validated {
  readonly violations: readonly Violation[];
  readonly body: string;
}

/** Sends a copy of the request to Prism. Returns the body of Prism's answer, and the violations that a header of this answer contains. */
function validated(url: string, name: string, { method, path, headers, body }: Exchange): Promise<Validated> {
  const { hostname, port } = new URL(url);
  const copied = [...endToEnd(headers), "Content-Length", String(body.length), EXCHANGE, name];
  return new Promise((resolve) => {
    const failed = ({ message }: Error): void =>
      resolve({ violations: [{ location: ["response"], message: `Prism did not answer: ${message}` }], body: message });
    const options = { hostname, port, agent, method, path, headers: copied, timeout: PRISM_TIMEOUT_MS };
    const sent = request(options, (answer) => {
      const violations = parsed(String(answer.headers["sl-violations"] ?? "[]"));
      text(answer).then((all) => resolve({ violations, body: all }), failed);
    });
    sent.on("timeout", () => sent.destroy(new Error("timeout")));
    sent.on("error", failed);
    sent.end(body);
  });
}

/** A request that Prism does not answer within this time makes the run fail, so that the run does not wait for ever. */
const PRISM_TIMEOUT_MS = 120_000;

const Violation = z.object({ location: z.array(z.string()), message: z.string() });
type Violation = z.infer<typeof Violation>;

/** Parses the header with the violations. Prism cuts a header of more than 8 KB off, and writes a sentence before it. */
function parsed(header: string): Violation[] {
  const isCut = !header.startsWith("[");
  const list = isCut ? `${header.slice(header.indexOf("["), header.lastIndexOf("},{"))}}]` : header;
  return z.array(Violation).parse(JSON.parse(list));
}

const unread = (why: string): Violation => ({
  location: ["request"],
  message: `Prism cannot read the request: ${why}`,
});

/**
 * Returns the violations that are faults of the document or of the service. If the service has refused the request, the request may violate
 * the document. In this case, only violations in the answer are faults.
 */
function faults(exchange: Exchange, violations: readonly Violation[]): string[] {
  return violations
    .filter(({ location: [part] }) => part === "response" || exchange.answer.status < 400)
    .filter((violation) => !isAccepted(exchange, violation))
    .map(({ location, message }) => `${location.join(".")} ${message}`);
}

/**
 * Returns true for a violation in a request that the service accepts on purpose:
 * - It reduces a page size above the maximum. It also ignores a filter that is too long if the user may not use this filter.
 * - It answers HEAD like GET, and the document describes only GET.
 * - It accepts the session cookie of its own console. The document describes only access tokens, with which apps sign in.
 * - It accepts the scheme `bearer` in any case, as HTTP requires. Prism accepts only `Bearer`.
 * - It refuses a faulty operation of an offline device within an answer with the status 200.
 */
function isAccepted({ method, headers, answer }: Exchange, { location, message }: Violation): boolean {
  const [, part, , position = ""] = location;
  if (part === "query")
    return /must NOT have more than \d+ characters|must be <= \d+|must match format "int64"/.test(message);
  if (message === "Selected route not found") return method === "HEAD";
  if (message === "Invalid security scheme used") {
    return header(headers, "cookie") !== undefined || /^bearer /i.test(header(headers, "authorization") ?? "");
  }
  if (location.slice(0, 3).join(".") !== "request.body.operations") return false;
  const { results } = z.parse(OperationResults, JSON.parse(answer.body.toString()));
  return results[Number(position)]?.outcome === "rejected";
}

const OperationResults = z.object({ results: z.array(z.object({ outcome: z.string() })) });
