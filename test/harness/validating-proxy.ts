/**
 * Starts Prism, a validating HTTP proxy, between the tests and their local service. Prism checks each request and answer against
 * docs/openapi.json. The test run fails if an answer violates the document, or if the service accepts a request that violates it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { TestProject } from "vitest/node";
import * as z from "zod/mini";
import { OPENAPI_FILE } from "../../infra/build/bundle.ts";
import { installedTools } from "./client-tools.ts";

/**
 * The global setup of vitest. It runs after the setup in local-service.ts, and replaces the URL of the service with the URL of a server in
 * front of Prism.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { baseUrl } = project.getProvidedContext();
  const { prism, url } = await startPrism(baseUrl);
  const seen = { answers: 0, violations: new Set<string>() };
  const front = createServer((incoming, outgoing) => {
    const { method, url: path = "/" } = incoming;
    // The paths below /local/ control the local service. They bypass Prism, because the OpenAPI document does not describe them.
    if (path.startsWith("/local/")) return relay(incoming, outgoing, baseUrl, () => undefined);
    return relay(incoming, outgoing, url, (status, header) => {
      seen.answers++;
      for (const fault of faults(status, header)) seen.violations.add(`${method} ${path} ${status}: ${fault}`);
    });
  });
  project.provide("baseUrl", await listening(front));
  return async () => {
    front.closeAllConnections();
    front.close();
    prism.kill();
    report(seen);
  };
}

/** Prints the violations and sets the exit code. It does not throw, because vitest would then not stop the service. */
function report({ answers, violations }: { readonly answers: number; readonly violations: ReadonlySet<string> }): void {
  console.log(`Prism validated ${answers} requests and their answers: ${violations.size} violations`);
  for (const violation of [...violations].slice(0, 40)) console.error(violation.slice(-500));
  if (answers === 0 || violations.size > 0) process.exitCode = 1;
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
  const prism = spawn(command, ["proxy", OPENAPI_FILE, upstream, ...options], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const url = `http://127.0.0.1:${port}`;
  while (prism.exitCode === null) {
    if (
      await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return { prism, url };
    await wait(100);
  }
  throw new Error(`Prism ended with ${prism.exitCode}`);
}

/** The header of the answer in which Prism reports violations. */
const HEADER = "sl-violations";

function relay(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: string,
  report: (status: number, header: string) => void,
): void {
  const { method, url = "/", rawHeaders } = incoming;
  const { hostname, port } = new URL(target);
  const upstream = request({ hostname, port, method, path: url, headers: rawHeaders }, (answer) => {
    const { statusCode = 0, headers } = answer;
    report(statusCode, String(headers[HEADER] ?? "[]"));
    delete headers[HEADER];
    outgoing.writeHead(statusCode, headers);
    answer.pipe(outgoing);
  });
  upstream.on("error", () => outgoing.destroy());
  outgoing.on("error", () => upstream.destroy());
  incoming.pipe(upstream);
}

const Violations = z.array(z.object({ location: z.array(z.string()), severity: z.string(), message: z.string() }));

/**
 * Violations in requests that the service accepts on purpose. It reduces a page size above the maximum. It also ignores a filter that is
 * too long if the user may not use this filter.
 */
const tolerated =
  /^request\.query\..* (?:must NOT have more than \d+ characters|must be <= \d+|must match format "int64")$/;

/**
 * Returns the violations that are faults of the document or of the service. If the service has refused the request, the request may violate
 * the document, so only violations in the answer count.
 */
function faults(status: number, header: string): string[] {
  if (!header.startsWith("[")) return [header];
  const errors = Violations.parse(JSON.parse(header)).filter(({ severity }) => severity === "Error");
  const counted = status < 400 ? errors : errors.filter(({ location: [part] }) => part === "response");
  return counted
    .map(({ location, message }) => `${location.join(".")} ${message}`)
    .filter((text) => !tolerated.test(text));
}
