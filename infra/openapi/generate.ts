/**
 * Generates the OpenAPI documents of versions 3.1 and 3.0 from the route table and the contracts of the functions. `npm run openapi` writes
 * both documents. With `--check`, the command fails if a committed document is out of date, or if a change since the last release breaks
 * clients.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import type { Contract } from "#shared/http/contract.ts";
import * as limits from "#shared/limits.ts";
import { Problem } from "#shared/problem.ts";
import { OPENAPI_30_FILE, OPENAPI_FILE, root } from "../build/bundle.ts";
import { exitCodes, optionsOf, runCommand } from "../command/options.ts";
import { lastRelease, packageVersion, recorded } from "../release/releases.ts";
import type { Route } from "../routes/route.ts";
import { routes } from "../routes/routes.ts";
import { breakingChanges } from "./breaking.ts";
import { withTypedItems } from "./changes.ts";
import { DocumentInfo, documentOperation, operation, SESSION_TAG, SessionInfo, sessionOperation } from "./operation.ts";
import type { JsonSchema } from "./portable.ts";
import { headers, problemResponses } from "./problems.ts";
import { type Components, collectComponents } from "./schemas.ts";
import { asVersion30 } from "./version30.ts";
import { webhooks } from "./webhooks.ts";

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: Readonly<Record<string, unknown>>;
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly webhooks: Readonly<Record<string, unknown>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
}

/**
 * The linter Spectral requires a contact. The document cannot name a person or an address, because each deployment has a different
 * operator.
 */
const contact = { name: "The operator of this service" };

const introduction = `Prospects, territories and webhooks of canvassing teams. Every record belongs to the caller's company.

Send an access token of the service's OpenID Connect issuer as \`Authorization: Bearer\`. Times are UTC
\`YYYY-MM-DDTHH:mm:ss.sssZ\`, ids are positive integers below 2^53. The service coerces no value of a JSON body and ignores
unknown fields. An empty text, or one of white space alone, counts as null where a field may be null, as not sent where a free text has
a default, and as missing where it is required. An unknown query parameter is answered 400, because a misspelt filter would
select all records; names that begin with \`_\` are ignored. Every error is \`application/problem+json\` with a code. Every answer carries \`X-Request-Id\`.
HEAD is answered wherever GET is, with the same headers and without a body.
A method that a path does not have is answered 405 with \`Allow\`. A comparison without case also treats ß and SS as equal, and
composed and decomposed letters (Unicode NFC and NFD); the service stores texts as they were sent. \`/api\` is version 1, and
changes to it are additions only. Answers and events get new fields, and the texts that list \`x-extensible-enum\` get new values:
ignore fields that you do not know, and have a default for other values.`;

/** In the order in which the API reference shows them: first those that most clients use. */
const sections: Readonly<Record<string, string>> = {
  Prospects: "Homes and businesses to canvass. A user without the right to see all prospects sees the assigned ones.",
  Notes: "Remarks about a prospect. Every user who sees the prospect reads and writes its notes.",
  Appointments: "Visits to a prospect. Every user who sees the prospect reads and writes its appointments.",
  Territories: "Named zones on the map, each with or without an assigned user. Every role reads and writes them.",
  Addresses: "Postal addresses that prospects share: a change shows at once on every prospect at the address.",
  Statuses: "The company's own states of prospects. Everybody reads them; admins and owners write them.",
  Tags: "Labels for prospects. Everybody reads them and puts them on prospects; admins and owners write them.",
  Users: "The people who may sign in, with role and permissions. Everybody reads them; admins and owners write them.",
  Reports: "Counts of what users have done.",
  Jobs: "Changes of many prospects at once, and their undo. A company's jobs run one after the other.",
  Webhooks: "Receivers of signed events, with the events that each of them gets. For admins and owners only.",
  Deliveries: "The log of events for webhooks: sent, waiting, and the receivers' answers. For admins and owners only.",
  Actions: "Buttons that send a prospect to a webhook. Every user who sees the prospect may press them.",
  Sync: "For apps that keep a copy of the data and are often offline.",
  Session: "The sign-in of the console in the browser. Other clients get their tokens from the identity provider.",
  Documentation: "This document, the page that shows it, and the health checks. None of them needs a token.",
};

/** Returns the OpenAPI 3.1 document. It imports every function of the route table. Throws if a function has no description. */
export async function openApiDocument(): Promise<OpenApiDocument> {
  const components = collectComponents();
  components.schema(Problem, "output");
  const operations = await Promise.all(routes.map(async (route) => ({ route, handler: await handlerOf(route) })));
  const paths: Record<string, Record<string, unknown>> = {};
  const tags = new Set<string>();
  for (const { route, handler } of operations) {
    const described = describe(route, handler, components);
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: described.operation };
    tags.add(described.tag);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Canvassing",
      version: packageVersion(),
      description: introduction,
      contact,
      "x-webhook-url-policy": "public",
    },
    servers: [{ url: "/" }],
    security: [{ accessToken: [] }],
    tags: Object.entries(sections).flatMap(([name, description]) => (tags.has(name) ? [{ name, description }] : [])),
    paths,
    webhooks: webhooks(components),
    components: {
      securitySchemes: { accessToken: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      parameters: { "Idempotency-Key": idempotencyKey, "If-None-Match": ifNoneMatch },
      headers,
      responses: problemResponses(),
      schemas: withTypedItems(components.all()),
    },
  };
}

