/**
 * Generates the OpenAPI documents of versions 3.1 and 3.0 from the route table and the contracts of the functions. `npm run openapi` writes
 * both documents. With `--check`, it also fails if a change since the last release breaks clients.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Contract } from "#shared/http/contract.ts";
import * as limits from "#shared/limits.ts";
import { Problem } from "#shared/problem.ts";
import { OPENAPI_30_FILE, OPENAPI_FILE, root } from "../build/bundle.ts";
import { writeGenerated } from "../build/generated.ts";
import { runCommand } from "../cli/command/options.ts";
import { lastRelease, packageVersion, recorded } from "../release/releases.ts";
import type { Route } from "../routes/route.ts";
import { routes } from "../routes/routes.ts";
import { breakingChanges } from "./breaking.ts";
import { withTypedItems } from "./changes.ts";
import { DocumentInfo, documentOperation, operation, SessionInfo, sectionOf, sessionOperation } from "./operation.ts";
import { headers, problemResponses } from "./problems.ts";
import { type Components, collectComponents } from "./schemas.ts";
import { asVersion30 } from "./version30.ts";
import { webhooks } from "./webhooks.ts";

/** The linter Spectral requires a contact. The document names no person, because each deployment has a different operator. */
const contact = { name: "The operator of this service" };

const introduction = `Prospects, territories and webhooks of canvassing teams. Every record belongs to the caller's company.

Send an access token of the service's OpenID Connect issuer, or an API key of a service account, as \`Authorization: Bearer\`. Times are UTC
\`YYYY-MM-DDTHH:mm:ss.sssZ\`, ids are positive integers below 2^53. The service coerces no value of a JSON body and ignores
unknown fields. An empty text, or one of white space alone, counts as null where a field may be null, as not sent where a free text has
a default, and as missing where it is required. An unknown query parameter is answered 400, because a misspelt filter would
select all records; names that begin with \`_\` are ignored. Every error is \`application/problem+json\` with a code. Every answer carries \`X-Request-Id\`.
HEAD is answered wherever GET is, with the same headers and without a body.
A method that a path does not have is answered 405 with \`Allow\`. A comparison without case also treats ß and SS as equal, and
composed and decomposed letters (Unicode NFC and NFD); the service stores texts as they were sent. \`/api\` is version 1, and
changes to it are additions only. Answers and events get new fields, and the texts that list \`x-extensible-enum\` get new values:
ignore fields that you do not know, and have a default for other values.`;

/** The sections in the order of the API reference: first those that most clients use. */
const sections: Readonly<Record<string, string>> = {
  Prospects: "Homes and businesses to canvass. A user without the right to see all prospects sees the assigned ones.",
  Notes: "Remarks about a prospect. Every user who sees the prospect reads and writes its notes.",
  Appointments: "Visits to a prospect. Every user who sees the prospect reads and writes its appointments.",
  Territories: "Named zones on the map, each with or without an assigned user. Every role reads and writes them.",
  Addresses: "Postal addresses that prospects share: a change shows at once on every prospect at the address.",
  Statuses: "The company's own states of prospects. Everybody reads them; admins and owners write them.",
  Tags: "Labels for prospects. Everybody reads them and puts them on prospects; admins and owners write them.",
  Users: "The people who may sign in, with role and permissions. Everybody reads them; admins and owners write them.",
  "Service accounts": "Programs that use the API by keys, without a person. For admins and owners only.",
  Reports: "Counts of what users have done.",
  Jobs: "Changes of many prospects at once, and their undo. A company's jobs run one after the other.",
  Webhooks: "Receivers of signed events, with the events that each of them gets. For admins and owners only.",
  Deliveries: "The log of events for webhooks: sent, waiting, and the receivers' answers. For admins and owners only.",
  Actions: "Buttons that send a prospect to a webhook. Every user who sees the prospect may press them.",
  Sync: "For apps that keep a copy of the data and are often offline.",
  Session: "The sign-in of the console in the browser. Other clients get their tokens from the identity provider.",
  Documentation: "This document, the page that shows it, and the health checks. None of them needs a token.",
};

/** Returns the document of OpenAPI 3.1. Imports every function of the route table, and throws if a function has no description. */
export async function openApiDocument() {
  const components = collectComponents();
  components.schema(Problem, "output");
  const operations = await Promise.all(routes.map(async (route) => ({ route, handler: await handlerOf(route) })));
  const paths: Record<string, Record<string, unknown>> = {};
  const tags = new Set<string>();
  for (const { route, handler } of operations) {
    const described = describe(route, handler, components);
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: described };
    tags.add(sectionOf(route));
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

function describe(route: Route, handler: object, components: Components): unknown {
  if (hasContract(handler)) return operation(route, handler.contract, components);
  if ("document" in handler) return documentOperation(route, DocumentInfo.parse(handler.document), components);
  if ("session" in handler) return sessionOperation(route, SessionInfo.parse(handler.session), components);
  throw new Error(`functions/${route.file}.ts: its handler has no contract, document or session`);
}

/** Only functions of `shared/http` such as `endpoint()` set the property `contract`, and its value always has the type Contract. */
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

export const main = (args: readonly string[]): Promise<number> =>
  writeGenerated(args, {
    command: "npm run openapi",
    generate: async () => {
      const document = await openApiDocument();
      return [
        { file: OPENAPI_FILE, text: asText(document) },
        { file: OPENAPI_30_FILE, text: asText(asVersion30(document)) },
      ];
    },
    faults: async () => {
      const place = `clients of release ${lastRelease()} break, because the API may only grow (docs/releasing.md)`;
      return breakingChanges(recorded("openapi"), await openApiDocument()).map((problem) => `${place}: ${problem}`);
    },
  });

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