function describe(route: Route, handler: object, components: Components): { operation: unknown; tag: string } {
  if (hasContract(handler)) {
    return { operation: operation(route, handler.contract, components), tag: handler.contract.tag };
  }
  if ("document" in handler) {
    const info = DocumentInfo.parse(handler.document);
    return { operation: documentOperation(route, info, components), tag: info.tag };
  }
  if ("session" in handler) {
    return { operation: sessionOperation(route, SessionInfo.parse(handler.session), components), tag: SESSION_TAG };
  }
  throw new Error(`functions/${route.file}.ts: its handler has no contract, document or session`);
}

/**
 * Returns true if the handler has a contract. Only functions of `shared/http` such as `endpoint()` set the property `contract`, and its
 * value always has the type Contract.
 */
const hasContract = (handler: object): handler is { contract: Contract } => "contract" in handler;

async function handlerOf({ file }: Route): Promise<object> {
  const address = pathToFileURL(join(root, "functions", `${file}.ts`)).href;
  const module: unknown = await import(address);
  if (typeof module !== "object" || module === null || !("handler" in module) || typeof module.handler !== "function") {
    throw new Error(`functions/${file}.ts exports no handler`);
  }
  return module.handler;
}

const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A text that the client chooses, for example a UUID. It makes the request safe to repeat: for 24 h per caller and route, a repeated request has no second effect and gets the first answer with `Idempotency-Replayed: true`. The same key with a different request is 422; while the first request is still running, it is 409.",
  schema: { type: "string", minLength: 1, maxLength: limits.idempotencyKey },
} as const;

const ifNoneMatch = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description:
    "The `ETag` of the copy that the client has. If the copy is current, the answer is 304 without a body. HTTP caches of phones and browsers send it by themselves.",
  schema: { type: "string" },
} as const;

export const asText = (document: unknown): string => `${JSON.stringify(document, null, 2)}\n`;

export function differences(committed: unknown, generated: unknown, place = ""): string[] {
  if (isObject(committed) && isObject(generated)) {
    const names = new Set([...Object.keys(committed), ...Object.keys(generated)]);
    return [...names].flatMap((name) => differences(committed[name], generated[name], `${place}/${name}`));
  }
  if (JSON.stringify(committed) === JSON.stringify(generated)) return [];
  return [`${place}: ${excerpt(committed)} -> ${excerpt(generated)}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const excerpt = (value: unknown): string => (value === undefined ? "(absent)" : JSON.stringify(value).slice(0, 120));

const usage = `npm run openapi -- [options]
    --check   writes nothing, and fails if a committed document is out of date, or if a change breaks clients of the last release
exit code 0: success, 1: the check has failed, 2: wrong usage`;

/** Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const options = optionsOf(args, { check: { type: "boolean" } }, usage);
  const document = await openApiDocument();
  const files = [
    [OPENAPI_FILE, document],
    [OPENAPI_30_FILE, asVersion30(document)],
  ] as const;
  if (options.check !== true) {
    for (const [file, content] of files) writeFileSync(file, asText(content));
    return exitCodes.done;
  }
  const results = files.map(([file, content]) => isCurrent(file, asText(content)));
  return results.every(Boolean) && breaksNoClient(document) ? exitCodes.done : exitCodes.failed;
}

/** Returns true if clients of the last release can use the API that the document describes. Otherwise it prints the reasons. */
function breaksNoClient(document: OpenApiDocument): boolean {
  const problems = breakingChanges(recorded("openapi"), document);
  if (problems.length === 0) return true;
  console.error(`clients of release ${lastRelease()} break, because the API may only grow (docs/releasing.md):`);
  for (const problem of problems) console.error(`  ${problem}`);
  return false;
}

/** Returns true if the committed file has the generated text. Otherwise it prints the differences. */
function isCurrent(file: string, generated: string): boolean {
  const committed = existsSync(file) ? readFileSync(file, "utf8") : "{}";
  if (committed === generated) return true;
  const lines = differences(JSON.parse(committed), JSON.parse(generated));
  console.error(`${relative(root, file)} is stale; run \`npm run openapi\`. Committed -> generated:`);
  for (const line of lines.slice(0, 40)) console.error(`  ${line}`);
  if (lines.length > 40) console.error(`  and ${lines.length - 40} more`);
  return false;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
